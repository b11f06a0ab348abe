"""Programs that die, hang, talk nonsense or never stop; and that nothing of them is left, whatever happens to us."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mcp_serving import raw, tools_of, use

from headway.core.errors import BadInputError, UpstreamError
from headway.runtime import McpCommand, McpServers
from headway.runtime.mcp.connection import Connection
from headway.runtime.mcp.connections import Connections
from headway.runtime.mcp.process import ServerProcess


def runs(pid: int) -> bool:
    """Whether a process lives; one that has ended and was not waited for does not."""
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False).stdout[:1] not in {  # noqa: S603, S607 - a number
        b"",
        b"Z",
    }


async def test_a_server_that_dies_in_mid_call_fails_that_call_and_is_started_again() -> None:
    async with McpServers(raw("die")) as servers:
        tools = tools_of(servers)
        before, _ = await use(tools["pid"])
        said, failed = await use(tools["go"])
        assert failed
        assert said == (
            "it__go failed: UpstreamError: it went away before it answered. It said last: I cannot go on. The server "
            "ended with status 3. Whether the call was done is not known."
        )
        after, failed = await use(tools["pid"])
        assert not failed
        assert after != before


async def test_only_a_call_that_does_no_harm_twice_is_made_again(tmp_path: Path) -> None:
    async with McpServers(raw("die once", idempotent=frozenset({"go"}))) as servers:
        assert await use(tools_of(servers)["go"], mark=str(tmp_path / "a")) == ("done", False)
    async with McpServers(raw("die once")) as servers:
        _, failed = await use(tools_of(servers)["go"], mark=str(tmp_path / "b"))
        assert failed


async def test_all_calls_under_way_fail_with_a_server_that_dies_and_those_of_others_do_not() -> None:
    other = McpCommand(name="other", command=raw("good").command)
    async with McpServers(raw("die"), other) as servers:
        tools = {tool.name: tool for tool in servers.tools}
        outcomes = await asyncio.gather(use(tools["it__go"]), use(tools["other__go"]))
    assert [failed for _, failed in outcomes] == [True, False]


async def test_a_server_that_is_stuck_is_ended_and_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.runtime.mcp.connection._ALIVE_SECONDS", 0.5)
    async with McpServers(raw("stick")) as servers:
        tools = tools_of(servers)
        before, _ = await use(tools["pid"])
        stuck = asyncio.create_task(use(tools["go"]))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(use(tools["pid"]), 0.5)
        said, failed = await stuck
        assert failed
        assert "it answered nothing for 0.5 s and was ended" in said
        after, _ = await use(tools["pid"])
        assert after != before


async def test_nothing_is_left_running() -> None:
    async with McpServers(raw("spawn")) as servers:
        pids = [int((await use(tool))[0]) for tool in servers.tools]
        assert all(map(runs, pids))
    assert not any(map(runs, pids))


async def test_nothing_is_left_running_when_it_is_cancelled() -> None:
    pids: list[int] = []
    told = asyncio.Event()

    async def work() -> None:
        async with McpServers(raw("spawn"), McpCommand(name="hanging", command=raw("hang").command)) as servers:
            tools = {tool.name: tool for tool in servers.tools}
            pids.extend([int((await use(tools[name]))[0]) for name in ("it__pid", "it__go", "hanging__pid")])
            asyncio.get_running_loop().call_soon(told.set)
            await use(tools["hanging__go"])

    working = asyncio.create_task(work())
    await told.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert len(pids) == 3
    assert not any(map(runs, pids))


def test_nothing_is_left_running_when_its_starter_is_killed(tmp_path: Path) -> None:
    """With SIGKILL, so that it cannot end anything."""
    script = tmp_path / "starter.py"
    script.write_text(
        "import asyncio\n"
        "from headway.runtime import McpCommand, McpServers, Run, task\n"
        "@task()\n"
        "async def ask(run: Run, servers: McpServers) -> None:\n"
        "    for tool in servers.tools:\n"
        "        print((await tool.use(run, {})).text, flush=True)\n"
        "async def main() -> None:\n"
        f"    async with McpServers(McpCommand(name='it', command={raw('spawn').command!r})) as servers:\n"
        "        await ask.start(servers)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as starter:  # noqa: S603 - our own text
        assert starter.stdout is not None
        pids = [int(starter.stdout.readline()) for _ in range(2)]
        assert all(map(runs, pids))
        starter.send_signal(signal.SIGKILL)
    until = time.monotonic() + 60
    while any(map(runs, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(runs, pids))


async def test_a_tool_that_is_kept_too_long_starts_nothing() -> None:
    async with McpServers(raw("good")) as servers:
        tools = tools_of(servers)
    said, failed = await use(tools["go"])
    assert failed
    assert "The connections to it were closed. Use its tools inside `async with McpServers`." in said


async def test_the_pause_before_a_new_start_grows_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    def connect() -> Connection:
        return Connection(missing, ServerProcess(missing))

    missing = McpCommand(name="missing", command=("no-such-program",))
    connections = Connections(missing, connect)
    monkeypatch.setattr("headway.runtime.mcp.connections.asyncio.sleep", sleep)
    for _ in range(1100):
        with pytest.raises(BadInputError):
            await connections.start()
    assert [round(seconds, 1) for seconds in waited[1:9]] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0]
    assert max(waited) <= 10


async def test_several_connections_are_several_processes() -> None:
    async with McpServers(raw("hang", connections=2)) as servers:
        tools = tools_of(servers)
        first, _ = await use(tools["pid"])
        hanging = asyncio.create_task(use(tools["go"]))
        async with asyncio.timeout(60):
            while (await use(tools["pid"]))[0] == first:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
        hanging.cancel()


async def test_noise_between_the_messages_is_passed_over() -> None:
    async with McpServers(raw("noise")) as servers:
        assert await use(tools_of(servers)["go"]) == ("done", False)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("no protocol", "it gave an answer that is none by the protocol: content"),
        ("huge", "more than 1,000,000"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_a_failure_of_that_call(how: str, words: str) -> None:
    async with McpServers(raw(how)) as servers:
        tools = tools_of(servers)
        before, _ = await use(tools["pid"])
        said, failed = await use(tools["go"])
        assert failed
        assert words in said
        assert await use(tools["pid"]) == (before, False)


@pytest.mark.parametrize("how", ["endless line", "endless lines", "silence"])
async def test_a_server_that_never_stops_or_falls_silent_costs_that_call(how: str) -> None:
    async with McpServers(raw(how, timeout=1)) as servers:
        _, failed = await use(tools_of(servers)["go"])
        assert failed


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (raw("endless list"), "lists its tools without end"),
        (raw("mute", start_timeout=0.5), r"it was not ready in 0\.5 s"),
        (
            McpCommand(name="it", command=("sh", "-c", "exit 7")),
            "it cannot be spoken to: .*The server ended with status 7",
        ),
        (McpCommand(name="it", command=("sh", "-c", "kill -9 $$")), "The server was killed by SIGKILL"),
    ],
    ids=["endless list", "mute", "no server", "killed"],
)
async def test_a_server_that_cannot_be_used_is_told_of_at_the_start(server: McpCommand, words: str) -> None:
    with pytest.raises(UpstreamError, match=words):
        async with McpServers(server):
            pass


async def test_a_program_that_is_not_there_ends_those_that_are() -> None:
    missing = McpCommand(name="missing", command=("no-such-program",))
    with pytest.raises(BadInputError, match="missing: there is no program 'no-such-program'"):
        async with McpServers(raw("good"), missing):
            pass


async def test_a_server_gets_nothing_of_this_environment_that_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    show = McpCommand(name="it", command=("sh", "-c", "env >&2"), env={"NAMED": "yes"})
    with pytest.raises(UpstreamError) as refused:
        async with McpServers(show):
            pass
    assert "NAMED=yes" in str(refused.value)
    assert "secret" not in str(refused.value)
