"""An MCP server that behaves and misbehaves as it is asked: over stdio, or over HTTP at a port that is given.

It is written with the `mcp` package, so that what clients meet is the real protocol.
"""

import asyncio
import base64
import os
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

Context = ServerRequestContext[Any, Any]
PAGE = 7
news = InMemorySubscriptionBus()
grown: list[str] = []
counted: list[int] = []


def tool(name: str) -> Tool:
    number = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    return Tool(
        name=name,
        description=f"The tool {name}.",
        input_schema={"type": "object", "properties": {"text": {"type": "string"}}},
        output_schema=number if name in {"add", "lie"} else None,
    )


async def listed(_: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    """In pages, as a server with many tools does."""
    names = [*NAMES, *grown]
    start = int(params.cursor) if params is not None and params.cursor is not None else 0
    cursor = str(start + PAGE) if start + PAGE < len(names) else None
    return ListToolsResult(tools=[tool(name) for name in names[start : start + PAGE]], next_cursor=cursor)


def text(said: object) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=str(said))])


def die() -> CallToolResult:
    os._exit(3)


def count() -> CallToolResult:
    counted.append(1)
    return text(len(counted))


SIMPLE: dict[str, Callable[[dict[str, Any]], CallToolResult]] = {
    "echo": lambda arguments: text(arguments["text"]),
    "add": lambda arguments: CallToolResult(content=[], structured_content={"sum": arguments["a"] + arguments["b"]}),
    "pid": lambda _: text(os.getpid()),
    "die": lambda _: die(),
    "huge": lambda arguments: text("x" * arguments["bytes"]),
    "lie": lambda _: CallToolResult(content=[], structured_content={"sum": "many"}),
    "show": lambda _: shown(),
    "refuse": lambda _: CallToolResult(content=[TextContent(text="I will not.")], is_error=True),
    "count": lambda _: count(),
    "much": lambda _: text("\N{SNOWMAN}" * 30_000),
}
NAMES = (*SIMPLE, "meta", "hang", "grow")


async def called(context: Context, params: CallToolRequestParams) -> CallToolResult:
    arguments = params.arguments or {}
    match params.name:
        case "meta":
            return text((context.meta or {}).get("traceparent"))
        case "hang":
            await asyncio.Event().wait()
            raise AssertionError
        case "grow":
            grown.append(arguments["name"])
            await news.publish(ToolsListChanged())
            await context.session.send_tool_list_changed()
            return text("grown")
        case name if name in SIMPLE:
            return SIMPLE[name](arguments)
        case name:
            return text(name)


def shown() -> CallToolResult:
    """A block of each kind."""
    data = base64.b64encode(b"12345").decode()
    return CallToolResult(
        content=[
            TextContent(text="Look:"),
            ImageContent(data=data, mime_type="image/png"),
            AudioContent(data=data, mime_type="audio/wav"),
            ResourceLink(name="notes", uri="file:///notes.md", mime_type="text/markdown"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///a.txt", text="the text of a")),
            EmbeddedResource(resource=BlobResourceContents(uri="file:///b.bin", blob=data)),
        ]
    )


def made() -> Server[Any]:
    return Server(
        "misbehaving",
        version="1",
        on_list_tools=listed,
        on_call_tool=called,
        on_subscriptions_listen=ListenHandler(news),
    )


async def over_stdio() -> None:
    server = made()
    async with stdio_server() as (hear, tell):
        await server.run(hear, tell, server.create_initialization_options())


def main() -> None:
    if len(sys.argv) == 1:
        asyncio.run(over_stdio())
    else:
        uvicorn.run(made().streamable_http_app(), port=int(sys.argv[1]), log_level="error")


if __name__ == "__main__":
    main()
