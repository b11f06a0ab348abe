from hypothesis import given
from hypothesis import strategies as st

from headway.agents.knowledge.retrieval.fusion import fuse

RANKINGS = st.lists(st.lists(st.integers(0, 30), unique=True), max_size=4)


def test_the_sum_of_reciprocal_ranks_decides() -> None:
    # b has 1/62 and 1/61, so 0.03252; a has 1/61 and 1/63, so 0.03227; c has 0.01613 and d 0.01587
    assert fuse([["a", "b", "d"], ["b", "c", "a"]]) == ["b", "a", "c", "d"]


def test_what_one_way_alone_finds_first_comes_before_what_the_other_finds_second() -> None:
    assert fuse([["a", "b"], ["x"]]) == ["a", "x", "b"]


@given(RANKINGS)
def test_all_that_was_named_is_there_once(rankings: list[list[int]]) -> None:
    fused = fuse(rankings)
    assert len(fused) == len(set(fused))
    assert set(fused) == {item for ranking in rankings for item in ranking}


@given(st.lists(st.integers(0, 30), unique=True), st.integers(1, 4))
def test_rankings_that_agree_are_kept(ranking: list[int], count: int) -> None:
    assert fuse([ranking] * count) == ranking


@given(RANKINGS, st.lists(st.integers(31, 60), unique=True))
def test_what_is_added_at_the_end_of_a_ranking_changes_no_order_of_the_others(
    rankings: list[list[int]], more: list[int]
) -> None:
    longer = [[*ranking, *more] for ranking in rankings]
    assert [item for item in fuse(longer) if item not in more] == fuse(rankings)
