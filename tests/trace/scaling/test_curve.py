import pytest
from hypothesis import given
from hypothesis import strategies as st
from unhurried import UNHURRIED

from headway.trace.scaling.curve import Point, Stretch, crowding, curve


def test_by_hand() -> None:
    """One from 0 to 4 with 8 of work, one from 2 to 6 with 4: in 6 s 12 are done, by 8 / 6 at once."""
    (point,) = curve([Stretch(0, 4, 8), Stretch(2, 6, 4)])
    assert (point.width, point.rate, point.seconds) == (pytest.approx(8 / 6), 2, 6)


def test_eight_places_are_seen_through_the_waiting() -> None:
    """32 jobs of a second at 16 at once and eight places: half of the first 16 wait a second, so do all that follow.

    In 4 s 32 are done, 8 a second. For three of them 16 are under way, in the last 8: 14 on average.
    """
    waves = [(0, 1), (0, 2), (1, 3), (2, 4)]
    (point,) = curve([Stretch(start, end, 1) for start, end in waves for _ in range(8)])
    assert (point.width, point.rate) == (14, 8)


def test_what_never_rests_is_cut_after_ten_lengths() -> None:
    """Two a second, then four, without a pause."""
    two = [Stretch(at, at + 1, 1) for at in range(20) for _ in range(2)]
    four = [Stretch(at, at + 1, 1) for at in range(20, 40) for _ in range(4)]
    assert curve([*two, *four]) == (Point(2, 2, 20), Point(4, 4, 20))


def test_crowding_by_hand() -> None:
    """The first has 2 s alone and 2 s with the second, which then has 2 s alone; the third is alone."""
    assert crowding([Stretch(0, 4, 1), Stretch(2, 6, 1), Stretch(8, 9, 1), Stretch(8, 8, 1)]) == [1.5, 1.5, 1, 1]
    assert crowding([]) == []


def test_pauses_count_for_nothing() -> None:
    assert curve([Stretch(0, 1, 5), Stretch(100, 101, 5)]) == (Point(1, 5, 2),)


def test_a_width_that_was_hardly_there_is_left_out() -> None:
    long = [Stretch(at, at + 1, 1) for at in range(0, 400, 2)]
    found = curve([*long, Stretch(1000, 1000.5, 1), Stretch(1000, 1000.5, 1)])
    assert [point.width for point in found] == [1]


def test_what_took_no_time_or_did_nothing_is_left_out() -> None:
    assert curve([Stretch(1, 1, 5), Stretch(2, 1, 5), Stretch(0, 1, 0)]) == ()
    assert curve([]) == ()


@UNHURRIED
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20), st.integers(1, 9)), min_size=1, max_size=30))
def test_all_work_is_done_in_the_time_that_it_took(drawn: list[tuple[int, int, int]]) -> None:
    stretches = [Stretch(start, start + length, work) for start, length, work in drawn]
    points = curve(stretches)
    busy = {second for piece in stretches for second in range(int(piece.start), int(piece.end))}
    seconds = sum(point.seconds for point in points)
    assert seconds == pytest.approx(len(busy), rel=0.1)
    if seconds == pytest.approx(len(busy)):  # no width was left out
        assert sum(p.rate * p.seconds for p in points) == pytest.approx(sum(piece.work for piece in stretches))
        assert sum(p.width * p.seconds for p in points) == pytest.approx(sum(length for _, length, _ in drawn))
    assert len({round(point.width) for point in points}) == len(points)
