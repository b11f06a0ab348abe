from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from stored import call, step

from headway.core.errors import AmbiguousError, NotFoundError
from headway.core.money import MicroUsd
from headway.core.span import (
    Candidate,
    ErrorType,
    HumanWait,
    Itl,
    ModelCall,
    Receipt,
    Retrieval,
    Setback,
    Span,
    Step,
    ToolUse,
)
from headway.core.spent import Sum
from headway.core.task import Identity, SessionId, SpanId, TaskId
from headway.core.usage import EngineTimings, Usage
from headway.trace.store import Store

FULL = Span(
    task=TaskId("t"),
    id=SpanId("00000000000000aa"),
    parent=SpanId("00000000000000ab"),
    name="chat tiny",
    start=1.25,
    end=3.5,
    session=SessionId("s"),
    error=ErrorType("upstream_closed"),
    text=("the prompt", "the answer"),
    work=ModelCall(
        model="tiny",
        provider="local",
        replica="r1",
        stream=True,
        queued=0.125,
        sent=1.5,
        first_token=2.0,
        first_visible=2.5,
        last_token=3.0,
        itl=Itl(count=4, mean=0.25, p50=0.25, p95=0.5, max=0.5),
        usage=Usage(input_tokens=7, output_tokens=5, cache_read=3),
        engine=EngineTimings(prefill_tokens=4, prefill_seconds=0.5, decode_tokens=5, decode_seconds=1.0),
        finish_reason="stop",
        attempts=2,
        setbacks=(Setback(replica="r0", error=ErrorType("upstream_connect"), start=1.25, end=1.5),),
        cost=MicroUsd(12),
        identity=Identity(task=TaskId("t"), session=SessionId("s"), evidence="new", confidence=1.0, opens_task=True),
        route=Receipt(policy="least-loaded", winner="r1", reason="idle", candidates=(Candidate("r1", 0.0),)),
    ),
)


def test_every_kind_of_span_comes_back_as_it_was(tmp_path: Path) -> None:
    spans = (
        FULL,
        Span(task=TaskId("t"), id=SpanId("1"), parent=None, name="a", start=2.0, end=None, work=ToolUse(name="search")),
        Span(task=TaskId("t"), id=SpanId("2"), parent=None, name="b", start=3.0, end=4.0, work=Retrieval(results=3)),
        Span(task=TaskId("t"), id=SpanId("3"), parent=None, name="c", start=4.0, end=5.0, work=Step(agent="planner")),
        Span(task=TaskId("t"), id=SpanId("4"), parent=None, name="d", start=5.0, end=6.0, work=HumanWait()),
    )
    with Store(tmp_path / "s.db") as store:
        store.write(spans[::-1])
        assert store.spans(TaskId("t")) == spans
        assert store.spans(TaskId("other")) == ()


