"""`headway mcp`, asked by the protocol's own client over both transports."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent
from pytest_asyncio import fixture

from headway.app.mcp.answers import Listed, Sources, tasks
from headway.app.mcp.server import made
from headway.core.errors import NotFoundError
from headway.core.span import Candidate, ModelCall, Receipt, Span, ToolUse
from headway.core.task import SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.prices import price_for
from headway.trace.store import Store

TASK = "ab" * 16
START = 1_800_000_000.0


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task of 4 s: a call of 2 s, a tool of 1 s, a call of 1 s."""
    path = tmp_path_factory.mktemp("mcp") / "s.db"
    receipt = Receipt(policy="least-loaded", winner="b", reason="idle", candidates=(Candidate("b", 0.5),), notes=())
    usage = Usage(input_tokens=100, output_tokens=10)

    def span(number: int, start: float, end: float, work: ModelCall | ToolUse) -> Span:
        return Span(
            task=TaskId(TASK),
            id=SpanId(f"{number}" * 16),
            parent=None,
            name="chat m" if isinstance(work, ModelCall) else "execute_tool look",
            start=START + start,
            end=START + end,
            work=work,
        )

    with Store(path) as opened:
        opened.write(
            [
                span(1, 0.0, 2.0, ModelCall(model="m", usage=usage, route=receipt)),
                span(2, 2.0, 3.0, ToolUse(name="look")),
                span(3, 3.0, 4.0, ModelCall(model="m", usage=usage)),
            ]
        )
    return path


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "headway", "mcp", *map(str, words)]


@asynccontextmanager
async def over_stdio(*words: str | Path) -> AsyncGenerator[Client]:
    program, *arguments = command(*words)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 60)  # it starts slowly on a busy machine
        async with Client(StdioServerParameters(command=program, args=arguments)) as client:
            yield client


@pytest.fixture(scope="module")
def url(store: Path) -> Generator[str]:
    with subprocess.Popen(command("--port", "0", "--store", store), stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = re.fullmatch(r"MCP server: (http://127\.0\.0\.1:\d+/mcp)\n", line)
            assert found, line
            yield found[1]
        finally:
            process.terminate()
            assert process.wait(20) == 128 + 15


@fixture(scope="module", loop_scope="module", params=["stdio", "http"])
async def client(request: pytest.FixtureRequest, store: Path) -> AsyncGenerator[Client]:
    """A client, which has to be left by the task that entered it."""
    ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()

    async def hold() -> None:
        stdio = request.param == "stdio"
        async with over_stdio("--store", store) if stdio else Client(request.getfixturevalue("url")) as found:
            ready.set_result(found)
            await leave.wait()

    holding = asyncio.create_task(hold())
    await asyncio.wait({holding, ready}, return_when="FIRST_COMPLETED")
    yield ready.result() if ready.done() else holding.result()  # pyright: ignore[reportReturnType] - raises
    leave.set()
    await holding


def told(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def ask(client: Client, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401 - JSON
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, told(result)
    return told(result), result.structured_content


async def test_what_is_offered_and_what_comes_of_asking(client: Client) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == ["tasks", "explain", "what_if", "why"]
    assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools.values())
    assert tools["what_if"].input_schema["required"] == ["changes"]

    text, document = await ask(client, "tasks")
    assert document["schema"] == "headway.tasks/1"
    assert [(row["task"], row["calls"], row["tokens"]) for row in document["tasks"]] == [(TASK, 2, 220)]
    assert TASK[:8] in text

    text, document = await ask(client, "explain")
    assert (document["schema"], document["e2e_s"], document["iterations"]) == ("headway.explain/1", 4.0, 2)
    assert "4.00 s" in text
    assert not {"spans", "path", "terms"} & document.keys()

    _, document = await ask(client, "explain", task=TASK[:6], details=True)
    assert {f"{number}" * 16 for number in (1, 2, 3)} <= {span["id"] for span in document["spans"]}

    _, document = await ask(client, "explain", all=True)
    assert document["e2e_s"] == 4.0  # a set of one is that one

    _, document = await ask(client, "what_if", changes="tool:look 0s")
    assert (document["what_if"]["before_s"], document["what_if"]["after_s"]) == (4.0, 3.0)

    text, document = await ask(client, "why", id="1111")
    assert [call["winner"] for call in document["calls"]] == ["b"]
    assert "idle" in text


async def test_errors_are_those_of_the_command_line_and_say_what_to_do(client: Client) -> None:
    for tool, arguments, words in (
        ("explain", {"task": "ffff"}, "ffff"),
        ("explain", {"task": TASK, "all": True}, "Leave `task` or `all` out."),
        ("explain", {"tsak": TASK}, "Object contains unknown field `tsak`"),
        ("what_if", {}, "missing required field `changes`"),
        ("what_if", {"changes": "make it fast"}, "'make it fast' is no change."),
        ("tasks", {"limit": 0}, ">= 1"),
        ("why", {"id": "9999"}, "9999"),
    ):
        result = await client.call_tool(tool, arguments)
        assert result.is_error
        assert words in told(result)
    with pytest.raises(MCPError, match="There is no tool 'drop'; there are tasks, explain, what_if, why"):
        await client.call_tool("drop", {})


async def test_files_of_any_tool_are_read_over_stdio_and_over_http_when_that_was_asked_for(
    client: Client, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    trace = tmp_path / "t.json"
    moment = 1_800_000_000_000_000_000
    span = {
        "traceId": "cd" * 16,
        "spanId": "ef" * 8,
        "name": "chat m",
        "startTimeUnixNano": str(moment),
        "endTimeUnixNano": str(moment + 2_500_000_000),
        "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}],
    }
    trace.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    if request.node.callspec.params["client"] == "http":
        result = await client.call_tool("explain", {"files": [str(trace)]})
        assert result.is_error
        assert "This server reads no files that callers name." in told(result)
        return
    _, document = await ask(client, "explain", files=[str(trace)])
    assert (document["task"], document["e2e_s"]) == ("cd" * 16, 2.5)
    result = await client.call_tool("explain", {"files": ["-"]})
    assert result.is_error
    assert "Standard input is not there to be read." in told(result)


async def test_pages_of_others_and_names_of_others_are_refused(url: str) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(trust_env=False) as client:
        for headers, status in (
            ({}, 200),
            ({"origin": "http://localhost:3000"}, 200),
            ({"origin": "https://evil.example"}, 403),
            ({"origin": "null"}, 403),
            ({"host": "evil.example"}, 403),
        ):
            answer = await client.post(url, json=asked, headers={**accept, **headers})
            assert answer.status_code == status, headers


async def test_where_nothing_is_recorded_that_is_said(tmp_path: Path) -> None:
    with Store(tmp_path / "empty.db"):
        pass
    with pytest.raises(NotFoundError, match="headway serve"):
        tasks(Sources(store=tmp_path / "empty.db", prices=price_for, files=False), Listed())


async def test_a_fault_of_our_own_is_an_error_of_that_call(caplog: pytest.LogCaptureFixture) -> None:
    broken = Sources(store=None, prices=price_for, files=False)  # pyright: ignore[reportArgumentType] - the fault
    async with Client(made(broken)) as client:
        for _ in range(2):
            result = await client.call_tool("tasks", {})
            assert result.is_error
            assert "tasks failed for a reason that is Headway's own" in told(result)
    assert "Traceback" in caplog.text
