"""Servers that misbehave below the protocol, in HTTP: written by hand, of the older handshake with sessions."""

import gzip
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from headway.app.dashboard.server import Dashboard
from headway.core.errors import UpstreamError
from headway.runtime import McpEndpoint, McpServers, Run, task

JSON = (b"content-type", b"application/json")
EVENTS = (b"content-type", b"text/event-stream")


class Server:
    """An ASGI application that answers the handshake well, and calls of the tool ``go`` as ``how`` says."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.sessions = 0
        self.calls = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        asked: dict[str, Any] = await request.json() if request.method == "POST" else {}
        session = request.headers.get("mcp-session-id")
        match asked.get("method"):
            case _ if self.how == "no key":
                await self.send(send, 401, b"<html>Who are you?</html>", (b"content-type", b"text/html"))
            case "initialize":
                self.sessions += 1
                found = {"name": "raw", "version": "1"}
                result: dict[str, Any] = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": found,
                }
                await self.answer(send, asked, result, (b"mcp-session-id", str(self.sessions).encode()))
            case "tools/list":
                tools = [{"name": "go", "inputSchema": {"type": "object"}}]
                await self.answer(send, asked, {"tools": tools})
            case "tools/call" if self.how == "forgets" and session == "1":
                await self.send(send, 404, b"no such session")
            case "tools/call":
                self.calls += 1
                await self.misbehave(send, asked)
            case "notifications/initialized":
                await self.send(send, 202, b"")
            case None:
                await self.send(send, 405, b"")
            case _:
                error = {"code": -32601, "message": "Method not found"}
                await self.send(send, 200, self.line({"id": asked.get("id"), "error": error}), JSON)

    async def misbehave(self, send: Send, asked: dict[str, Any]) -> None:
        match self.how:
            case "packs":
                packed = gzip.compress(self.line({"id": asked["id"], "result": {"content": []}}))
                await self.send(send, 200, packed, JSON, (b"content-encoding", b"gzip"))
            case "endless":
                await self.endless(send, JSON)
            case "endless event":
                await self.endless(send, EVENTS)
            case "breaks off":
                await send({"type": "http.response.start", "status": 200, "headers": [JSON]})
                await send({"type": "http.response.body", "body": b'{"jsonrpc"', "more_body": True})
                raise ConnectionAbortedError  # uvicorn closes the connection in the middle of the answer
            case "fails":
                await self.send(send, 500, b"oops")
            case _:
                await self.answer(send, asked, {"content": [{"type": "text", "text": "done"}]})

    async def endless(self, send: Send, kind: tuple[bytes, bytes]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [kind]})
        await send({"type": "http.response.body", "body": b"data: ", "more_body": True})
        for _ in range(100_000):  # 6.5 GB, were it taken
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})

    async def answer(
        self, send: Send, asked: dict[str, Any], result: dict[str, Any], *headers: tuple[bytes, bytes]
    ) -> None:
        await self.send(send, 200, self.line({"id": asked["id"], "result": result}), JSON, *headers)

    @staticmethod
    def line(message: dict[str, Any]) -> bytes:
        return json.dumps({"jsonrpc": "2.0", **message}).encode()

    @staticmethod
    async def send(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def served(server: Server) -> AsyncGenerator[str]:
    front = Dashboard(server)
    try:
        yield f"{await front.start(0)}/mcp"
    finally:
        await front.stop()


@task()
async def go(run: Run, servers: McpServers) -> tuple[str, bool]:
    (tool,) = servers.tools
    result = await tool.use(run, {})
    return result.text, result.failed


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("packs", "It packed its answer, which it was not asked to."),
        ("endless", "it has more than 1,000,000 bytes"),
        ("endless event", "Server-sent event exceeded the 1000000 byte limit"),
        ("breaks off", "Whether the call was done is not known."),
        ("fails", "It answered 500 Internal Server Error."),
    ],
)
async def test_what_goes_wrong_with_an_answer_is_a_failure_of_that_call(how: str, words: str) -> None:
    server = Server(how)
    async with served(server) as url, McpServers(McpEndpoint(name="it", url=url)) as servers:
        said, failed = await go.start(servers)
        assert failed
        assert words in said
        assert server.calls == 1
        server.how = "behaves"
        assert await go.start(servers) == ("done", False)


async def test_a_session_that_the_server_has_forgotten_is_made_anew_and_the_call_made_once() -> None:
    server = Server("forgets")
    async with served(server) as url, McpServers(McpEndpoint(name="it", url=url)) as servers:
        assert await go.start(servers) == ("done", False)
        assert (server.sessions, server.calls) == (2, 1)


async def test_a_server_that_wants_a_key_says_so() -> None:
    async with served(Server("no key")) as url:
        with pytest.raises(UpstreamError, match="it cannot be spoken to: It answered 401 Unauthorized"):
            async with McpServers(McpEndpoint(name="it", url=url)):
                pass


async def test_headers_are_sent(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str | None] = []

    class Keyed(Server):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(Request(scope).headers.get("authorization"))
            await super().__call__(scope, receive, send)

    caplog.set_level("DEBUG")
    key = {"authorization": "Bearer open-sesame"}
    async with served(Keyed("")) as url, McpServers(McpEndpoint(name="it", url=url, headers=key)) as servers:
        assert await go.start(servers) == ("done", False)
    assert set(seen) == {"Bearer open-sesame"}
    assert "open-sesame" not in caplog.text
