"""`headway demo`: with fake engines for its logic, and once with the real model."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from headway.app.demo.run import Demo, run
from headway.core.errors import EngineError, UpstreamError
from headway.gateway.fake import FakeEngine, Reply
from headway.trace.store import Store

PLAN = json.dumps(
    {
        "steps": [
            {"action": "search", "about": "the rope"},
            {"action": "summarise", "about": "the rope"},
            {"action": "answer", "about": "the rope"},
        ]
    }
)


def script(body: dict[str, Any]) -> Reply:
    if "response_format" in body:
        return Reply(content=PLAN)
    if body.get("stream"):
        return Reply(content="It was a rope in the propeller that made the ferry late.")
    return Reply(content="The passages say that a rope was in the propeller.")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "ferry.md").write_text("# The ferry\n\nThe ferry was late because of a rope.\n")
    (tmp_path / "out").mkdir()
    return tmp_path


def demo(place: Path, engine: FakeEngine) -> Demo:
    return Demo(
        question="Why was the ferry late?",
        docs=place / "docs",
        out=place / "out",
        engines=("--upstream", f"{engine.url},model=fake"),
        model="fake",
    )


async def test_both_ways_are_asked_explained_compared_and_checked(place: Path) -> None:
    console = Console(width=100, force_terminal=False)
    async with FakeEngine(script) as engine:
        with console.capture() as capture:
            await run(demo(place, engine), console)
        assert engine.active == 0
    page = capture.get()
    assert [request["messages"][0]["role"] for request in engine.requests] == ["system"] * 4
    assert page.count("It was a rope in the propeller that made the ferry late.") == 2
    assert "plan by model: search → summarise → answer" in page
    assert "model calls" in page
    assert "3.0x" in page
    assert "✓ the critical path's terms sum to E2E" in page
    assert "✓ each question was recognised as one task, without headers\n" in page
    assert "✓ report and client count the same tokens" in page
    assert "? engine counters unknown" in page
    assert "OPENAI_BASE_URL" in page
    for mode in ("direct", "planning"):
        assert str(place / "out" / f"demo-{mode}.html") in page.replace("\n", "")
        assert "<svg" in (place / "out" / f"demo-{mode}.html").read_text()


async def test_an_answer_that_breaks_off_is_asked_for_once_more(place: Path) -> None:
    replies = iter([Reply(content="one two three four", fault="close_mid_stream")])
    console = Console(width=100)
    async with FakeEngine(lambda body: next(replies, None) or script(body)) as engine:
        with console.capture() as capture:
            await run(demo(place, engine), console)
    page = capture.get()
    assert "Asking once more" in page
    assert "✓ each question was recognised as one task, without headers but x-stainless-retry-count, which" in page
    assert "1 attempt failed and had to be made again" in page
    assert "Failed and followed by the same call: chat fake; errors: upstream_closed." in page
    assert "Go on from here" in page
    with Store(place / "out" / "demo.db", readonly=True) as store:
        assert sorted((row.calls, row.errors) for row in store.tasks()) == [(2, 1), (3, 0)]


async def test_an_answer_that_breaks_off_at_the_end_of_a_plan_is_asked_for_alone(place: Path) -> None:
    broken: list[bool] = []

    def breaks(body: dict[str, Any]) -> Reply:
        if body.get("stream") and len(body["messages"]) > 2 and not broken:  # direct asks with two
            broken.append(True)
            return Reply(content="one two three four", fault="close_mid_stream")
        return script(body)

    console = Console(width=100)
    async with FakeEngine(breaks) as engine:
        with console.capture() as capture:
            await run(demo(place, engine), console)
    assert "✓ each question was recognised as one task" in capture.get()
    with Store(place / "out" / "demo.db", readonly=True) as store:
        assert sorted((row.calls, row.errors) for row in store.tasks()) == [(1, 0), (4, 1)]


async def test_engines_that_stay_broken_end_it_with_one_message(place: Path) -> None:
    console = Console(width=100, quiet=True)
    async with FakeEngine(lambda _body: Reply(status=400, error="out of order")) as engine:
        with pytest.raises(UpstreamError, match="out of order"):
            await run(demo(place, engine), console)


@asynccontextmanager
async def started(place: Path, engine: FakeEngine) -> AsyncGenerator[tuple[asyncio.Task[None], int]]:
    """A demo that waits for its first answer, and the process of its gateway."""
    work = asyncio.create_task(run(demo(place, engine), Console(quiet=True)))
    try:
        await engine.until(lambda: engine.active == 1, 60)
        (pid,) = children()
        yield work, pid
    finally:
        work.cancel()
        await asyncio.wait({work})


def children() -> list[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in listed if b"headway" in Path(f"/proc/{pid}/cmdline").read_bytes()]


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the gateway's process in /proc")


@needs_proc
async def test_a_gateway_that_is_killed_in_mid_answer_ends_it_with_one_message(place: Path) -> None:
    never = asyncio.Event()
    async with FakeEngine(lambda _body: Reply(content="x", gate=never)) as engine:
        async with started(place, engine) as (work, pid):
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(EngineError, match="ended in the middle of the demo, by signal 9"):
                await work
        assert children() == []


@needs_proc
async def test_an_interrupt_leaves_nothing_running(place: Path) -> None:
    never = asyncio.Event()
    async with FakeEngine(lambda _body: Reply(content="x", gate=never)) as engine:
        async with started(place, engine) as (work, _):
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
        assert children() == []
        await engine.until(lambda: engine.active == 0)


def test_a_folder_that_cannot_be_written_is_told_before_anything_starts(
    headway: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    ran = headway("demo", "--out", tmp_path / "file" / "out")
    assert ran.code == 1
    assert "Nothing can be written to" in ran.err
    assert "--out" in ran.err
    assert ran.out == ""


def test_documents_that_are_not_there_are_told_before_anything_starts(
    headway: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    missing = headway("demo", "--docs", tmp_path / "none", "--out", tmp_path / "out")
    empty = headway("demo", "--docs", tmp_path / "empty", "--out", tmp_path / "out")
    assert (missing.code, missing.out, empty.code, empty.out) == (1, "", 1, "")
    assert "There are no documents at" in missing.err
    assert "is of a type that is read" in empty.err
    assert not (tmp_path / "out").exists()


@pytest.mark.model
@pytest.mark.timeout(400)
@pytest.mark.usefixtures("weights")
async def test_the_real_thing_adds_up(place: Path) -> None:
    code = "from headway.app.cli.main import main; main()"
    options = ("--docs", str(place / "docs"), "--question", "Why was the ferry late?", "--out", str(place / "real"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, "demo", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"},
    )
    page = (await process.communicate())[0].decode()
    assert process.returncode == 0, page
    assert page.count("✓") == 4, page
    assert "engine counters agree" in page
    assert (place / "real" / "demo-planning.html").stat().st_size > 1000
