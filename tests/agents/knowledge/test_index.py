from headway.agents.knowledge.documents import Document
from headway.agents.knowledge.embed import BATCH
from headway.agents.knowledge.fake import WordEmbedder
from headway.agents.knowledge.index import Index, build
from headway.agents.knowledge.text import Block, Content


async def test_the_nearest_come_first(ferry_index: Index) -> None:
    found = await ferry_index.search("who was told about the late ferry", 2)
    assert [passage.chunk.document for passage in found] == ["told.md", "ferry.md"]
    assert found[0].score > found[1].score


async def test_no_more_than_there_is(ferry_index: Index) -> None:
    assert len(await ferry_index.search("ferry", 99)) == 3


async def test_equally_near_ones_keep_the_order_of_the_documents(ferry_index: Index) -> None:
    found = await ferry_index.search("xylophone", 3)
    assert [passage.chunk.document for passage in found] == ["ferry.md", "told.md", "cakes.md"]


async def test_progress_is_told_after_each_batch() -> None:
    blocks = tuple(Block(f"text {number}", f"place {number}") for number in range(BATCH + 1))
    told: list[tuple[int, int]] = []
    document = Document(name="d", content=Content(title="", blocks=blocks))
    await build([document], WordEmbedder(), lambda done, total: told.append((done, total)))
    assert told == [(BATCH, BATCH + 1), (BATCH + 1, BATCH + 1)]
