"""Real servers over both transports, well-behaved and not; each test is of what the user of a tool sees."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from mcp_serving import PROGRAM, free_port, over_http, raw

from headway.core.errors import BadInputError, UpstreamError
from headway.core.span import Span, ToolUse
from headway.runtime import McpCommand, McpEndpoint, McpServers, Run, Runtime, Tool, task
from headway.trace.store import Store

Server = McpCommand | McpEndpoint
Make = Callable[..., Server]


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    with over_http(free_port()) as found:
        yield found


@pytest.fixture(params=["stdio", "http"])
def make(request: pytest.FixtureRequest) -> Make:
    """Makes a server's description, with options."""
    if request.param == "stdio":
        return lambda **options: McpCommand(name="it", command=PROGRAM, **options)
    found = request.getfixturevalue("url")
    return lambda **options: McpEndpoint(name="it", url=found, **options)


def tools(servers: McpServers) -> dict[str, Tool]:
    return {tool.name.removeprefix("it__"): tool for tool in servers.tools}


async def in_task(body: Callable[[Run], Awaitable[Any]], **options: Any) -> Any:  # noqa: ANN401 - whatever the body gives
    @task()
    async def made(run: Run) -> Any:  # noqa: ANN401 - as above
        return await body(run)

    async with Runtime(**options) as runtime:
        return await runtime.start(made)


async def use(tool: Tool, **arguments: Any) -> tuple[str, bool]:  # noqa: ANN401 - JSON
    """What a model is told, and whether the call failed."""
    result = await in_task(lambda run: tool.use(run, arguments))
    return result.text, result.failed


async def test_tools_of_all_pages_are_there_and_answer(make: Make) -> None:
    async with McpServers(make()) as servers:
        found = tools(servers)
        assert len(found) == 16
        assert found["echo"].description == "The tool echo."
        assert found["echo"].parameters == {"type": "object", "properties": {"text": {"type": "string"}}}
        assert await use(found["echo"], text="안녕") == ("안녕", False)
        assert await use(found["add"], a=2, b=3) == ('{"sum":5}', False)
        assert await use(found["refuse"]) == ("I will not.", True)


async def test_only_those_that_are_wanted(make: Make) -> None:
    async with McpServers(make(only=frozenset({"echo", "add"}))) as servers:
        assert [tool.name for tool in servers.tools] == ["it__echo", "it__add"]


async def test_what_is_no_text_is_told_of(make: Make) -> None:
    async with McpServers(make()) as servers:
        said, failed = await use(tools(servers)["show"])
    assert not failed
    assert said.splitlines() == [
        "Look:",
        "[image/png, 5 bytes]",
        "[audio/wav, 5 bytes]",
        "[notes: file:///notes.md, text/markdown]",
        "[file:///a.txt]",
        "the text of a",
        "[file:///b.bin, of unknown kind, 5 bytes]",
    ]


async def test_an_answer_of_100_mb_is_a_failure_of_that_call_alone(make: Make) -> None:
    async with McpServers(make()) as servers:
        found = tools(servers)
        before, _ = await use(found["pid"])
        said, failed = await use(found["huge"], bytes=100_000_000)
        assert failed
        assert "1,000,000" in said
        assert await use(found["pid"]) == (before, False)


async def test_a_long_answer_is_cut_and_the_model_is_told(make: Make) -> None:
    async with McpServers(make()) as servers:
        said, failed = await use(tools(servers)["much"])
    assert not failed
    assert len(said.encode()) < 66_000
    assert "[Cut: the first 65,536 bytes of 30,000 characters. Ask for less.]" in said


async def test_a_tool_that_hangs_is_given_up_and_the_others_go_on(make: Make) -> None:
    async with McpServers(make(timeout=0.5)) as servers:
        found = tools(servers)
        hung, echoed = await asyncio.gather(use(found["hang"]), use(found["echo"], text="still here"))
        assert hung[1]
        assert "was not done in 0.5 s" in hung[0]
        assert echoed == ("still here", False)
        assert await use(found["echo"], text="and after it") == ("and after it", False)


async def test_a_tool_that_lies_about_its_schema(make: Make) -> None:
    async with McpServers(make()) as servers:
        found = tools(servers)
        said, failed = await use(found["lie"])
        assert failed
        assert "it gave an answer that is not as it declared" in said
        assert await use(found["echo"], text="and on") == ("and on", False)


async def test_a_new_tool_is_there_when_the_server_has_told_of_it(make: Make) -> None:
    name = f"new_{os.urandom(4).hex()}"
    async with McpServers(make()) as servers:
        before = tools(servers)
        await use(before["grow"], name=name)
        async with asyncio.timeout(20):
            while name not in tools(servers):
                await asyncio.sleep(0.05)
        assert await use(tools(servers)[name]) == (name, False)
        assert tools(servers)["echo"] is before["echo"]


async def test_64_calls_at_once_share_one_connection(make: Make) -> None:
    async with McpServers(make(concurrency=64)) as servers:
        found = tools(servers)

        async def ask(run: Run, number: int) -> str:
            return (await found["echo"].use(run, {"text": str(number)})).text

        said = await in_task(lambda run: run.map(ask, range(64)))
    assert said == [str(number) for number in range(64)]


