import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.agents.knowledge.chunks import chunk
from headway.agents.knowledge.documents import Document
from headway.agents.knowledge.text import Block, Content, about_tokens


def document(*blocks: tuple[str, str], title: str = "T") -> Document:
    return Document(name="d.md", content=Content(title=title, blocks=tuple(Block(*block) for block in blocks)))


def texts(*blocks: tuple[str, str], budget: int) -> list[str]:
    return [part.text for part in chunk(document(*blocks), budget)]


def test_blocks_of_one_place_are_joined_while_they_fit() -> None:
    # "aaaa\nbbbb" is nine bytes: three tokens; a third block would make it fourteen bytes: four
    assert texts(("aaaa", "p"), ("bbbb", "p"), ("cccc", "p"), budget=3) == ["aaaa\nbbbb", "cccc"]


def test_places_are_never_joined() -> None:
    parts = chunk(document(("a", "p"), ("b", "q"), ("c", "p")), 100)
    assert [(part.place, part.text) for part in parts] == [("p", "a"), ("q", "b"), ("p", "c")]


def test_a_long_block_is_cut_between_sentences_then_words_then_anywhere() -> None:
    assert texts(("One two. Three four.", "p"), budget=3) == ["One two.", "Three four."]
    assert texts(("one two three", "p"), budget=2) == ["one two", "three"]
    assert texts(("abcdefgh", "p"), budget=1) == ["abcd", "efgh"]
    assert texts(("one twothree", "p"), budget=1) == ["one", "twot", "hree"]


def test_a_chunk_is_embedded_under_its_title_and_place() -> None:
    (part,) = chunk(document(("text", "Part > Sub")))
    assert part.for_embedding() == "T\nPart > Sub\ntext"
    (untitled,) = chunk(document(("text", ""), title=""))
    assert untitled.for_embedding() == "d.md\ntext"


BLOCKS = st.lists(
    st.tuples(st.text(st.characters(codec="utf-8"), max_size=80), st.sampled_from(["p", "q"])), max_size=8
)


@given(blocks=BLOCKS, budget=st.integers(1, 20))
def test_no_chunk_is_over_budget_and_nothing_but_white_space_is_lost(
    blocks: list[tuple[str, str]], budget: int
) -> None:
    cut = texts(*blocks, budget=budget)
    assert all(0 < about_tokens(text) <= budget for text in cut)
    assert "".join("".join(cut).split()) == "".join("".join(text for text, _ in blocks).split())


def test_korean_sentences_are_cut_too() -> None:
    assert texts(("등대가 꺼졌다. 배가 늦었다.", "p"), budget=6) == ["등대가 꺼졌다.", "배가 늦었다."]


@pytest.mark.parametrize("budget", [40, 160])
def test_cutting_twice_gives_the_same(budget: int) -> None:
    given_document = document(("word " * 300, "p"))
    assert chunk(given_document, budget) == chunk(given_document, budget)
