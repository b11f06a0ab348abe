from pathlib import Path

import msgspec
import pytest
from accounts import accounted
from msgspec import structs

from headway.agents.knowledge.agent import KnowledgeAnswer
from headway.agents.knowledge.conversation import CallRecord
from headway.app.demo import account as module
from headway.app.demo.account import Account, account, checks, known_tasks
from headway.app.demo.counters import Counters
from headway.core.errors import NotFoundError
from headway.core.span import ErrorType, ModelCall, Span
from headway.core.task import SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.anatomy import Anatomy, dissect
from headway.trace.path import Phase
from headway.trace.store import Store

OLD, NEW = TaskId("aa" * 16), TaskId("bb" * 16)
USAGE = Usage(input_tokens=100, output_tokens=10, cache_read=40)


def span(task: TaskId, name: str, start: float) -> Span:
    work = ModelCall(model="m", stream=True, first_token=start + 1, last_token=start + 2, usage=USAGE)
    return Span(task=task, id=SpanId(name), parent=None, name="chat m", start=start, end=start + 2, work=work)


def answer(calls: int) -> KnowledgeAnswer:
    call = CallRecord(step="answer", seconds=2.0, ttft=1.0, usage=USAGE, finish_reason="stop")
    return KnowledgeAnswer(
        question="Why?",
        mode="planning",
        text="So.",
        finish_reason="stop",
        sources=(),
        plan=None,
        calls=(call,) * calls,
        seconds=2.0,
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = Store(tmp_path / "s.db")
    opened.write([span(OLD, "1", 10.0)])
    return opened


async def test_the_task_that_came_since_is_accounted_for(store: Store) -> None:
    with store:
        known = known_tasks(store)
        store.write([span(NEW, "1", 20.0), span(NEW, "2", 23.0)])
        found = await account(store, known, answer(2))
    assert known == {OLD}
    assert (found.anatomy.task, found.anatomy.calls, found.tasks) == (NEW, 2, 1)


async def test_a_call_that_broke_off_is_not_taken_for_the_one_that_was_made_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    broken = structs.replace(span(NEW, "1", 20.0), error=ErrorType("upstream_closed"))
    with store:
        known = known_tasks(store)
        store.write([broken])
        with pytest.raises(NotFoundError, match="made 1 calls, but 0 are recorded"):
            await account(store, known, answer(1))
        store.write([span(NEW, "2", 23.0)])
        assert (await account(store, known, answer(1))).anatomy.calls == 2


async def test_calls_that_never_reach_the_store_are_counted_in_the_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    with store:
        known = known_tasks(store)
        store.write([span(NEW, "1", 20.0)])
        with pytest.raises(NotFoundError, match="made 2 calls, but 1 are recorded"):
            await account(store, known, answer(2))


def made(calls: int = 1, tasks: int = 1, anatomy: Anatomy | None = None) -> Account:
    spans = [span(NEW, str(number), 20.0 + 3 * number) for number in range(calls)]
    task = accounted(anatomy or dissect(spans))
    return Account(answer=answer(calls), task=task, tasks=tasks)


ZERO = {"r": Counters(computed=0, cached=0, written=0)}
GROWN = {"r": Counters(computed=180, cached=120, written=30)}
"""Three calls of 100 tokens, 40 of them cached, and 10 written."""


def verdicts(*accounts: Account) -> list[bool | None]:
    return [verdict.agree for verdict in checks(accounts, ZERO, GROWN, ())]


def test_everything_agrees() -> None:
    assert verdicts(made(1), made(2)) == [True, True, True, True]


def test_each_fault_is_found_where_it_is() -> None:
    whole = made(2).anatomy
    leaky = msgspec.structs.replace(whole, phases={**whole.phases, Phase.HOP: 0.5})
    miscounted = msgspec.structs.replace(whole, usage=Usage(input_tokens=200, output_tokens=21, cache_read=80))
    assert verdicts(made(1), made(2, anatomy=leaky)) == [False, True, True, True]
    assert verdicts(made(1), made(2, tasks=2)) == [True, False, True, True]
    assert verdicts(made(1), made(2, anatomy=miscounted)) == [True, True, False, False]


def test_what_a_call_cost_that_broke_off_the_client_cannot_tell() -> None:
    failed = msgspec.structs.replace(made(2).anatomy, failures=1)
    assert verdicts(made(1), made(2, anatomy=failed)) == [True, True, None, True]