async def test_a_pure_tool_is_asked_once_in_a_task(make: Make) -> None:
    async with McpServers(make(pure=frozenset({"count"}))) as servers:
        count = tools(servers)["count"]

        async def thrice(run: Run) -> set[str]:
            return {(await count.use(run, {})).text for _ in range(3)}

        assert len(await in_task(thrice)) == 1


async def test_its_calls_are_spans_and_carry_the_trace(make: Make, tmp_path: Path) -> None:
    async with McpServers(make()) as servers:
        meta = tools(servers)["meta"]
        said = await in_task(lambda run: meta.use(run, {}), store=tmp_path / "s.db")
    with Store(tmp_path / "s.db", readonly=True) as store:
        spans: tuple[Span, ...] = store.spans(store.tasks()[0].task)
    (call,) = [span for span in spans if isinstance(span.work, ToolUse)]
    assert call.name == "execute_tool it__meta"
    assert said.text == f"00-{call.task}-{call.id}-01"


async def test_a_server_that_dies_in_mid_call_fails_that_call_and_is_started_again() -> None:
    async with McpServers(McpCommand(name="it", command=PROGRAM)) as servers:
        found = tools(servers)
        before, _ = await use(found["pid"])
        said, failed = await use(found["die"])
        assert failed
        assert said == (
            "it__die failed: UpstreamError: it went away before it answered. It said last: I cannot go on. The server "
            "ended with status 3. Whether the call was done is not known."
        )
        after, failed = await use(found["pid"])
        assert not failed
        assert after != before


async def test_a_server_at_a_url_that_dies_in_mid_call_is_found_again_at_its_url() -> None:
    port = free_port()
    with over_http(port) as url:
        servers = McpServers(McpEndpoint(name="it", url=url))
        await servers.__aenter__()
        found = tools(servers)
        said, failed = await use(found["die"])
        assert failed
        assert "Whether the call was done is not known." in said
        said, failed = await use(found["echo"], text="anybody?")
        assert failed
        assert "it cannot be spoken to: It could not be reached" in said
    with over_http(port):
        assert await use(found["echo"], text="again") == ("again", False)
        await servers.__aexit__()


async def test_only_a_call_that_does_no_harm_twice_is_made_again(tmp_path: Path) -> None:
    tool = frozenset({"die_once"})
    async with McpServers(McpCommand(name="it", command=PROGRAM, idempotent=tool)) as servers:
        assert await use(tools(servers)["die_once"], mark=str(tmp_path / "a")) == ("alive", False)
    async with McpServers(McpCommand(name="it", command=PROGRAM)) as servers:
        _, failed = await use(tools(servers)["die_once"], mark=str(tmp_path / "b"))
        assert failed


async def test_a_server_that_is_stuck_is_ended_and_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.runtime.mcp.connection._ALIVE_SECONDS", 0.5)
    async with McpServers(McpCommand(name="it", command=PROGRAM, timeout=30)) as servers:
        found = tools(servers)
        before, _ = await use(found["pid"])
        stuck = asyncio.create_task(use(found["stick"]))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(use(found["echo"], text="?"), 1)
        said, failed = await stuck
        assert failed
        assert "it answered nothing for 0.5 s and was ended" in said
        after, _ = await use(found["pid"])
        assert after != before


