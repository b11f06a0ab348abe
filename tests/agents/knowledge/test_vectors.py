import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headway.agents.knowledge import vectors
from headway.agents.knowledge.fake import WordEmbedder
from headway.agents.knowledge.vectors import CachedEmbedder


async def test_what_was_embedded_once_comes_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "vectors.db"
    first = WordEmbedder()
    rows = await CachedEmbedder(first, path).passages(["a b", "c"])
    again = WordEmbedder()
    cached = CachedEmbedder(again, path)
    assert (await cached.passages(["c", "d", "a b"])).tolist() == [
        rows[1].tolist(),
        *(await first.query("d")).tolist(),
        rows[0].tolist(),
    ]
    assert again.embedded == ["d"]
    assert cached.trouble == ""


async def test_models_do_not_share_vectors_and_questions_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    await CachedEmbedder(WordEmbedder("one"), path).passages(["a"])
    other = WordEmbedder("two")
    await CachedEmbedder(other, path).query("a")
    await CachedEmbedder(other, path).passages(["a"])
    assert other.embedded == ["a"]


async def test_the_same_text_twice_in_a_batch_is_two_rows(tmp_path: Path) -> None:
    rows = await CachedEmbedder(WordEmbedder(), tmp_path / "v.db").passages(["a", "a"])
    assert np.array_equal(rows[0], rows[1])


async def test_the_text_itself_is_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "v.db"
    await CachedEmbedder(WordEmbedder(), path).passages(["secretword"])
    assert b"secretword" not in path.read_bytes()


def other_bytes(path: Path) -> None:
    path.write_bytes(b"not a database" * 100)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("spoil", [other_bytes, folder])
async def test_a_file_that_cannot_be_used_only_costs_time(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    path = tmp_path / "v.db"
    spoil(path)
    cached = CachedEmbedder(WordEmbedder(), path)
    assert (await cached.passages(["a"])).shape[0] == 1
    assert str(path) in cached.trouble


async def test_only_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "KEPT", 3)
    path = tmp_path / "v.db"
    for text in "abcde":
        await CachedEmbedder(WordEmbedder(), path).passages([text])
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM vector").fetchone() == (3,)
    db.close()
    late = WordEmbedder()
    await CachedEmbedder(late, path).passages(["c", "d", "e"])
    assert late.embedded == []
