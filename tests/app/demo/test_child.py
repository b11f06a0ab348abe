"""The gateway as a child process, in front of a fake engine."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headway.app.demo.child import ServeProcess
from headway.core.errors import EngineError
from headway.gateway.fake import FakeEngine


def options(engine: FakeEngine) -> list[str]:
    return ["--upstream", engine.url, "--port", "0", "--no-record", "--no-admin"]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def fail() -> None:
    raise LookupError("mine")


async def test_it_announces_where_it_serves_and_is_gone_afterwards(tmp_path: Path) -> None:
    async with FakeEngine() as engine, ServeProcess(options(engine), tmp_path / "log") as child:
        ready = await child.ready()
        assert await child.guard(asyncio.sleep(0, "done")) == "done"
        with pytest.raises(LookupError, match="mine"):
            await child.guard(fail())
    assert ready.url.startswith("http://127.0.0.1:")
    assert [replica.url for replica in ready.replicas] == [engine.url]
    assert not alive(child.pid)


async def test_work_stops_at_once_with_one_message_when_it_is_killed(tmp_path: Path) -> None:
    async with FakeEngine() as engine, ServeProcess(options(engine), tmp_path / "log") as child:
        await child.ready()
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(EngineError, match=r"ended in the middle of the demo, by signal 9 \(SIGKILL\)"):
            await child.guard(asyncio.Event().wait())


async def test_one_that_cannot_start_is_quoted(tmp_path: Path) -> None:
    async with ServeProcess(["--upstream", "nonsense"], tmp_path / "log") as child:
        with pytest.raises(EngineError, match=r"(?s)before it was ready, with status 1.*nonsense.*whole log is in"):
            await child.ready()


ORPHAN = """
import asyncio, os, signal, sys
from pathlib import Path
from headway.app.demo.child import ServeProcess

async def main():
    async with ServeProcess(sys.argv[2:], Path(sys.argv[1])) as child:
        await child.ready()
        print(child.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_it_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    async with FakeEngine() as engine:
        parent = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ORPHAN, str(tmp_path / "log"), *options(engine)), stdout=subprocess.PIPE
        )
        assert parent.stdout is not None
        pid = int(await parent.stdout.readline())
        assert alive(pid)
        parent.kill()
        await parent.wait()
        async with asyncio.timeout(20):
            while alive(pid):  # noqa: ASYNC110 - not our child: there is nothing to wait on
                await asyncio.sleep(0.02)
    assert "stopped" in (tmp_path / "log").read_text()
