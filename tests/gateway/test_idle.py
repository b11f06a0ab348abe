"""Ten thousand connections that do nothing, or dribble: little memory each, and calls are served beside them."""

import asyncio
import os
import resource
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from serving import Served, chat, serving

from headway.core.config import Limits
from headway.gateway.fake import FakeEngine

MOST = 10_000
EACH = 8 << 10
"""Bytes: a connection that has sent half a header takes about 5 KB, one that has sent nothing about 3."""
_AT_ONCE = 500


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def connected(port: int, count: int) -> Generator[list[socket.socket]]:
    """So many clients, who wait to be let in."""
    clients = [socket.socket() for _ in range(count)]
    try:
        for client in clients:
            client.setblocking(False)  # noqa: FBT003 - the socket's signature
            client.connect_ex(("127.0.0.1", port))
        yield clients
    finally:
        for client in clients:
            client.close()


async def let_in(served: Served, count: int) -> None:
    while True:
        if served.gateway.open_connections >= count:
            return
        await asyncio.sleep(0)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell how much memory is used")
@pytest.mark.parametrize("sent", [b"", b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"])
async def test_idle_connections_cost_little_and_hold_nobody_up(sent: bytes) -> None:
    count = min(MOST, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 500) // 2)
    loop = asyncio.get_running_loop()
    limits = Limits(connections=MOST + 10, header_seconds=600, idle_seconds=600)
    async with FakeEngine() as engine, serving(engine, limits=limits) as served:
        assert (await served.ask(chat())).status == 200
        before, opened = resident(), list[socket.socket]()
        while len(opened) < count:
            with connected(served.port, min(_AT_ONCE, count - len(opened))) as clients:
                for client in clients:
                    await loop.sock_sendall(client, sent)
                opened += [client.dup() for client in clients]
            async with asyncio.timeout(60):
                await let_in(served, len(opened))
        try:
            assert (resident() - before) / count < EACH
            assert (await served.ask(chat())).status == 200
        finally:
            for client in opened:
                client.close()
