"""A follower sees each span that is written, in order, whatever else happens to the file."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.errors import StoreError
from headway.core.span import Span, Step
from headway.core.task import SpanId, TaskId
from headway.trace.follow import Follower
from headway.trace.store import Store


def span(number: int, *, task: str = "t", name: str = "n", start: float | None = None) -> Span:
    at = float(number) if start is None else start
    return Span(task=TaskId(task), id=SpanId(f"{number:016x}"), parent=None, name=name, start=at, end=at, work=Step())


def numbers(spans: Iterable[Span]) -> list[int]:
    return [int(one.id, 16) for one in spans]


def test_spans_come_in_the_order_of_their_writing_and_no_more_than_asked_for(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Follower(store.path) as follower:
        store.write([span(3), span(1), span(2)])
        first = follower.after(0, 2)
        assert numbers(first.spans) == [3, 1]
        second = follower.after(first.place, 2)
        assert numbers(second.spans) == [2]
        assert second.place == follower.end()
        assert follower.after(second.place, 2).spans == ()
        assert len(follower.after(0, 10, most_bytes=1).spans) == 1


def test_a_span_that_is_written_again_comes_again_even_if_it_was_the_last(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Follower(store.path) as follower:
        store.write([span(1), span(2)])
        place = follower.after(0, 10).place
        store.write([span(2, name="told more")])
        (again,) = follower.after(place, 10).spans
        assert again.name == "told more"


def test_the_place_is_there_after_a_restart_and_each_name_has_its_own(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        with Follower(store.path, "a") as follower:
            assert follower.place() is None
            follower.keep(7)
            follower.keep(8)
        with Follower(store.path, "a") as again, Follower(store.path, "b") as other:
            assert (again.place(), other.place()) == (8, None)


def test_a_file_that_was_replaced_is_told_and_has_no_place(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Follower(store.path, "a") as follower:
        follower.keep(5)
        assert not follower.gone
        store.path.unlink()
        assert follower.gone
        store.write([span(1)])
        assert follower.gone
        with Follower(store.path, "a") as fresh:
            assert (fresh.place(), numbers(fresh.after(0, 9).spans)) == (None, [1])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 30)), min_size=1, max_size=40), st.integers(1, 4))
def test_room_that_is_made_hides_no_span_that_comes_after(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[int, int]], every: int
) -> None:
    """A store so small that each write makes room, in tasks whose last span may be the newest there is."""
    path = tmp_path_factory.mktemp("s") / "s.db"
    with Store(path, max_bytes=1) as store, Follower(path) as follower:
        place, seen = 0, set[int]()
        for number, (task, start) in enumerate(writes, 1):
            store.write([span(number, task=f"t{task}", start=float(start))])
            if number % every == 0:
                stretch = follower.after(place, 100)
                place = stretch.place
                seen |= set(numbers(stretch.spans))
                assert number in seen, "the newest span is always there to be seen"


def test_the_first_span_of_all_is_not_passed_over_however_it_falls(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Follower(store.path) as follower:
        asked: list[str] = []

        def written_before_the_second_question(question: str) -> None:
            asked.append(question)
            if len(asked) == 2:
                store.write([span(1)])

        watch = follower._db.set_trace_callback  # pyright: ignore[reportPrivateUsage] - no other way to that moment
        watch(written_before_the_second_question)
        assert follower.begin() == 0


def test_what_is_no_store_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be followed"):
        Follower(tmp_path / "missing.db")
