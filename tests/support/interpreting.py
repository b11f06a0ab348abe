"""A tiny real server that translates: a caller's client on one side, an engine's scripted answers on the other."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import openai
from anthropic.types.message_create_params import MessageCreateParams
from openai.types.chat.completion_create_params import CompletionCreateParams
from pydantic import TypeAdapter
from serving import streamed, whole

from headway.core.errors import BadInputError
from headway.wire.dialect import Dialect
from headway.wire.sse import EventScanner
from headway.wire.translate.exchange import Exchange, Refused

CREATED = 1_700_000_000
_TYPES: dict[str, TypeAdapter[Any]] = {
    "openai-chat": TypeAdapter(CompletionCreateParams),
    "anthropic-messages": TypeAdapter(MessageCreateParams),
}


def checked(exchange: Exchange, engine: Dialect) -> dict[str, Any]:
    """The engine's request, once the types of its own client's package have let it pass."""
    body: dict[str, Any] = json.loads(exchange.body)
    _walk(_TYPES[engine.name].validate_python(body))
    return body


def _walk(value: Any) -> None:  # noqa: ANN401 - pydantic checks what it calls iterable only as it is gone through
    if isinstance(value, dict):
        for each in value.values():  # pyright: ignore[reportUnknownVariableType] - as above
            _walk(each)
    elif hasattr(value, "__iter__") and not isinstance(value, str | bytes):
        for each in value:
            _walk(each)


def heard(exchange: Exchange, sent: list[bytes]) -> bytes:
    """What the caller gets for a stream that comes in these pieces."""
    scanner, interpreter = EventScanner(), exchange.interpreter()
    told = b"".join([interpreter.feed(data) for piece in sent for data in scanner.feed(piece)])
    return told + interpreter.end()


@asynccontextmanager
async def interpreted(
    caller: Dialect, engine: Dialect, *answers: bytes, seen: list[dict[str, Any]] | None = None
) -> AsyncGenerator[str]:
    """The address of a server of ``caller``'s dialect, before an engine that gives these answers one after the other.

    Args:
        caller: what clients speak to it.
        engine: what it speaks to the engine.
        answers: bodies; those of streams are whole events.
        seen: what the engine was asked is added to it.
    """
    left = list(answers)

    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await _head(reader):
                length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(length[1]) if length else 0)
                writer.write(_answered(caller, engine, body, left, seen))
        finally:
            writer.close()
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.get_running_loop().create_task(serve(reader, writer)))

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await asyncio.gather(*tasks)


async def _head(reader: asyncio.StreamReader) -> bytes:
    """The next request's head; nothing once the client has left."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def _answered(
    caller: Dialect, engine: Dialect, body: bytes, left: list[bytes], seen: list[dict[str, Any]] | None
) -> bytes:
    try:
        exchange = Exchange(caller, engine, body, created=CREATED)
    except BadInputError as error:
        refused = whole(caller.error(Refused(400, str(error), "bad_request")))
        return refused.replace(b"200 OK", b"400 Bad Request", 1)
    asked = checked(exchange, engine)
    if seen is not None:
        seen.append(asked)
    answer = left.pop(0)
    if not asked.get("stream"):
        return whole(exchange.answer(answer))
    return streamed(heard(exchange, [answer[at : at + 7] for at in range(0, len(answer), 7)]))


def anthropic_client(url: str) -> anthropic.AsyncAnthropic:
    """A client that does not hide failures by trying again."""
    http = anthropic.DefaultAsyncHttpxClient(verify=False)
    return anthropic.AsyncAnthropic(base_url=url, api_key="caller", max_retries=0, timeout=20, http_client=http)


def openai_client(url: str) -> openai.AsyncOpenAI:
    """As `anthropic_client`."""
    http = openai.DefaultAsyncHttpxClient(verify=False)
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="caller", max_retries=0, timeout=20, http_client=http)