def test_writing_a_span_again_replaces_it(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write([step("t", end=None)])
        store.write([step("t", end=9.0)])
        assert [span.end for span in store.spans(TaskId("t"))] == [9.0]


def test_the_same_span_id_in_two_tasks_is_two_spans(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write([step("a"), step("b")])
        assert {row.task for row in store.tasks()} == {"a", "b"}


def alike(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=8))
def test_nobody_shares_a_longer_beginning_than_the_neighbours(tmp_path: Path, names: set[str]) -> None:
    with Store(tmp_path / f"{hash(frozenset(names))}.db") as store:
        store.write([step(name) for name in names])
        for name in names:
            others = [*names - {name}]
            near = store.neighbours([TaskId(name)])
            assert set(near) <= set(others)
            assert max((alike(name, one) for one in near), default=0) == max(
                (alike(name, one) for one in others), default=0
            )


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
def test_any_number_of_spans_is_one_write(tmp_path: Path, count: int) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write([step("t", number) for number in range(count)])
        assert len(store.spans(TaskId("t"))) == count


def test_a_write_is_all_or_nothing(tmp_path: Path) -> None:
    bad = step("t", 200)
    lone_surrogate = Span(task=bad.task, id=bad.id, parent=None, name="\ud800", start=0.0, end=None, work=Step())
    with Store(tmp_path / "s.db") as store:
        with pytest.raises(ValueError, match="surrogate"):
            store.write([*(step("t", number) for number in range(100)), lone_surrogate])
        assert store.spans(TaskId("t")) == ()
        store.write([step("t")])
        assert len(store.spans(TaskId("t"))) == 1


def test_tasks_are_summed_up_newest_first(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write(
            [
                call("old", 1, "big", Usage(input_tokens=10, output_tokens=5), start=100.0),
                call("old", 2, "small", Usage(input_tokens=20, output_tokens=7), start=102.0),
                step("old", 3, start=101.0, end=101.5, error="tool_failed"),
                call("new", 1, "small", Usage(input_tokens=1, output_tokens=None), start=200.0),
            ]
        )
        new, old = store.tasks()
    assert (old.task, old.session, old.started_at, old.ended_at) == ("old", "chat-1", 100.0, 103.0)
    assert (old.spans, old.calls, old.errors, old.models, old.tokens.exact) == (3, 2, 1, ("big", "small"), 42)
    assert (new.task, new.calls, new.errors, new.models) == ("new", 1, 0, ("small",))
    assert new.tokens == Sum(1, 0, 1), "one unknown count makes the sum a lower bound"


def test_a_task_starts_when_the_person_was_done_waiting(tmp_path: Path) -> None:
    waited = Span(
        task=TaskId("t"), id=SpanId("w"), parent=None, name="human_wait", start=40.0, end=100.0, work=HumanWait()
    )
    with Store(tmp_path / "s.db") as store:
        store.write([waited, call("t", 1, "m", Usage(), start=100.0)])
        assert store.tasks()[0].started_at == 100.0


def test_tasks_can_be_narrowed(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write(
            [
                call("a", 1, "small", Usage(), start=1.0),
                step("b", 1, start=2.0, error="timeout"),
                call("c", 1, "a model, with commas", Usage(), start=3.0),
            ]
        )
        assert [row.task for row in store.tasks(2)] == ["c", "b"]
        assert [row.task for row in store.tasks(errors=True)] == ["b"]
        assert [row.task for row in store.tasks(model="small")] == ["a"]
        assert [row.task for row in store.tasks(model="a model, with commas")] == ["c"]
        assert store.tasks(0) == ()


def test_the_last_task_is_the_one_active_last(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        assert store.last() is None
        store.write([step("long", 1, start=1.0), step("short", 1, start=2.0), step("long", 2, start=3.0)])
        assert store.last() == "long"
        assert store.tasks()[0].task == "long"


def test_the_last_task_is_one_in_which_an_engine_was_reached(tmp_path: Path) -> None:
    def refused(task: str, start: float) -> Span:
        work = ModelCall(model="unknown", attempts=0)
        return structs.replace(step(task, start=start, error="bad_request"), work=work)

    with Store(tmp_path / "s.db") as store:
        store.write([refused("never", 1.0)])
        assert store.last() == "never", "there is no other"
        store.write([step("agents-own", start=2.0), refused("no", 3.0), refused("neither", 4.0)])
        assert store.last() == "agents-own"
        assert [row.refused for row in store.tasks()] == [True, True, False, True]


def test_a_task_is_found_by_its_beginning(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write([step("abc1"), step("abd2"), step("abd"), step("x%_y")])
        assert store.resolve("abc") == "abc1"
        assert store.resolve("abd") == "abd", "a whole id is never ambiguous"
        assert store.resolve("x%") == "x%_y"
        with pytest.raises(AmbiguousError, match=r"'ab': 'abc1', 'abd', 'abd2'\. Give more") as raised:
            store.resolve("ab")
        assert (raised.value.candidates, raised.value.more) == (("abc1", "abd", "abd2"), False)
        store.write([step(f"n{number}") for number in range(9)])
        with pytest.raises(AmbiguousError, match="…") as many:
            store.resolve("n")
        assert (len(many.value.candidates), many.value.more) == (8, True)


def test_one_task_is_summed_up_as_in_the_list(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write([step("a"), step("b", 1), step("b", 2)])
        assert store.row(TaskId("b")) == next(row for row in store.tasks() if row.task == "b")
        with pytest.raises(NotFoundError, match="no task 'c'"):
            store.row(TaskId("c"))


def test_an_unknown_task_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        with pytest.raises(NotFoundError, match="Nothing is recorded yet"):
            store.resolve("nightly")
        store.write([step("nightly-build"), step("zzz")])
        with pytest.raises(NotFoundError, match=r"The nearest: 'nightly-build'\. See them all"):
            store.resolve("nigthly-bild")
        with pytest.raises(NotFoundError, match="The nearest: 'zzz', 'nightly-build'"):
            store.resolve("%%%%%")


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ids=st.sets(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1), min_size=1, max_size=8)
)
def test_every_task_resolves_to_itself_whatever_its_name(tmp_path: Path, ids: set[str]) -> None:
    path = tmp_path / "any.db"
    path.unlink(missing_ok=True)
    with Store(path) as store:
        store.write([step(task) for task in ids])
        assert {store.resolve(task) for task in ids} == ids
        assert {row.task for row in store.tasks()} == ids
