from hypothesis import given
from hypothesis import strategies as st

from headway.core.spent import NOTHING, Spent, Sum, added, summed, together

counts = st.lists(st.none() | st.integers(0, 10**9))


def test_a_sum_of_which_a_part_is_unknown_is_a_lower_bound() -> None:
    one = summed([3, None, 4])
    assert one == Sum(7, 2, 3)
    assert (one.exact, one.least, one.partial) == (None, 7, True)


def test_a_sum_of_which_nothing_is_known_bounds_nothing() -> None:
    one = summed([None, None])
    assert (one.exact, one.least, one.partial) == (None, None, False)


def test_what_is_known_in_part_alone_is_a_bound_too() -> None:
    """A call that tells what it read and not what it wrote."""
    assert Sum(5, 0, 1).least == 5
    assert Sum(5, 0, 1).partial


def test_no_parts_are_nothing_and_zeros_are_known() -> None:
    assert summed([]) == NOTHING
    assert (NOTHING.exact, NOTHING.least) == (0, 0)
    assert (summed([0]).exact, summed([0]).least) == (0, 0)


def test_a_known_0_beside_an_unknown_part_bounds_nothing() -> None:
    one = summed([0, None])
    assert (one.exact, one.least, one.partial) == (None, None, False)


def test_tasks_are_put_together_field_by_field() -> None:
    one = Spent(input_tokens=Sum(1, 1, 2), cost=Sum(5, 2, 2))
    two = Spent(input_tokens=Sum(10, 3, 3), output_tokens=Sum(4, 3, 3))
    assert together([one, two]) == Spent(input_tokens=Sum(11, 4, 5), output_tokens=Sum(4, 3, 3), cost=Sum(5, 2, 2))


@given(st.lists(counts))
def test_parts_may_be_grouped_as_one_likes(groups: list[list[int | None]]) -> None:
    assert added(map(summed, groups)) == summed([count for group in groups for count in group])


@given(counts, st.data())
def test_what_is_learnt_later_never_lowers_the_bound(known: list[int | None], data: st.DataObject) -> None:
    whole = [count if count is not None else data.draw(st.integers(0, 10)) for count in known]
    least = summed(known).least
    assert least is None or least <= sum(whole)
    assert summed(whole).exact == sum(whole)
