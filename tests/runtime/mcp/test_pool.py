"""Tools of a real server over both transports; each test is of what the user of a tool sees."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from mcp_serving import PROGRAM, free_port, in_task, over_http, raw, tools_of, use
from msgspec import structs
from pytest_asyncio import fixture

from headway.core.errors import BadInputError, MissingExtraError, UpstreamError
from headway.core.span import Span, ToolUse
from headway.runtime import McpCommand, McpEndpoint, McpServers, Run, Runtime, Tool, task
from headway.trace.store import Store

pytestmark = pytest.mark.asyncio(loop_scope="module")
PURE = frozenset({"count"})


@fixture(scope="module", loop_scope="module", params=["stdio", "http"])
async def servers(request: pytest.FixtureRequest) -> AsyncGenerator[McpServers]:
    if request.param == "stdio":
        async with McpServers(McpCommand(name="it", command=PROGRAM, pure=PURE, concurrency=64)) as found:
            yield found
    else:
        with over_http(free_port()) as url:
            async with McpServers(McpEndpoint(name="it", url=url, pure=PURE, concurrency=64)) as found:
                yield found


@fixture(loop_scope="module")
async def tools(servers: McpServers) -> dict[str, Tool]:
    return tools_of(servers)


async def test_tools_of_all_pages_are_there_and_answer(tools: dict[str, Tool]) -> None:
    assert list(tools)[:10] == ["echo", "add", "pid", "die", "huge", "lie", "show", "refuse", "count", "much"]
    assert tools["echo"].description == "The tool echo."
    assert tools["echo"].parameters == {"type": "object", "properties": {"text": {"type": "string"}}}
    assert await use(tools["echo"], text="안녕") == ("안녕", False)
    assert await use(tools["add"], a=2, b=3) == ('{"sum":5}', False)
    assert await use(tools["refuse"]) == ("I will not.", True)


async def test_what_is_no_text_is_told_of(tools: dict[str, Tool]) -> None:
    said, failed = await use(tools["show"])
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


async def test_an_answer_of_100_mb_is_a_failure_of_that_call_alone(tools: dict[str, Tool]) -> None:
    before, _ = await use(tools["pid"])
    huge, echoed = await asyncio.gather(use(tools["huge"], bytes=100_000_000), use(tools["echo"], text="beside it"))
    assert huge[1]
    assert "1000000" in huge[0].replace(",", "")
    assert echoed == ("beside it", False)
    assert await use(tools["pid"]) == (before, False)


async def test_a_long_answer_is_cut_and_the_model_is_told(tools: dict[str, Tool]) -> None:
    said, failed = await use(tools["much"])
    assert not failed
    assert len(said.encode()) < 66_000
    assert "[Cut: the first 65,536 bytes of 30,000 characters. Ask for less.]" in said


async def test_a_tool_that_hangs_is_given_up_and_the_others_go_on(tools: dict[str, Tool]) -> None:
    before, _ = await use(tools["pid"])
    hang = structs.replace(tools["hang"], timeout=0.5)
    hung, echoed = await asyncio.gather(use(hang), use(tools["echo"], text="still here"))
    assert hung[1]
    assert "was not done in 0.5 s" in hung[0]
    assert echoed == ("still here", False)
    assert await use(tools["pid"]) == (before, False)


async def test_a_tool_that_lies_about_its_schema(tools: dict[str, Tool]) -> None:
    said, failed = await use(tools["lie"])
    assert failed
    assert "it gave an answer that is not as it declared" in said
    assert await use(tools["echo"], text="and on") == ("and on", False)


async def test_a_new_tool_is_there_when_the_server_has_told_of_it(servers: McpServers, tools: dict[str, Tool]) -> None:
    name = f"new_{os.urandom(4).hex()}"
    await use(tools["grow"], name=name)
    async with asyncio.timeout(60):
        while name not in tools_of(servers):  # noqa: ASYNC110 - its users are told nothing, they look
            await asyncio.sleep(0.05)
    found = tools_of(servers)
    assert await use(found[name]) == (name, False)
    assert found["echo"] is tools["echo"]


async def test_64_calls_at_once_share_one_connection(tools: dict[str, Tool]) -> None:
    async def ask(run: Run, number: int) -> str:
        return (await tools["echo"].use(run, {"text": str(number)})).text

    said = await in_task(lambda run: run.map(ask, range(64)))
    assert said == [str(number) for number in range(64)]


async def test_a_pure_tool_is_asked_once_in_a_task(tools: dict[str, Tool]) -> None:
    async def thrice(run: Run) -> set[str]:
        return {(await tools["count"].use(run, {})).text for _ in range(3)}

    assert len(await in_task(thrice)) == 1


async def test_its_calls_are_spans_and_carry_the_trace(tools: dict[str, Tool], tmp_path: Path) -> None:
    said = await in_task(lambda run: tools["meta"].use(run, {}), store=tmp_path / "s.db")
    with Store(tmp_path / "s.db", readonly=True) as store:
        spans: tuple[Span, ...] = store.spans(store.tasks()[0].task)
    (call,) = [span for span in spans if isinstance(span.work, ToolUse)]
    assert call.name == "execute_tool it__meta"
    trace, parent = said.text.split("-")[1:3]
    assert trace == call.task
    assert parent in {span.id for span in spans}


async def test_a_server_at_a_url_that_dies_in_mid_call_is_found_again_at_its_url() -> None:
    port = free_port()
    servers = None
    with over_http(port) as url:
        servers = await McpServers(McpEndpoint(name="it", url=url)).__aenter__()
        tools = tools_of(servers)
        said, failed = await use(tools["die"])
        assert failed
        assert "Whether the call was done is not known." in said
        said, failed = await use(tools["echo"], text="anybody?")
        assert failed
        assert "it cannot be spoken to: It could not be reached" in said
    with over_http(port):
        assert await use(tools["echo"], text="again") == ("again", False)
        await servers.__aexit__()


async def test_only_those_that_are_wanted_by_names_that_models_can_call() -> None:
    async with McpServers(raw("odd names", only=frozenset({"go", "fs.read", "fs/read", "x" * 100}))) as servers:
        names = [tool.name for tool in servers.tools]
    assert names[:2] == ["it__go", "it__fs_read"]
    assert len(names) == 3  # the second fs_read could not be told from the first
    assert len(names[2]) == 64


async def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("connections", "connection"):
        monkeypatch.delitem(sys.modules, f"headway.runtime.mcp.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.client", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'headway\[mcp\]'"):
        async with McpServers(raw("good")):
            pass


async def test_a_url_where_nobody_is() -> None:
    with pytest.raises(UpstreamError, match="it cannot be spoken to: It could not be reached"):
        async with McpServers(McpEndpoint(name="it", url=f"http://127.0.0.1:{free_port()}/mcp")):
            pass


async def test_the_budget_is_right_when_a_call_fails() -> None:
    async with McpServers(raw("die")) as servers:

        @task()
        async def made(run: Run) -> None:
            await tools_of(servers)["go"].use(run, {})

        async with Runtime() as runtime:
            started = runtime.start(made)
            await started
    assert (started.spent.money, started.spent.tokens, started.spent.calls) == (0, 0, 0)


async def test_what_makes_no_sense_is_refused() -> None:
    for options in ({"name": "a__b"}, {"name": ""}, {"timeout": 0}, {"connections": 0}, {"most_bytes": 0}):
        with pytest.raises(BadInputError):
            McpCommand(**{"name": "it", "command": ("x",)} | options)  # pyright: ignore[reportArgumentType] - wrong on purpose
    with pytest.raises(BadInputError, match="Give a tuple of words"):
        McpCommand(name="it", command="npx -y server")  # pyright: ignore[reportArgumentType] - wrong on purpose
    with pytest.raises(BadInputError, match=r"no http\(s\) URL"):
        McpEndpoint(name="it", url="localhost:8000")
    with pytest.raises(BadInputError, match="Two servers are called 'it'"):
        McpServers(McpCommand(name="it", command=("a",)), McpCommand(name="it", command=("b",)))
