from hypothesis import given
from hypothesis import strategies as st
from loads import NOTHING
from msgspec import structs

from headway.bench.figures import wilson
from headway.bench.sweep import Level, between, swept


def level(tasks: int, good: int | None, *, rate: float = 1.0, troubles: tuple[str, ...] = ()) -> Level:
    """A level of twenty tasks, ``good`` of which kept their SLOs."""
    share = None if good is None else wilson(good, 20)
    return Level(
        tasks=tasks,
        figures=structs.replace(NOTHING, tasks=20, tasks_per_second=rate, attained=share),
        troubles=troubles,
    )


def test_nineteen_of_twenty_are_enough_and_eighteen_are_not() -> None:
    assert level(1, 19).kept is True
    assert level(1, 18).kept is False
    assert level(1, None).kept is None


def test_the_border_is_the_most_below_all_that_failed() -> None:
    found = swept([level(8, 3), level(1, 20), level(2, 20), level(4, 10), level(16, 20)])
    assert [one.tasks for one in found.levels] == [1, 2, 4, 8, 16]
    assert (found.most, found.beyond) == (2, 4), "16 kept them by luck: 4 and 8 had not"


def test_a_level_that_the_client_spoiled_says_nothing() -> None:
    found = swept([level(1, 20), level(2, 0, troubles=("late",)), level(4, 20)])
    assert (found.most, found.beyond) == (4, None)


def test_without_slos_there_is_no_border() -> None:
    found = swept([level(1, None), level(2, None)])
    assert (found.most, found.beyond, found.knee) == (None, None, None)


def test_the_knee_is_of_tasks_per_second() -> None:
    """Four places: the rate grows with the tasks up to four, and not after."""
    found = swept([level(n, None, rate=min(n, 4)) for n in (1, 2, 3, 4, 6, 8, 12)])
    assert found.knee is not None
    assert found.knee.width == 4


@given(st.integers(0, 200), st.integers(1, 200))
def test_halving_ends_at_the_border(border: int, highest: int) -> None:
    """An endpoint that holds exactly ``border`` tasks is found to, by as many levels as halving takes."""
    levels = [level(highest, 20 if highest <= border else 0)]
    while (count := between(levels)) is not None:
        levels.append(level(count, 20 if count <= border else 0))
        assert len(levels) <= 10
    found = swept(levels)
    if highest <= border:
        assert (found.most, found.beyond) == (highest, None)
    else:
        assert (found.most or 0, found.beyond) == (border, border + 1)
