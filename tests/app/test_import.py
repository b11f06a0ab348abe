import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from otlp_documents import message, span

from headway.trace.archive import Archive

Run = Callable[..., Any]


def traces(path: Path, *numbers: int) -> Path:
    """A file of traces of one call each, which take as many seconds as their number."""
    said: dict[str, object] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    calls = [message(span(number, "chat m", 0, number, said) | {"traceId": f"{number:032x}"}) for number in numbers]
    path.write_bytes(b"\n".join(calls))
    return path


def test_what_is_imported_is_explained_as_the_files_are(headway: Run, tmp_path: Path) -> None:
    files, into = traces(tmp_path / "a.jsonl", 1, 2, 3), tmp_path / "set.headway"
    ran = headway("import", files, "--into", into)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        f"{into}: 3 tasks put in, 3 tasks in all.",
        f"Explain them with: headway explain {into}",
    ]
    of_files, of_archive = (json.loads(headway("explain", path, "--json").out) for path in (files, into))
    assert of_files.pop("refused", []) == of_archive.pop("refused", [])
    assert of_archive == of_files
    assert of_archive["tasks"] == 3
    alone = headway("explain", into, "--task", f"{2:032x}", "--json")
    assert json.loads(alone.out)["task"] == f"{2:032x}"
    assert alone.out == headway("explain", files, "--task", f"{2:032x}", "--json").out


def test_archives_and_files_make_one_set(headway: Run, tmp_path: Path) -> None:
    into = tmp_path / "set.headway"
    headway("import", traces(tmp_path / "a.jsonl", 1, 2), "--into", into)
    other = traces(tmp_path / "b.jsonl", 3)
    assert json.loads(headway("explain", into, other, "--json").out)["tasks"] == 3
    again = headway("import", other, tmp_path / "a.jsonl", "--into", into)
    assert "3 tasks put in, 3 tasks in all." in again.out
    copy = tmp_path / "copy.headway"
    assert headway("import", into, "--into", copy).code == 0
    assert headway("explain", copy, "--json").out == headway("explain", into, "--json").out


def test_what_could_not_be_read_is_told_and_of_nothing_no_archive_is_made(headway: Run, tmp_path: Path) -> None:
    files, into = traces(tmp_path / "a.jsonl", 1), tmp_path / "set.headway"
    (tmp_path / "b.txt").write_text("no trace at all\n")
    files.write_bytes(files.read_bytes() + b'\n{"resourceSpans": [')
    ran = headway("import", tmp_path, "--into", into)
    assert ran.code == 0
    assert "Skipped 1: " in ran.err
    assert "b.txt" in ran.err
    empty = tmp_path / "none.headway"
    ran = headway("import", tmp_path / "b.txt", "--into", empty)
    assert (ran.code, ran.out) == (1, "")
    assert "is a task that can be explained" in ran.err
    assert not empty.exists()


def test_what_is_there_and_no_archive_is_left_alone(headway: Run, tmp_path: Path) -> None:
    files = traces(tmp_path / "a.jsonl", 1)
    before = files.read_bytes()
    ran = headway("import", files, "--into", files)
    assert (ran.code, "cannot be put into itself" in ran.err) == (2, True)
    other = traces(tmp_path / "b.jsonl", 2)
    ran = headway("import", files, "--into", other)
    assert (ran.code, "no archive" in ran.err) == (1, True)
    assert files.read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_stops_an_import_leaves_the_archive_as_it_was(number: signal.Signals, tmp_path: Path) -> None:
    into, fifo = tmp_path / "set.headway", tmp_path / "in"
    with Archive(into):
        pass
    before = into.read_bytes()
    os.mkfifo(fifo)
    command = [Path(sys.executable).with_name("headway"), "import", "-", "--into", into]
    with fifo.open("r+b", buffering=0) as pipe:
        running = subprocess.Popen(command, stdin=pipe, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603 - ours
        with running:
            assert running.stdout is not None
            while not (tmp_path / "set.headway-wal").exists():
                assert running.poll() is None
                os.sched_yield()
            running.send_signal(number)
            out, err = running.communicate(timeout=60)
    assert running.returncode == 128 + number
    assert (out, b"Traceback" in err) == (b"", False)
    assert into.read_bytes()[100:] == before[100:]  # its head counts the changes of its mode
    assert not list(tmp_path.glob("set.headway-*"))
