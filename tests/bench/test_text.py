from hypothesis import given
from hypothesis import strategies as st

from headway.bench.text import words


@given(st.integers(1, 500), st.integers(1, 500), st.text(max_size=20))
def test_a_longer_text_begins_with_a_shorter_of_the_same_seed(one: int, other: int, seed: str) -> None:
    short, long = sorted((one, other))
    assert f"{words(long, seed)} ".startswith(f"{words(short, seed)} ")
    assert len(words(long, seed).split()) == long


def test_other_seeds_give_other_texts() -> None:
    texts = {words(50, f"salt/{number}") for number in range(500)}
    assert len(texts) == 500
