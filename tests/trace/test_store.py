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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from headway.core.errors import AmbiguousError, BadInputError, NotFoundError, StoreError
from headway.core.money import MicroUsd
from headway.core.span import Candidate, ErrorType, HumanWait, Itl, ModelCall, Receipt, Retrieval, Span, Step, ToolUse
from headway.core.spent import Sum
from headway.core.task import Identity, SessionId, SpanId, TaskId
from headway.core.usage import EngineTimings, Usage
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


def step(task: str, number: int = 0, *, start: float = 0.0, end: float | None = None, error: str | None = None) -> Span:
    return Span(
        task=TaskId(task),
        id=SpanId(f"{number:016x}"),
        parent=None,
        name="step",
        start=start,
        end=end,
        work=Step(),
        error=None if error is None else ErrorType(error),
    )


def call(task: str, number: int, model: str, usage: Usage, *, start: float = 0.0) -> Span:
    return Span(
        task=TaskId(task),
        id=SpanId(f"{number:016x}"),
        parent=None,
        name=f"chat {model}",
        start=start,
        end=start + 1.0,
        work=ModelCall(model=model, usage=usage),
        session=SessionId("chat-1"),
    )


FULL = Span(
    task=TaskId("t"),
    id=SpanId("00000000000000aa"),
    parent=SpanId("00000000000000ab"),
    name="chat tiny",
    start=1.25,
    end=3.5,
    session=SessionId("s"),
    error=ErrorType("upstream_closed"),
    text=("the prompt", "the answer"),
    work=ModelCall(
        model="tiny",
        provider="local",
        replica="r1",
        stream=True,
        queued=0.125,
        sent=1.5,
        first_token=2.0,
        first_visible=2.5,
        last_token=3.0,
        itl=Itl(count=4, mean=0.25, p50=0.25, p95=0.5, max=0.5),
        usage=Usage(input_tokens=7, output_tokens=5, cache_read=3),
        engine=EngineTimings(prefill_tokens=4, prefill_seconds=0.5, decode_tokens=5, decode_seconds=1.0),
        finish_reason="stop",
        attempts=1,
        cost=MicroUsd(12),
        identity=Identity(task=TaskId("t"), session=SessionId("s"), evidence="new", confidence=1.0, opens_task=True),
        route=Receipt(policy="least-loaded", winner="r1", reason="idle", candidates=(Candidate("r1", 0.0),)),
    ),
)


def test_every_kind_of_span_comes_back_as_it_was(tmp_path: Path) -> None:
    spans = (
        FULL,
        Span(task=TaskId("t"), id=SpanId("1"), parent=None, name="a", start=2.0, end=None, work=ToolUse(name="search")),
        Span(task=TaskId("t"), id=SpanId("2"), parent=None, name="b", start=3.0, end=4.0, work=Retrieval(results=3)),
        Span(task=TaskId("t"), id=SpanId("3"), parent=None, name="c", start=4.0, end=5.0, work=Step(agent="planner")),
        Span(task=TaskId("t"), id=SpanId("4"), parent=None, name="d", start=5.0, end=6.0, work=HumanWait()),
    )
    with Store(tmp_path / "s.db") as store:
        store.write(spans[::-1])
        assert store.spans(TaskId("t")) == spans
        assert store.spans(TaskId("other")) == ()


