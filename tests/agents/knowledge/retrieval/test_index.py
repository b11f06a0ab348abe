from pathlib import Path

import pytest

from headway.agents.knowledge.documents import Document
from headway.agents.knowledge.fake import WordEmbedder
from headway.agents.knowledge.retrieval.index import Index, build, coverage
from headway.agents.knowledge.text import Block, Content


def document(name: str, *texts: str) -> Document:
    blocks = tuple(Block(text, f"p{number}") for number, text in enumerate(texts))
    return Document(name=name, content=Content(title="Notes", blocks=blocks))


class Blind(WordEmbedder):
    """Finds nothing by meaning: all texts are the same to it."""

    async def query(self, text: str):  # noqa: ANN201 - as the class above
        del text
        return (await self.passages(["same"])) * 0


async def test_the_nearest_come_first(ferry_index: Index) -> None:
    found = await ferry_index.search("who was told about the late ferry", 2)
    assert [passage.chunk.document for passage in found] == ["told.md", "ferry.md"]
    assert found[0].score > found[1].score


async def test_no_more_than_there_is(ferry_index: Index) -> None:
    assert len(await ferry_index.search("ferry", 99)) == 3


async def test_equally_near_ones_keep_the_order_of_the_documents(ferry_index: Index) -> None:
    found = await ferry_index.search("xylophone", 3)
    assert [passage.chunk.document for passage in found] == ["cakes.md", "ferry.md", "told.md"]


async def test_words_find_what_the_meaning_does_not() -> None:
    texts = [f"something about subject {number}" for number in range(50)]
    with await build([document("d", *texts, "the code is E4711")], Blind()) as index:
        found = await index.search("What is E4711?", 1)
    assert found[0].chunk.text == "the code is E4711"
    assert found[0].coverage == 1.0


async def test_korean_words_are_found_whatever_is_joined_to_them() -> None:
    with await build([document("d", "부두가 닫혔다.", "정수장에서 물을 만든다.")], Blind()) as index:
        found = await index.search("정수장은 무엇인가요?", 2)
    assert found[0].chunk.text == "정수장에서 물을 만든다."


async def test_a_passage_that_stands_in_two_documents_is_found_once_and_both_are_named() -> None:
    same = "The ferry was late because a rope was in its propeller, and nobody had seen it."
    with await build([document("a", same), document("b", same), document("c", "cake")], WordEmbedder()) as index:
        found = await index.search("rope in the propeller", 2)
    assert [(passage.chunk.document, passage.also_in) for passage in found] == [("a", ("b",)), ("c", ())]


async def test_a_query_without_terms_is_searched_by_meaning_alone(ferry_index: Index) -> None:
    found = await ferry_index.search("why was it?", 3)
    assert len(found) == 3
    assert {passage.coverage for passage in found} == {0.0}


def test_coverage_counts_what_each_term_tells_apart() -> None:
    assert coverage("The keys of the vault", {"key": 3.0, "depot": 1.0}) == pytest.approx(0.75)
    assert coverage("anything", {}) == 0.0


async def test_an_index_without_passages_finds_nothing(tmp_path: Path) -> None:
    del tmp_path
    with await build([], WordEmbedder()) as index:
        assert await index.search("anything", 3) == ()
