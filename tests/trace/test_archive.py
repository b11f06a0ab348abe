import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tasks import call, step

from headway.core.errors import BadInputError, NotFoundError, StoreError
from headway.core.money import Price
from headway.core.task import SessionId, TaskId
from headway.core.usage import Usage
from headway.trace.archive import Archive, is_archive
from headway.trace.filed import Filed, put_away, taken_out
from headway.trace.prices import with_own
from headway.trace.sources.intake import Imported
from headway.trace.sources.verdict import judge


def made(name: str, end: float = 2.0) -> Imported:
    """A task of one call that reads a thousand tokens."""
    usage = Usage(input_tokens=1000, output_tokens=10, cache_read=0)
    spans = [step("r", 0, end, agent="helper"), call("c", 0, end, "r", usage=usage)]
    found = tuple(msgspec.structs.replace(span, task=TaskId(name), session=SessionId("s")) for span in spans)
    return Imported(
        task=TaskId(name), title=f"why {name}?", spans=found, verdict=judge(found, "made", "spans", ["Made."])
    )


def rows(archive: Archive) -> list[Filed]:
    return [Filed(facts=row.facts, verdict=row.verdict, packed=row.packed) for row in archive.rows()]


def test_what_was_put_in_comes_out_in_order(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "set.db"
    tasks = [put_away(made(name)) for name in ("b", "a", "c")]
    with Archive(path) as archive:
        assert archive.add(tasks) == 3
    with Archive(path, readonly=True) as archive:
        assert rows(archive) == tasks
        assert len(archive) == 3
        assert taken_out(next(archive.rows())) == made("b")
    assert is_archive(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["set.db"]


def test_a_task_that_is_there_already_is_replaced_in_its_place(tmp_path: Path) -> None:
    with Archive(tmp_path / "set.db") as archive:
        archive.add([put_away(made("a")), put_away(made("b"))])
        archive.add([put_away(made("a", end=5.0))])
        assert [(row.facts.task, row.facts.e2e) for row in archive.rows()] == [("a", 5.0), ("b", 2.0)]
        assert taken_out(next(archive.rows())) == made("a", end=5.0)


def test_an_import_that_fails_leaves_what_was(tmp_path: Path) -> None:
    def some() -> Iterator[Filed]:
        yield put_away(made("b"))
        raise RuntimeError

    path = tmp_path / "set.db"
    with Archive(path) as archive:
        archive.add([put_away(made("a"))])
        with pytest.raises(RuntimeError):
            archive.add(some())
        assert [row.facts.task for row in archive.rows()] == ["a"]


def test_other_prices_are_asked_for_anew(tmp_path: Path) -> None:
    own = with_own({"m": Price(input=2_000_000, output=0)})
    with Archive(tmp_path / "set.db") as archive:
        archive.add([put_away(made("a"))])
        assert [row.facts.spent.cost.exact for row in archive.rows()] == [None]
        (row,) = archive.rows(own)
        assert (row.facts.spent.cost.exact, row.facts.title) == (2000, "why a?")  # a thousand tokens at $2 a million
        archive.add([put_away(made("a"), own)], own)
        assert [row.facts.spent.cost.exact for row in archive.rows(own)] == [2000]
        assert [row.facts.spent.cost.exact for row in archive.rows()] == [None]


def test_rows_of_another_headway_are_worked_out_anew(tmp_path: Path) -> None:
    path = tmp_path / "set.db"
    with Archive(path) as archive:
        archive.add([put_away(made("a"))])
    with sqlite3.connect(path) as db:
        db.execute("UPDATE task SET made_by = 'older', facts = x'00'")
    db.close()
    with Archive(path, readonly=True) as archive:
        assert rows(archive) == [put_away(made("a"))]


def test_others_read_what_was_while_one_writes_and_no_two_write(tmp_path: Path) -> None:
    path = tmp_path / "set.db"

    def while_writing() -> Iterator[Filed]:
        with Archive(path, readonly=True, patience=0) as reader:
            assert [row.facts.task for row in reader.rows()] == ["a"]
        with pytest.raises(StoreError, match="Another process is writing"):
            Archive(path, patience=0)
        yield put_away(made("b"))

    with Archive(path) as archive:
        archive.add([put_away(made("a"))])
        archive.add(while_writing())
        assert len(archive) == 2


def test_what_is_no_archive_is_told_so(tmp_path: Path) -> None:
    other, text, newer, empty = (tmp_path / name for name in ("other.db", "text", "newer.db", "empty"))
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (a)")
    db.close()
    text.write_bytes(b"{}\n" * 400)
    empty.touch()
    with Archive(newer):
        pass
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version = 9")
    db.close()
    for path, why in ((other, "no archive"), (text, "no archive"), (newer, "schema version 9")):
        for readonly in (True, False):
            with pytest.raises(BadInputError, match=why):
                Archive(path, readonly=readonly)
    with pytest.raises(BadInputError, match="no archive"):
        Archive(empty, readonly=True)
    with pytest.raises(NotFoundError, match="headway import"):
        Archive(tmp_path / "absent", readonly=True)
    assert [is_archive(path) for path in (other, text, newer, empty, tmp_path, tmp_path / "absent")] == [
        False, False, True, False, False, False,
    ]  # fmt: skip


def test_damage_is_told(tmp_path: Path) -> None:
    path = tmp_path / "set.db"
    with Archive(path) as archive:
        archive.add(put_away(made(f"{n}")) for n in range(200))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(BadInputError, match="damaged"), Archive(path, readonly=True) as archive:
        rows(archive)
    path.write_bytes(data)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE spans SET packed = x'1234'")
        db.execute("DELETE FROM spans WHERE number = 2")
    db.close()
    with Archive(path, readonly=True) as archive:
        first, second, *_ = archive.rows()
        with pytest.raises(BadInputError, match="damaged"):
            taken_out(first)
        with pytest.raises(BadInputError, match="no spans"):
            taken_out(second)


def test_a_row_that_is_none_is_told(tmp_path: Path) -> None:
    path = tmp_path / "set.db"
    with Archive(path) as archive:
        archive.add([put_away(made("a"))])
    with sqlite3.connect(path) as db:
        db.execute("UPDATE task SET facts = x'00'")
    db.close()
    with Archive(path, readonly=True) as archive, pytest.raises(BadInputError, match="damaged"):
        rows(archive)