def runs(pid: int) -> bool:
    """Whether a process lives; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_nothing_is_left_running() -> None:
    async with McpServers(McpCommand(name="it", command=PROGRAM)) as servers:
        found = tools(servers)
        pids = [int((await use(found[name]))[0]) for name in ("pid", "spawn")]
        assert all(map(runs, pids))
    assert not any(map(runs, pids))


async def test_nothing_is_left_running_when_it_is_cancelled() -> None:
    pids: list[int] = []

    async def work() -> None:
        async with McpServers(McpCommand(name="it", command=PROGRAM)) as servers:
            found = tools(servers)
            pids.extend([int((await use(found[name]))[0]) for name in ("pid", "spawn")])
            told.set()
            await use(found["hang"])

    told = asyncio.Event()
    working = asyncio.create_task(work())
    await told.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert not any(map(runs, pids))


async def test_several_connections_are_several_processes() -> None:
    async with McpServers(McpCommand(name="it", command=PROGRAM, connections=2, timeout=20)) as servers:
        found = tools(servers)
        hanging = asyncio.create_task(use(found["hang"]))
        first, _ = await use(found["pid"])
        async with asyncio.timeout(20):
            while (await use(found["pid"]))[0] == first:
                await asyncio.sleep(0.05)
        hanging.cancel()


async def test_a_name_that_models_cannot_call_is_made_one() -> None:
    async with McpServers(McpCommand(name="it", command=raw("odd names"))) as servers:
        names = [tool.name for tool in servers.tools]
    assert names[:2] == ["it__go", "it__fs_read"]
    assert len(names) == 3  # the second fs_read could not be told from the first
    assert len(names[2]) == 64


async def test_noise_between_the_messages_is_passed_over() -> None:
    async with McpServers(McpCommand(name="it", command=raw("noise"))) as servers:
        assert await use(tools(servers)["go"]) == ("done", False)


async def test_an_answer_that_is_none_by_the_protocol() -> None:
    async with McpServers(McpCommand(name="it", command=raw("no protocol"))) as servers:
        said, failed = await use(tools(servers)["go"])
    assert failed
    assert "it gave an answer that is none by the protocol" in said


async def test_an_answer_that_is_too_long_and_has_its_id_at_its_end() -> None:
    async with McpServers(McpCommand(name="it", command=raw("huge"))) as servers:
        said, failed = await use(tools(servers)["go"])
    assert failed
    assert "more than 1,000,000" in said


@pytest.mark.parametrize("how", ["endless line", "endless lines", "silence"])
async def test_a_server_that_never_stops_or_falls_silent_costs_that_call(how: str) -> None:
    async with McpServers(McpCommand(name="it", command=raw(how), timeout=1)) as servers:
        _, failed = await use(tools(servers)["go"])
        assert failed


async def test_a_list_of_tools_without_end() -> None:
    with pytest.raises(UpstreamError, match="lists its tools without end"):
        async with McpServers(McpCommand(name="it", command=raw("endless list"))):
            pass


async def test_a_server_that_does_not_start_in_time() -> None:
    with pytest.raises(UpstreamError, match=r"it was not ready in 0\.5 s"):
        async with McpServers(McpCommand(name="it", command=raw("mute"), start_timeout=0.5)):
            pass


async def test_a_program_that_is_no_server() -> None:
    with pytest.raises(UpstreamError, match=r"it cannot be spoken to: .*The server ended with status 7"):
        async with McpServers(McpCommand(name="it", command=("sh", "-c", "exit 7"))):
            pass


async def test_a_program_that_is_not_there() -> None:
    with pytest.raises(BadInputError, match="it: there is no program 'no-such-program'"):
        async with McpServers(McpCommand(name="it", command=("no-such-program",))):
            pass


async def test_a_url_where_nobody_is() -> None:
    with pytest.raises(UpstreamError, match="it cannot be spoken to: It could not be reached"):
        async with McpServers(McpEndpoint(name="it", url=f"http://127.0.0.1:{free_port()}/mcp")):
            pass


async def test_of_two_servers_one_that_fails_ends_the_other() -> None:
    with pytest.raises(BadInputError):
        async with McpServers(
            McpCommand(name="good", command=raw("good")), McpCommand(name="bad", command=("no-such-program",))
        ):
            pass


async def test_the_budget_is_right_whatever_the_tool_does() -> None:
    async with McpServers(McpCommand(name="it", command=raw("good"))) as servers:
        (go,) = servers.tools

        @task()
        async def made(run: Run) -> None:
            await go.use(run, {})

        async with Runtime() as runtime:
            started = runtime.start(made)
            await started
            assert started.spent.money == 0
            assert started.spent.calls == 0


def test_what_makes_no_sense_is_refused() -> None:
    for options in ({"name": "a__b"}, {"name": ""}, {"timeout": 0}, {"connections": 0}, {"most_bytes": 0}):
        with pytest.raises(BadInputError):
            McpCommand(**{"name": "it", "command": ("x",)} | options)  # pyright: ignore[reportArgumentType] - wrong on purpose
    with pytest.raises(BadInputError, match="Give a tuple of words"):
        McpCommand(name="it", command="npx -y server")  # pyright: ignore[reportArgumentType] - wrong on purpose
    with pytest.raises(BadInputError, match=r"no http\(s\) URL"):
        McpEndpoint(name="it", url="localhost:8000")
    with pytest.raises(BadInputError, match="Two servers are called 'it'"):
        McpServers(McpCommand(name="it", command=("a",)), McpCommand(name="it", command=("b",)))


def test_the_server_ends_with_a_process_that_was_killed(tmp_path: Path) -> None:
    """Whoever started it is killed with SIGKILL, and has no chance to end anything."""
    script = tmp_path / "starter.py"
    script.write_text(
        "import asyncio, sys\n"
        "from headway.runtime import McpCommand, McpServers, Run, task\n"
        "async def main():\n"
        f"    async with McpServers(McpCommand(name='it', command={PROGRAM!r})) as servers:\n"
        "        tools = {tool.name: tool for tool in servers.tools}\n"
        "        @task()\n"
        "        async def ask(run: Run) -> None:\n"
        "            for name in ('it__pid', 'it__spawn'):\n"
        "                print((await tools[name].use(run, {})).text, flush=True)\n"
        "            await tools['it__hang'].use(run, {})\n"
        "        await ask.start()\n"
        "asyncio.run(main())\n"
    )
    import subprocess  # noqa: PLC0415 - of this test alone
    import sys  # noqa: PLC0415 - as above
    import time  # noqa: PLC0415 - as above

    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pids = [int(starter.stdout.readline()) for _ in range(2)]
        starter.send_signal(signal.SIGKILL)
    until = time.monotonic() + 20
    while any(map(runs, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(runs, pids))
