"""The observer at work on a store: figures and lines, whatever becomes of the file."""

import io
import json
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import StoreError
from headway.core.span import ModelCall, Receipt, Span
from headway.core.task import SpanId, TaskId
from headway.gateway.observer.child import Observer, pieces
from headway.gateway.observer.watch import Watch
from headway.gateway.observer.whole_tasks import QUIET
from headway.trace.store import Store

SERVED = ModelCall(model="m", replica="a", attempts=1, route=Receipt(policy="p", winner="a", reason="free"))


def call(number: int, work: ModelCall = SERVED) -> Span:
    at = 1_790_000_000.0 + number
    own, task = SpanId(f"{number:016x}"), TaskId(f"t{number}")
    return Span(task=task, id=own, parent=None, name="chat m", start=at, end=at + 1, work=work, tenant="acme")


def watching(store: Store, log: io.StringIO, begin: int = 0) -> Observer:
    return Observer(Watch(store=str(store.path), begin=begin, calls=True, log_format="json"), log)


def tasks_of(log: io.StringIO) -> list[str]:
    return [json.loads(line)["task"] for line in log.getvalue().splitlines()]


def test_calls_are_told_at_once_and_tasks_when_they_are_over(tmp_path: Path) -> None:
    log = io.StringIO()
    with Store(tmp_path / "s.db") as store, closing(watching(store, log)) as observer:
        store.write([call(1), call(2), call(3, ModelCall(model="m", attempts=1))])  # the last is an agent's own
        assert not observer.step(0.0)
        assert tasks_of(log) == ["t1", "t2"]
        assert observer.tasks.open == 3
        observer.step(QUIET)
        page = "\n".join(observer.tasks.page())
        assert 'headway_task_calls_count{gen_ai_request_model="m",tenant="acme",status="ok"} 3' in page


def test_it_goes_on_where_another_ended(tmp_path: Path) -> None:
    log = io.StringIO()
    with Store(tmp_path / "s.db") as store:
        store.write([call(1)])
        with closing(watching(store, log)) as first:
            first.step(0.0)
        store.write([call(2)])
        with closing(watching(store, log, first.place)) as second:
            second.step(0.0)
    assert tasks_of(log) == ["t1", "t2"]


def test_a_store_that_is_removed_is_waited_for_and_begun_anew(tmp_path: Path) -> None:
    log = io.StringIO()
    with Store(tmp_path / "s.db") as store, closing(watching(store, log)) as observer:
        store.write([call(1)])
        observer.step(0.0)
        store.path.unlink()
        with pytest.raises(StoreError):
            observer.step(1.0)
        store.write([call(2)])
        observer.step(2.0)
    assert tasks_of(log) == ["t1", "t2"]


@given(
    st.lists(st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"]), max_size=6000), max_size=5)
)
def test_pieces_are_whole_lines_that_a_pipe_takes_at_once(lines: list[str]) -> None:
    found = list(pieces(lines))
    assert "".join(found) == "".join(f"{line}\n" for line in lines)
    assert all(len(piece.encode()) <= 4096 or piece.count("\n") == 1 for piece in found)
