"""The file of a store: whose it is, who else may use it, what happens when it cannot be used."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from stored import call, step

from headway.core.errors import BadInputError, NotFoundError, StoreError
from headway.core.task import TaskId
from headway.core.usage import Usage
from headway.trace.store import Store


def start_writer(path: Path, task: str, spans: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", WRITER, str(path), task, str(spans)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - this interpreter, the script below


WRITER = """
import sys
from pathlib import Path
from headway.core.span import Span, Step
from headway.trace.store import Store

path, task, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
store = Store(path, patience=30)
number = 0
while count < 0 or number < count:
    store.write([
        Span(task=task, id=f"{number + i:016x}", parent=None, name="step", start=number + i, end=None, work=Step())
        for i in range(10)
    ])
    number += 10
    print(number, flush=True)
"""


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "dir" / "s.db"
    with Store(path) as store:
        store.write([step("t")])
        for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_reader_changes_nothing_and_makes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with pytest.raises(NotFoundError, match="headway serve"):
        Store(path, readonly=True)
    assert not path.exists()
    path.touch()
    with pytest.raises(NotFoundError, match="headway serve"):
        Store(path, readonly=True)
    with Store(path) as store:
        store.write([step("t")])
        with Store(path, readonly=True) as reader:
            assert reader.last() == "t"
            with pytest.raises(StoreError, match="readonly"):
                reader.write([step("u")])


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    text, foreign = tmp_path / "notes.db", tmp_path / "foreign.db"
    text.write_text("these are not spans at all, but they are long enough to be taken for a header " * 20)
    with closing(sqlite3.connect(foreign)) as db:
        db.execute("CREATE TABLE t (x)")
    before = foreign.read_bytes()
    for readonly in (True, False):
        with pytest.raises(BadInputError, match=r"notes\.db is not a store .*--store"):
            Store(text, readonly=readonly)
        with pytest.raises(BadInputError, match=r"foreign\.db is a SQLite file, but not a store .*--store"):
            Store(foreign, readonly=readonly)
    assert foreign.read_bytes() == before


def test_a_directory_in_its_place_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="--store"):
        Store(tmp_path)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Store(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 7")
    with pytest.raises(BadInputError, match="schema version 7; this Headway reads up to 2"):
        Store(path)


VERSION_1 = """
CREATE TABLE span (
    task TEXT NOT NULL, id TEXT NOT NULL, parent TEXT, session TEXT, kind TEXT NOT NULL, name TEXT NOT NULL,
    start REAL NOT NULL, "end" REAL, error TEXT, model TEXT, tokens INTEGER, body BLOB NOT NULL,
    PRIMARY KEY (task, id)
);
CREATE INDEX span_by_start ON span (start, task);
PRAGMA application_id = 0x48445759;
PRAGMA user_version = 1;
"""


def test_a_store_of_the_first_version_is_read_and_carried_over(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    old = [call("t", number, "m", Usage(input_tokens=1, output_tokens=2), start=float(number)) for number in range(3)]
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(VERSION_1)
        for one in old:
            row = one.task, one.id, None, one.session, "call", one.name, one.start, one.end, None, "m", 3
            db.execute("INSERT INTO span VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", (*row, msgspec.msgpack.encode(one)))
    for readonly in (True, False):
        with Store(path, readonly=readonly) as store:
            assert store.spans(TaskId("t")) == tuple(old)
            assert store.row(TaskId("t")).tokens.exact == 9
    with Store(path) as store:
        store.write([old[0], step("new", start=9.0)])
        assert [(row.task, row.spans) for row in store.tasks()] == [("new", 1), ("t", 3)]


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store(path) as store:
        store.write([step(f"t{number}", number) for number in range(2000)])
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * 20)
    with Store(path, readonly=True) as store, pytest.raises(BadInputError, match=r"s\.db .*damaged"):
        store.tasks(1000)


def test_a_body_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store(path) as store:
        store.write([step("t")])
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("UPDATE span SET body = x'00'")
        for read in (store.spans, store.row):
            with pytest.raises(BadInputError, match="span of task t that cannot be read"):
                read(TaskId("t"))


def test_a_store_that_others_hold_says_so(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store(path, patience=0.0) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="Another process is writing"):
            store.write([step("t")])
        other.execute("COMMIT")
        store.write([step("t")])
        assert store.last() == "t"


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.last()


def test_the_oldest_tasks_make_room_for_the_newest(tmp_path: Path) -> None:
    bound = 256 * 1024
    with Store(tmp_path / "s.db", max_bytes=bound) as store:
        for task in range(100):
            start = float(task)
            store.write([step(f"t{task:03}", number, start=start + number / 1000) for number in range(50)])
        rows = store.tasks(1000)
        size = store.size()
    kept = [row.task for row in rows]
    assert size <= bound
    assert 1 < len(kept) < 100
    assert kept == [f"t{task:03}" for task in range(99, 99 - len(kept), -1)], "the newest stay, without gaps"
    assert {row.spans for row in rows} == {50}, "no task is cut in half"


def test_threads_share_a_store(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        seen: list[int] = []

        def write(task: str) -> None:
            for number in range(40):
                store.write([step(task, number)])

        def read() -> None:
            seen.extend(row.spans for _ in range(40) for row in store.tasks())

        threads = [threading.Thread(target=write, args=(f"t{n}",)) for n in range(3)] + [threading.Thread(target=read)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [row.spans for row in store.tasks()] == [40, 40, 40]
        assert all(0 < spans <= 40 for spans in seen)


def test_processes_write_at_once_while_others_read(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    writers = [start_writer(path, f"t{n}", 200) for n in range(3)]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    with Store(path, readonly=True) as reader:
        while any(writer.poll() is None for writer in writers):
            assert all(row.spans % 10 == 0 for row in reader.tasks()), "a batch is seen whole or not at all"
            for writer in writers:
                assert writer.stdout is not None
                writer.stdout.readline()
        for writer in writers:
            writer.communicate()
        assert [(row.task, row.spans) for row in sorted(reader.tasks(), key=lambda row: row.task)] == [
            ("t0", 200),
            ("t1", 200),
            ("t2", 200),
        ]
    assert [writer.returncode for writer in writers] == [0, 0, 0]


def test_a_killed_writer_loses_only_what_it_had_not_written(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with start_writer(path, "t", -1) as writer:
        assert writer.stdout is not None
        confirmed = [int(writer.stdout.readline()) for _ in range(20)][-1]
        os.kill(writer.pid, signal.SIGKILL)
    assert confirmed == 200
    with Store(path, readonly=True) as store:
        spans = store.spans(TaskId("t"))
        assert len(spans) >= confirmed
        assert len(spans) % 10 == 0, "whole batches only"
        assert [span.id for span in spans] == [f"{number:016x}" for number in range(len(spans))]
    with Store(path) as store:
        store.write([step("after")])
        assert store.resolve("after") == "after"
