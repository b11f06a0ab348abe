from hypothesis import given
from hypothesis import strategies as st

from headway.agents.knowledge.retrieval.repeats import without_repeats

LONG = "the ferry was late because a rope was in its propeller and nobody had seen it before the boat left"


def test_a_text_that_says_the_same_is_named_beside_the_first() -> None:
    assert without_repeats([LONG, "something else", f"{LONG.capitalize()}."], 3) == [(0, (2,)), (1, ())]


def test_repeats_are_found_beyond_those_that_are_wanted_and_new_ones_are_not_taken() -> None:
    assert without_repeats([LONG, "other words here", LONG], 1) == [(0, (2,))]


def test_a_changed_figure_keeps_short_texts_apart() -> None:
    assert len(without_repeats(["The limit is 400.", "The limit is 500."], 2)) == 2


@given(st.lists(st.text(max_size=40), max_size=12), st.integers(1, 12))
def test_each_text_is_kept_named_or_beyond_what_was_wanted(texts: list[str], most: int) -> None:
    found = without_repeats(texts, most)
    named = [at for kept, repeats in found for at in (kept, *repeats)]
    assert len(named) == len(set(named))
    assert len(found) <= most
    assert len(found) == most or set(named) == set(range(len(texts)))
    assert [kept for kept, _ in found] == sorted(kept for kept, _ in found)
