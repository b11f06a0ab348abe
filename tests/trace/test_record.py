import logging
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from headway.core.errors import StoreError
from headway.core.span import Span, Step
from headway.core.task import SpanId, TaskId
from headway.trace.record import Recorder
from headway.trace.store import Store

T = TaskId("t")


def span(number: int, name: str = "step") -> Span:
    return Span(task=T, id=SpanId(f"{number:016x}"), parent=None, name=name, start=float(number), end=None, work=Step())


class Gate:
    """A sink that opens when told to, so that a test decides when the writer is busy."""

    lost = 0

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        self.batches: list[list[Span]] = []

    def write(self, spans: Sequence[Span]) -> None:
        self.entered.set()
        self.open.wait(20)
        self.batches.append(list(spans))


class Refusing:
    """A sink that can never be written, as with a full disk."""

    lost = 0

    def __init__(self) -> None:
        self.tried = threading.Event()
        self.attempts = 0

    def write(self, spans: Sequence[Span]) -> None:
        self.attempts += 1
        if self.attempts >= 3:
            self.tried.set()
        raise StoreError(f"no room for {len(spans)} spans.", fix="Free some disk space.")


def test_what_is_recorded_is_in_the_store_after_a_flush(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Recorder(store, capacity=10_000) as recorder:
        for number in range(3000):
            recorder.record(span(number))
        assert recorder.flush()
        assert store.spans(T) == tuple(span(number) for number in range(3000))
        assert (recorder.recorded, recorder.dropped, recorder.waiting) == (3000, 0, 0)


def test_spans_are_written_without_being_asked_to(tmp_path: Path) -> None:
    written = threading.Event()

    class Announcing(Store):
        def write(self, spans: Sequence[Span]) -> None:
            super().write(spans)
            written.set()

    with Announcing(tmp_path / "s.db") as store, Recorder(store, capacity=10, interval=0.01) as recorder:
        recorder.record(span(1))
        assert written.wait(20)


def test_closing_writes_what_is_there_and_ends_the_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    with Store(tmp_path / "s.db") as store:
        recorder = Recorder(store, capacity=5000, interval=60.0)
        for number in range(2500):
            recorder.record(span(number))
        recorder.close(timeout=20)
        recorder.close()
        assert len(store.spans(T)) == recorder.recorded == 2500
        assert threading.active_count() == before


def test_a_full_buffer_drops_and_counts() -> None:
    gate = Gate()
    recorder = Recorder(gate, capacity=5, interval=0.01)
    recorder.record(span(0))
    assert gate.entered.wait(20)
    for number in range(1, 9):
        recorder.record(span(number))
    assert (recorder.waiting, recorder.dropped) == (5, 3)
    gate.open.set()
    recorder.close(timeout=20)
    assert [[int(one.id, 16) for one in batch] for batch in gate.batches] == [[0], [1, 2, 3, 4, 5]]
    assert (recorder.recorded, recorder.dropped) == (6, 3)


def test_a_closed_recorder_counts_what_comes_late() -> None:
    gate = Gate()
    recorder = Recorder(gate, capacity=5)
    recorder.close()
    recorder.record(span(1))
    assert (recorder.recorded, recorder.dropped, recorder.waiting) == (0, 1, 0)


def test_batches_are_bounded() -> None:
    gate = Gate()
    recorder = Recorder(gate, capacity=10_000, interval=60.0)
    for number in range(5000):
        recorder.record(span(number))
    gate.open.set()
    recorder.close(timeout=20)
    sizes = [len(batch) for batch in gate.batches]
    assert sum(sizes) == 5000
    assert max(sizes) == 1024


def test_a_flush_that_cannot_finish_says_so() -> None:
    gate = Gate()
    recorder = Recorder(gate, capacity=5)
    recorder.record(span(1))
    assert recorder.flush(timeout=0.05) is False
    gate.open.set()
    assert recorder.flush(timeout=20) is True
    recorder.close()


def test_an_outage_is_logged_once_retried_and_survived(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "s.db"
    with Store(path, patience=0.0) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        recorder = Recorder(store, capacity=100, interval=0.01, backoff=0.01)
        other.execute("BEGIN IMMEDIATE")
        for number in range(50):
            recorder.record(span(number))
        while recorder.failed_writes < 3:
            assert recorder.flush(timeout=0.02) is False
        other.execute("COMMIT")
        assert recorder.flush(timeout=20)
        recorder.close()
        assert len(store.spans(T)) == recorder.recorded == 50
        assert recorder.dropped == 0
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "spans are kept waiting",
        "spans are written again",
    ]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_taken_away_is_noticed_counted_and_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, replaced: bool
) -> None:
    path, other = tmp_path / "s.db", tmp_path / "other.db"
    with Store(other) as store:
        store.write([span(99)])
    with Store(path) as store, Recorder(store, capacity=100, interval=60.0) as recorder:
        for number in range(3):
            recorder.record(span(number))
        assert recorder.flush(timeout=20)
        for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            file.unlink()
        if replaced:
            other.rename(path)
        for number in (3, 4):
            recorder.record(span(number))
            assert recorder.flush(timeout=20)
        assert (recorder.recorded, recorder.dropped, recorder.lost) == (5, 0, 3)
        with Store(path, readonly=True) as reader:
            assert reader.spans(T) == tuple(span(number) for number in ((3, 4, 99) if replaced else (3, 4)))
    assert [record.getMessage() for record in caplog.records] == [
        f"{path} was removed or replaced; spans gone with it: 3",
    ]


