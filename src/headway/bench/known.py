"""An engine whose truth is known: each chunk says when it was sent, by the clock that all processes share.

    python -m headway.bench.known

Prints its port, serves until its standard input is closed. Not for load: for measuring the client that loads.
"""

import asyncio
import json
import sys
import time
from typing import Final, cast

import uvloop

CHUNKS: Final = 40
ITL: Final = 0.005
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _framed(event: str) -> bytes:
    data = f"data: {event}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def _chunk(content: str, finish: str | None = None) -> bytes:
    return _framed(json.dumps({"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}]}))


class _Stream(asyncio.Protocol):
    """Answers every request, whatever it is, with `CHUNKS` chunks `ITL` seconds apart."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name for it
        self._transport = None

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - one small request, in one read
        if self._transport is not None and not self._left:
            self._transport.write(_HEAD)
            self._left = CHUNKS
            self._next()

    def _next(self) -> None:
        if self._transport is None:
            return
        self._left -= 1
        if self._left:
            self._transport.write(_chunk(repr(time.monotonic())))
            asyncio.get_running_loop().call_later(ITL, self._next)
        else:
            self._transport.write(_chunk("", "stop") + _framed("[DONE]") + b"0\r\n\r\n")


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Stream, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - who started it reads the port
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(_serve())
