import pytest
from hypothesis import given
from hypothesis import strategies as st
from unhurried import UNHURRIED

from headway.trace.scaling.curve import Point, Stretch, curve


def test_by_hand() -> None:
    """One from 0 to 4 with 8 of work, one from 2 to 6 with 4: 2 a second, then 3, then 1."""
    assert curve([Stretch(0, 4, 8), Stretch(2, 6, 4)]) == (Point(1, 1.5), Point(2, 3))


def test_pauses_count_for_nothing() -> None:
    assert curve([Stretch(0, 1, 5), Stretch(100, 101, 5)]) == (Point(1, 5),)


def test_a_width_that_was_hardly_there_is_left_out() -> None:
    found = curve([Stretch(0, 100, 100), Stretch(0, 100, 100), Stretch(99.5, 100, 1)])
    assert [point.width for point in found] == [2]


def test_what_took_no_time_or_did_nothing_is_left_out() -> None:
    assert curve([Stretch(1, 1, 5), Stretch(2, 1, 5), Stretch(0, 1, 0)]) == ()
    assert curve([]) == ()


@UNHURRIED
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20), st.integers(1, 9)), min_size=1, max_size=30))
def test_all_work_is_done_in_the_time_that_it_took(drawn: list[tuple[int, int, int]]) -> None:
    stretches = [Stretch(start, start + length, work) for start, length, work in drawn]
    busy = {second for stretch in stretches for second in range(int(stretch.start), int(stretch.end))}
    found = {point.width: point.rate for point in curve(stretches)}
    seconds = dict.fromkeys(found, 0)
    for second in busy:
        width = sum(stretch.start <= second < stretch.end for stretch in stretches)
        if width in seconds:
            seconds[width] += 1
    done = sum(found[width] * seconds[width] for width in found)
    total = sum(stretch.work for stretch in stretches)
    assert done <= total * 1.000001
    if sum(seconds.values()) == len(busy):
        assert done == pytest.approx(total)
