"""Told to stop: what a shell, a person and a supervisor see of a command that was in the middle of something."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from headway.app.cli.cancel import run
from headway.app.cli.stop import told
from headway.gateway.fake import FakeEngine, Reply

SIGNALS = [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")]


@pytest.mark.parametrize(("number", "status", "name"), SIGNALS)
async def test_a_command_that_is_told_to_stop_says_so_once_all_has_ended(
    number: signal.Signals, status: int, name: str, tmp_path: Path
) -> None:
    (tmp_path / "ferry.md").write_text("The ferry was late because of a rope.")
    never = asyncio.Event()
    async with FakeEngine(lambda _body: Reply(content="x", gate=never)) as engine:
        process = await asyncio.create_subprocess_exec(
            *(Path(sys.executable).with_name("headway"), "ask", "Why was the ferry late?"),
            *("--base-url", engine.url, "--docs", tmp_path),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"XDG_CACHE_HOME": str(tmp_path / "cache")},
        )
        try:
            await engine.until(lambda: engine.active == 1, 60)
            process.send_signal(number)
            _, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        await engine.until(lambda: engine.active == 0)
    assert process.returncode == status
    assert err.decode().splitlines()[-1] == f"headway: stopped by {name}; all that it had started has ended."
    assert b"Traceback" not in err


def test_sigterm_is_told_too_where_nothing_waits_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, told():
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
    assert capsys.readouterr() == ("", "headway: stopped by SIGTERM; all that it had started has ended.\n")
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_command_that_ends_by_itself_was_not_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), told():
        sys.exit(1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_break_off_the_cleaning_up(number: signal.Signals) -> None:
    cleaned: list[str] = []

    async def work() -> None:
        try:
            signal.raise_signal(number)
            await asyncio.Event().wait()
        finally:
            signal.raise_signal(number)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            cleaned.append("all")

    with pytest.raises(SystemExit) as ended:
        run(work())
    assert ended.value.code == 128 + number
    assert cleaned == ["all"]


def test_work_that_nobody_stops_gives_its_result() -> None:
    async def work() -> int:
        return 7

    assert run(work()) == 7


def test_work_that_cancels_itself_was_not_told_to_stop() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run(work())