def test_a_full_disk_costs_spans_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Small(Store):
        """A store on a disk with room for a few pages, by SQLite's own bound."""

        def room(self, pages: int) -> None:
            self._db.execute(f"PRAGMA max_page_count = {pages}")

    with Small(tmp_path / "s.db") as store:
        store.room(8)
        recorder = Recorder(store, capacity=200, interval=0.01, backoff=0.01)
        for number in range(2000):
            recorder.record(span(number, name="x" * 1000))
        while not recorder.failed_writes:
            recorder.flush(timeout=0.02)
        store.room(100_000)
        assert recorder.flush(timeout=20)
        recorder.close()
        assert recorder.recorded + recorder.dropped == 2000
        assert recorder.recorded == len(store.spans(T)) >= 200
    assert "Free some disk space" in caplog.text


def test_closing_on_a_store_that_always_refuses_ends_and_counts(caplog: pytest.LogCaptureFixture) -> None:
    refusing = Refusing()
    recorder = Recorder(refusing, capacity=5000, interval=0.01, backoff=0.01)
    for number in range(3000):
        recorder.record(span(number))
    assert refusing.tried.wait(20)
    recorder.close(timeout=0.05)
    assert (recorder.recorded, recorder.dropped) == (0, 3000)
    assert caplog.text.count("spans are kept waiting") == 1
    assert "spans dropped: 3000 of 3000" in caplog.text


def test_one_span_that_cannot_be_encoded_costs_only_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Store(tmp_path / "s.db") as store:
        recorder = Recorder(store, capacity=100, interval=60.0)
        for number in range(20):
            recorder.record(span(number, name="\ud800" if number == 7 else "step"))
        assert recorder.flush(timeout=20)
        recorder.record(span(20))
        recorder.close(timeout=20)
        assert [int(one.id, 16) for one in store.spans(T)] == [n for n in range(21) if n != 7]
        assert (recorder.recorded, recorder.dropped) == (20, 1)
    assert "cannot be written and is dropped" in caplog.text


def test_threads_record_at_once_and_every_span_is_accounted_for() -> None:
    gate = Gate()
    gate.open.set()
    recorder = Recorder(gate, capacity=500, interval=0.001)

    def record(first: int) -> None:
        for number in range(first, first + 5000):
            recorder.record(span(number))

    threads = [threading.Thread(target=record, args=(n * 5000,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close(timeout=20)
    written = [one.id for batch in gate.batches for one in batch]
    assert len(written) == len(set(written)) == recorder.recorded
    assert recorder.recorded + recorder.dropped == 20_000


def test_nothing_is_logged_when_all_is_well(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), Store(tmp_path / "s.db") as store, Recorder(store, capacity=10) as recorder:
        recorder.record(span(1))
    assert caplog.text == ""
