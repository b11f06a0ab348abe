"""An index on disk and its documents: what has changed is embedded, what is gone leaves, and nothing else happens."""

import asyncio
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.agents.knowledge.embed import BATCH
from headway.agents.knowledge.fake import WordEmbedder
from headway.agents.knowledge.retrieval.index import Index
from headway.agents.knowledge.retrieval.index_file import IndexFile
from headway.agents.knowledge.retrieval.updating import Update, update
from headway.core.errors import BadInputError, NotFoundError, UpstreamError

Matrix = NDArray[np.float32]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "ferry.md").write_text("# Ferry\n\n## Cause\n\nA rope.\n\n## Told\n\nThe harbour master.\n")
    (folder / "cakes.md").write_text("# Cakes\n\nPlums on Sundays.\n")
    return folder


async def brought(docs: Path, path: Path, embedder: WordEmbedder | None = None) -> Update:
    with IndexFile(path) as file:
        return await update(file, [docs], embedder or WordEmbedder())


async def test_the_first_time_all_is_embedded_and_the_next_time_nothing(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "index.db"
    first = await brought(docs, path)
    assert (first.added, first.embedded) == (("cakes.md", "ferry.md"), 3)
    embedder = WordEmbedder()
    second = await brought(docs, path, embedder)
    assert second == Update(unchanged=("cakes.md", "ferry.md"))
    assert embedder.embedded == []
    assert path.stat().st_mode & 0o777 == 0o600


async def test_of_a_changed_document_only_the_changed_passage_is_embedded(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    await brought(docs, path)
    (docs / "ferry.md").write_text("# Ferry\n\n## Cause\n\nA rope.\n\n## Told\n\nNobody.\n")
    embedder = WordEmbedder()
    done = await brought(docs, path, embedder)
    assert (done.changed, done.unchanged, done.embedded) == (("ferry.md",), ("cakes.md",), 1)
    assert embedder.embedded == ["Ferry\nTold\nNobody."]
    with Index(IndexFile(path), embedder) as index:
        assert [chunk.text for chunk in index.chunks] == ["Plums on Sundays.", "A rope.", "Nobody."]
        assert await index.search("harbour master", 9) != ()
        assert all(passage.coverage == 0 for passage in await index.search("harbour", 9))


async def test_what_is_gone_leaves_with_its_words_and_vectors(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    await brought(docs, path)
    (docs / "cakes.md").unlink()
    done = await brought(docs, path)
    assert done.removed == ("cakes.md",)
    with IndexFile(path) as file:
        ids, chunks, vectors = file.load()
        assert [chunk.document for chunk in chunks] == ["ferry.md", "ferry.md"]
        assert len(ids) == len(vectors) == 2
        assert file.matching(["plum"], 9) == []
        assert file.frequency("plum") == 0
        assert file.frequency("rope") == 1
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM vector").fetchone() == (2,)


async def test_a_file_that_was_moved_keeps_its_vectors(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    await brought(docs, path)
    (docs / "cakes.md").rename(docs / "baking.md")
    done = await brought(docs, path)
    assert (done.added, done.removed, done.embedded) == (("baking.md",), ("cakes.md",), 0)


async def test_another_embedding_model_embeds_all_anew(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    await brought(docs, path)
    other = WordEmbedder("other")
    done = await brought(docs, path, other)
    assert (done.changed, done.embedded) == (("cakes.md", "ferry.md"), 3)


async def test_a_bad_document_is_told_each_time_and_read_once(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    (docs / "broken.pdf").write_bytes(b"%PDF-1.7 nonsense")
    (docs / "photo.png").write_bytes(b"\x89PNG")
    first, second = await brought(docs, path), await brought(docs, path)
    assert [problem.name for problem in first.problems] == ["broken.pdf", "photo.png"]
    assert second.problems == first.problems
    assert second.unchanged == ("broken.pdf", "cakes.md", "ferry.md")
    (docs / "broken.pdf").unlink()
    assert [problem.name for problem in (await brought(docs, path)).problems] == ["photo.png"]


async def test_where_nothing_can_be_read_the_index_stays_as_it_is(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    await brought(docs, path)
    for name in ("cakes.md", "ferry.md"):
        (docs / name).write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(BadInputError, match=r"could be read: cakes\.md is not UTF-8"):
        await brought(docs, path)
    with IndexFile(path) as file:
        assert len(file.load()[0]) == 3


async def test_progress_counts_what_is_embedded_and_not_what_was_there(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    await brought(docs, path)
    (docs / "long.md").write_text("\n\n".join(f"## Part {n}\n\nText {n}." for n in range(BATCH + 1)))
    told: list[tuple[int, int]] = []
    with IndexFile(path) as file:
        await update(file, [docs], WordEmbedder(), lambda done, of: told.append((done, of)))
    assert told == [(BATCH, BATCH + 1), (BATCH + 1, BATCH + 1)]


async def test_several_folders_are_told_apart_and_a_file_in_two_of_them_counts_once(tmp_path: Path) -> None:
    for name in ("one/docs", "two/docs", "three"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.md").write_text(f"Words of {name}.")
    roots = [tmp_path / "one/docs", tmp_path / "two/docs", tmp_path / "three", tmp_path / "three/a.md"]
    with IndexFile(None) as file:
        done = await update(file, roots, WordEmbedder())
    assert done.added == (f"{tmp_path}/one/docs/a.md", f"{tmp_path}/two/docs/a.md", "three/a.md")
    with IndexFile(None) as file, pytest.raises(NotFoundError, match="no documents at"):
        await update(file, [tmp_path / "three", tmp_path / "four"], WordEmbedder())


async def test_two_at_once_come_to_the_same_index(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    one, two = await asyncio.gather(brought(docs, path), brought(docs, path))
    assert one.added == two.added == ("cakes.md", "ferry.md")
    assert (await brought(docs, path)).unchanged == ("cakes.md", "ferry.md")
    with IndexFile(path) as file:
        assert [chunk.document for chunk in file.load()[1]] == ["cakes.md", "ferry.md", "ferry.md"]
        assert file.frequency("rope") == 1


async def test_an_embedder_that_fails_in_the_middle_loses_only_what_it_was_at(docs: Path, tmp_path: Path) -> None:
    class Failing(WordEmbedder):
        async def passages(self, texts: Sequence[str]) -> Matrix:
            if any("rope" in text for text in texts):
                raise UpstreamError("it is gone")
            return await super().passages(texts)

    path = tmp_path / "index.db"
    with pytest.raises(UpstreamError):
        await brought(docs, path, Failing())
    embedder = WordEmbedder()
    done = await brought(docs, path, embedder)
    assert (done.unchanged, done.added, done.embedded) == (("cakes.md",), ("ferry.md",), 2)


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"\0" * 2000])
def test_a_file_that_is_something_else_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "index.db"
    path.write_bytes(content)
    with pytest.raises(BadInputError, match="index of documents"):
        IndexFile(path)
    assert path.read_bytes() == content


def test_a_database_of_others_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE document (mine)")
    with pytest.raises(BadInputError, match="no index of documents"):
        IndexFile(path)


async def test_an_index_of_another_version_is_made_anew(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    await brought(docs, path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    assert (await brought(docs, path)).embedded == 3


CONTENT = st.sampled_from(["", "rope", "rope and ferry", "plum cake", "부두가 닫혔다", "# T\n\nrope\n\n## P\n\nplum"])
STEP = st.dictionaries(st.sampled_from(["a.md", "b.md", "c.txt"]), CONTENT, min_size=1)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEP, min_size=1, max_size=4))
def test_an_index_that_was_kept_up_to_date_is_the_same_as_a_fresh_one(steps: list[dict[str, str]]) -> None:
    async def run(folder: Path) -> None:
        embedder = WordEmbedder()
        with IndexFile(None) as kept:
            for step in steps:
                for name in ("a.md", "b.md", "c.txt"):
                    (folder / name).unlink(missing_ok=True)
                    if name in step:
                        (folder / name).write_text(step[name])
                (folder / "always.md").write_text("always here")
                await update(kept, [folder], embedder)
            with IndexFile(None) as fresh:
                await update(fresh, [folder], embedder)
                old, new = Index(kept, embedder), Index(fresh, embedder)
                assert old.chunks == new.chunks
                assert kept.load()[2].tolist() == fresh.load()[2].tolist()
                for query in ("rope", "ferry plum", "부두에서", "nothing"):
                    assert await old.search(query, 9) == await new.search(query, 9)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
