"""Several workers that tell each other of calls: a task is one, whichever of them its calls come to."""

import itertools
import json
from typing import Any

import pytest
from conversation import QUESTION, SYSTEM, Chat, assistant, result, search, user
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.task import Identity, SpanId
from headway.gateway.shelves import MemoryShelf
from headway.policy.elsewhere import Told, keys_of, told_of, turn_of
from headway.policy.identify import CallAnswered, CallFailed, CallOpening, Identifier
from headway.policy.messages import IssuedCall


class Workers:
    """Identifiers over one shelf; each call says which of them it comes to."""

    def __init__(self, count: int) -> None:
        ids = itertools.count(1)
        self.workers = [Identifier(lambda: f"{next(ids):032x}", shared=True) for _ in range(count)]
        self.shelf: dict[str, list[Told]] = {}
        self._spans = itertools.count(1)
        self.now = 1000.0
        self.asked: tuple[str, ...] = ()

    def call(
        self,
        worker: int,
        messages: Chat,
        said: str = "",
        *calls: IssuedCall,
        tenant: str = "",
        fails: bool = False,
        **rest: Any,  # noqa: ANN401 - whatever else a CallOpening takes
    ) -> Identity:
        identifier = self.workers[worker]
        self.now += 0.5
        span = SpanId(f"{next(self._spans):016x}")
        opening = CallOpening(span=span, tenant=tenant, model="m", messages=json.dumps(messages).encode(), **rest)
        self.asked = identifier.wanted(opening)
        identifier.learn([one for key in self.asked for one in self.shelf.get(key, [])], tenant)
        identity = identifier.decide(opening, self.now)
        self.now += 1.0
        event = CallAnswered(span=span, content=said, tool_calls=calls, ended_at=self.now)
        identifier.observe(CallFailed(span=span, ended_at=self.now) if fails else event, self.now)
        told = identifier.told(span)
        assert told is not None
        for key in keys_of(told):
            self.shelf.setdefault(key, []).append(told)
        return identity


def loop(steps: int) -> list[tuple[Chat, str, tuple[IssuedCall, ...]]]:
    """An agent's calls: each brings the result of the last one's tool."""
    chat: Chat = [SYSTEM, user(QUESTION)]
    made: list[tuple[Chat, str, tuple[IssuedCall, ...]]] = []
    for step in range(steps):
        tool = search(f"call_{step}")
        made.append((list(chat), "", (tool,)))
        chat += [assistant(None, tool), result(f"call_{step}")]
    return made


@given(st.lists(st.integers(0, 2), min_size=2, max_size=7))
@settings(max_examples=40, deadline=None)
def test_an_agents_calls_are_one_task_whichever_worker_each_comes_to(order: list[int]) -> None:
    world, alone = Workers(3), Workers(1)
    for worker, (chat, said, calls) in zip(order, loop(len(order)), strict=True):
        identity = world.call(worker, chat, said, *calls)
        expected = alone.call(0, chat, said, *calls)
        assert (identity.evidence, identity.opens_task, identity.confidence) == (
            expected.evidence, expected.opens_task, expected.confidence,
        )  # fmt: skip
        assert [(tool.call_id, tool.name) for tool in identity.tools] == [
            (tool.call_id, tool.name) for tool in expected.tools
        ]
    tasks = {told.task for told in itertools.chain(*world.shelf.values())}
    assert len(tasks) == 1


def test_nobody_is_asked_about_what_is_known_here() -> None:
    world = Workers(2)
    first, second, third = loop(3)
    world.call(0, first[0], "", *first[2])
    assert [key[0] for key in world.asked] == ["p"]  # a new conversation may be a sub-agent's
    world.call(0, second[0], "", *second[2])
    assert world.asked == ()
    world.call(1, third[0])
    assert [key[0] for key in world.asked] == ["c", "c"]


def test_a_person_who_comes_back_to_another_worker_goes_on_with_the_session() -> None:
    world = Workers(2)
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.call(0, chat, "There is one at nine in the morning, and one late at night.")
    world.now += 60.0
    more = [assistant("There is one at nine in the morning, and one late at night."), user("Book the first.")]
    second = world.call(1, [*chat, *more])
    assert (second.session, second.opens_task) == (first.session, True)
    assert second.task != first.task


def test_a_sub_agent_on_another_worker_belongs_to_the_task_that_called_it() -> None:
    world = Workers(2)
    brief = "Find out which airlines fly from Rome to Oslo in May, and what they charge."
    call = IssuedCall("call_0", "delegate", json.dumps({"task": brief}))
    first = world.call(0, [SYSTEM, user(QUESTION)], "", call)
    second = world.call(1, [{"role": "system", "content": "You research."}, user(brief)])
    assert (second.task, second.evidence) == (first.task, "sub_agent")
    other = world.call(1, [{"role": "system", "content": "You research."}, user(f"{brief} And in June?")])
    assert other.task != first.task  # its words are not known here, only the digest of all of them


def test_a_task_and_a_session_that_callers_name_are_opened_once() -> None:
    world = Workers(2)
    headers = {"x-headway-task": "mine", "x-session-id": "s1"}
    first = world.call(0, [user("one question of some length")], headers=headers)
    second = world.call(1, [user("quite another question, also long")], headers=headers)
    assert (first.opens_task, second.opens_task) == (True, False)
    assert first.session == second.session == "s1"


def test_a_call_that_failed_and_is_sent_again_elsewhere_is_the_same_task() -> None:
    world = Workers(2)
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.call(0, chat, fails=True)
    again = world.call(1, chat, headers={"x-stainless-retry-count": "1"})
    assert again.task == first.task


def test_tenants_never_learn_of_each_other() -> None:
    world = Workers(2)
    first, second = loop(2)
    mine = world.call(0, first[0], "", *first[2], tenant="acme")
    yours = world.call(1, second[0], tenant="zeta")
    assert yours.task != mine.task
    assert not any(key in world.shelf for key in world.asked)
    world.workers[1].learn([one for found in world.shelf.values() for one in found], "zeta")
    assert world.call(1, second[0], tenant="acme").task == mine.task  # asked for, and learnt, by the tenant's own call


def test_what_is_told_is_all_that_is_remembered_elsewhere() -> None:
    world = Workers(1)
    first, second = loop(2)
    world.call(0, first[0], "", *first[2])
    world.call(0, second[0], "Nine in the morning.")
    for told in {one.span: one for found in world.shelf.values() for one in found}.values():
        assert told_of(turn_of(told)) == told


@pytest.mark.parametrize("shared", [True, False])
def test_a_worker_alone_identifies_as_ever(shared: bool) -> None:
    ids = itertools.count(1)
    identifier = Identifier(lambda: f"{next(ids):032x}", shared=shared)
    now, tasks = 1000.0, set[str]()
    for number, (chat, _, calls) in enumerate(loop(4)):
        opening = CallOpening(span=SpanId(f"{number:016x}"), tenant="", model="m", messages=json.dumps(chat).encode())
        tasks.add(identifier.decide(opening, now).task)
        identifier.observe(CallAnswered(span=opening.span, content="", tool_calls=calls, ended_at=now), now)
    assert len(tasks) == 1


def test_a_shelf_holds_no_more_than_it_may_and_the_newest_of_a_key() -> None:
    shelf = MemoryShelf(limit=5_000)
    for number in range(100):
        shelf.put((f"key-{number}", "same"), b"%d" % number)
        assert shelf.bytes <= 5_000
    assert shelf.find(("key-0",)) == []
    assert shelf.find(("key-99", "same"))[0] == b"99"
    assert shelf.find(("same",)) == [b"%d" % number for number in range(84, 100)]
