"""`headway bench` as its user runs it, against a scripted engine in another thread's loop."""

import asyncio
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from headway.gateway.fake import FakeEngine, Reply
from headway.trace.store import Store


@contextmanager
def engine() -> Generator[str]:
    """A scripted engine's URL; it serves from a thread, since the command has a loop of its own."""
    ready, done = Event(), Event()
    urls: list[str] = []

    async def serve() -> None:
        async with FakeEngine(lambda _: Reply(chunks=("a", "b", "c"))) as running:
            urls.append(running.url)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait(10)
    try:
        yield urls[0]
    finally:
        done.set()
        thread.join()


def test_a_load_is_played_told_and_kept(headway: Callable[..., Any], tmp_path: Path) -> None:
    out, store = tmp_path / "r.json", tmp_path / "s.db"
    with engine() as url:
        words = ["bench", "run", url, "--model", "fake", "--tool", "0", "--steps", "2", "--sessions", "8"]
        ran = headway(*words, "--slo", "task 30s", "--out", str(out), "--store", str(store), "--why")
    assert ran.code in {0, 1}, "1 where this machine was too busy to measure anything, and it says so"
    assert (ran.code == 1) == ("NOT VALID" in ran.out)
    assert "8 tasks in" in ran.out
    assert "8 of 8, 100.0%" in ran.out
    report = json.loads(out.read_bytes())
    assert report["figures"]["calls"] == 16
    assert report["statement"]["arrivals"] == "closed 1"
    with Store(store, readonly=True) as kept:
        assert len(kept.tasks(20)) == 8


def test_a_sweep_finds_how_many_tasks_are_held(headway: Callable[..., Any]) -> None:
    with engine() as url:
        words = ["bench", "sweep", url, "--model", "fake", "--shape", "single", "--tasks", "1,2", "--rounds", "6"]
        ran = headway(*words, "--slo", "task 30s", "--json")
        assert ran.code == 0, ran.err
        found = json.loads(ran.out)
        assert [one["tasks"] for one in found["levels"]] == [1, 2]
        assert [one["figures"]["tasks"] for one in found["levels"]] == [6, 12], "after a warm-up of a session for each"
        shown = headway(*words)
    assert "at once" in shown.out
    assert "Fewer than four levels" in shown.out
    assert "2 at once:" in shown.err


def test_reports_under_other_conditions_are_not_compared(headway: Callable[..., Any], tmp_path: Path) -> None:
    one, other = tmp_path / "1.json", tmp_path / "2.json"
    with engine() as url:
        words = ["bench", "run", url, "--model", "fake", "--shape", "single", "--sessions", "2", "--json"]
        headway(*words, "--out", str(one))
        headway(*words, "--out", str(other), "--no-stream")
    found = headway("bench", "compare", str(one), str(other))
    assert found.code == 1
    assert "stream: True and False" in " ".join(found.err.split())


def test_levels_have_to_be_numbers(headway: Callable[..., Any]) -> None:
    ran = headway("bench", "sweep", "http://127.0.0.1:9/v1", "--model", "m", "--tasks", "1,two")
    assert ran.code == 2
    assert "'1,two' is no list of numbers" in " ".join(ran.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--sessions", "1", "--shape", "star"], 2, "'star' is none of"),
        ([], 2, "say when to stop"),
        (["--sessions", "1", "--arrivals", "soon"], 1, "'soon' says no arrivals"),
        (["--sessions", "1", "--slo", "fast"], 1, "'fast' is no SLO"),
        (["--sessions", "1", "--input", "long"], 1, "--input is 'long'"),
        (["--sessions", "1", "--workload", "ghost.json"], 1, "ghost.json cannot be read"),
        (["--sessions", "1", "--key-env", "NO_SUCH_KEY"], 1, "NO_SUCH_KEY is not set"),
    ],
)
def test_what_cannot_be_run_says_why(headway: Callable[..., Any], words: list[str], code: int, said: str) -> None:
    ran = headway("bench", "run", "http://127.0.0.1:9/v1", "--model", "m", *words)
    assert ran.code == code
    assert said in " ".join(ran.err.replace("│", " ").split())