def test_writing_a_span_again_replaces_it(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write([step("t", end=None)])
        store.write([step("t", end=9.0)])
        assert [span.end for span in store.spans(TaskId("t"))] == [9.0]


def test_the_same_span_id_in_two_tasks_is_two_spans(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write([step("a"), step("b")])
        assert {row.task for row in store.tasks()} == {"a", "b"}


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
def test_any_number_of_spans_is_one_write(tmp_path: Path, count: int) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write([step("t", number) for number in range(count)])
        assert len(store.spans(TaskId("t"))) == count


def test_a_write_is_all_or_nothing(tmp_path: Path) -> None:
    bad = step("t", 200)
    lone_surrogate = Span(task=bad.task, id=bad.id, parent=None, name="\ud800", start=0.0, end=None, work=Step())
    with Store(tmp_path / "s.db") as store:
        with pytest.raises(ValueError, match="surrogate"):
            store.write([*(step("t", number) for number in range(100)), lone_surrogate])
        assert store.spans(TaskId("t")) == ()
        store.write([step("t")])
        assert len(store.spans(TaskId("t"))) == 1


def test_tasks_are_summed_up_newest_first(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write(
            [
                call("old", 1, "big", Usage(input_tokens=10, output_tokens=5), start=100.0),
                call("old", 2, "small", Usage(input_tokens=20, output_tokens=7), start=102.0),
                step("old", 3, start=101.0, end=101.5, error="tool_failed"),
                call("new", 1, "small", Usage(input_tokens=1, output_tokens=None), start=200.0),
            ]
        )
        new, old = store.tasks()
    assert (old.task, old.session, old.started_at, old.ended_at) == ("old", "chat-1", 100.0, 103.0)
    assert (old.spans, old.calls, old.errors, old.models, old.tokens.exact) == (3, 2, 1, ("big", "small"), 42)
    assert (new.task, new.calls, new.errors, new.models) == ("new", 1, 0, ("small",))
    assert new.tokens == Sum(1, 0, 1), "one unknown count makes the sum a lower bound"


def test_a_task_starts_when_the_person_was_done_waiting(tmp_path: Path) -> None:
    waited = Span(
        task=TaskId("t"), id=SpanId("w"), parent=None, name="human_wait", start=40.0, end=100.0, work=HumanWait()
    )
    with Store(tmp_path / "s.db") as store:
        store.write([waited, call("t", 1, "m", Usage(), start=100.0)])
        assert store.tasks()[0].started_at == 100.0


def test_tasks_can_be_narrowed(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write(
            [
                call("a", 1, "small", Usage(), start=1.0),
                step("b", 1, start=2.0, error="timeout"),
                call("c", 1, "a model, with commas", Usage(), start=3.0),
            ]
        )
        assert [row.task for row in store.tasks(2)] == ["c", "b"]
        assert [row.task for row in store.tasks(errors=True)] == ["b"]
        assert [row.task for row in store.tasks(model="small")] == ["a"]
        assert [row.task for row in store.tasks(model="a model, with commas")] == ["c"]
        assert store.tasks(0) == ()


def test_the_last_task_is_the_one_active_last(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        assert store.last() is None
        store.write([step("long", 1, start=1.0), step("short", 1, start=2.0), step("long", 2, start=3.0)])
        assert store.last() == "long"
        assert store.tasks()[0].task == "long"


def test_the_last_task_is_one_in_which_an_engine_was_reached(tmp_path: Path) -> None:
    def refused(task: str, start: float) -> Span:
        work = ModelCall(model="unknown", attempts=0)
        return structs.replace(step(task, start=start, error="bad_request"), work=work)

    with Store(tmp_path / "s.db") as store:
        store.write([refused("never", 1.0)])
        assert store.last() == "never", "there is no other"
        store.write([step("agents-own", start=2.0), refused("no", 3.0), refused("neither", 4.0)])
        assert store.last() == "agents-own"
        assert [row.refused for row in store.tasks()] == [True, True, False, True]


def test_a_task_is_found_by_its_beginning(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write([step("abc1"), step("abd2"), step("abd"), step("x%_y")])
        assert store.resolve("abc") == "abc1"
        assert store.resolve("abd") == "abd", "a whole id is never ambiguous"
        assert store.resolve("x%") == "x%_y"
        with pytest.raises(AmbiguousError, match=r"'ab': 'abc1', 'abd', 'abd2'\. Give more") as raised:
            store.resolve("ab")
        assert (raised.value.candidates, raised.value.more) == (("abc1", "abd", "abd2"), False)
        store.write([step(f"n{number}") for number in range(9)])
        with pytest.raises(AmbiguousError, match="…") as many:
            store.resolve("n")
        assert (len(many.value.candidates), many.value.more) == (8, True)


def test_one_task_is_summed_up_as_in_the_list(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write([step("a"), step("b", 1), step("b", 2)])
        assert store.row(TaskId("b")) == next(row for row in store.tasks() if row.task == "b")
        with pytest.raises(NotFoundError, match="no task 'c'"):
            store.row(TaskId("c"))


def test_an_unknown_task_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        with pytest.raises(NotFoundError, match="Nothing is recorded yet"):
            store.resolve("nightly")
        store.write([step("nightly-build"), step("zzz")])
        with pytest.raises(NotFoundError, match=r"The nearest: 'nightly-build'\. See them all"):
            store.resolve("nigthly-bild")
        with pytest.raises(NotFoundError, match="The nearest: 'zzz', 'nightly-build'"):
            store.resolve("%%%%%")


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ids=st.sets(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1), min_size=1, max_size=8)
)
def test_every_task_resolves_to_itself_whatever_its_name(tmp_path: Path, ids: set[str]) -> None:
    path = tmp_path / "any.db"
    path.unlink(missing_ok=True)
    with Store(path) as store:
        store.write([step(task) for task in ids])
        assert {store.resolve(task) for task in ids} == ids
        assert {row.task for row in store.tasks()} == ids


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
