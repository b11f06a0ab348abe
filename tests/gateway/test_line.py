"""What two processes of one gateway say to each other, over real sockets."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from headway.core.errors import BadInputError, HeadwayError, WorkerError
from headway.gateway.line import Line


@asynccontextmanager
async def joined() -> AsyncGenerator[tuple[Line, Line]]:
    one, two = Line(), Line()
    ends = socket.socketpair()
    await one.open(ends[0])
    await two.open(ends[1])
    try:
        yield one, two
    finally:
        await one.close()
        await two.close()


async def test_news_come_in_their_order_however_long_they_are() -> None:
    async with joined() as (one, two):
        heard: list[bytes] = []
        done = asyncio.Event()
        two.on_news("a", heard.append)
        two.on_news("end", lambda _: done.set())
        sent = [b"x" * size for size in (0, 1, 70_000, 3, 2_000_000)]
        for payload in sent:
            one.tell("a", payload)
        one.tell("nobody listens to this", b"")
        one.tell("end", b"")
        async with asyncio.timeout(10):
            await done.wait()
        assert heard == sent


async def test_questions_are_answered_side_by_side_and_errors_come_back_as_they_were() -> None:
    async with joined() as (one, two):
        gate = asyncio.Event()

        async def slowly(payload: bytes) -> bytes:
            await gate.wait()
            return payload[::-1]

        async def at_once(payload: bytes) -> bytes:
            gate.set()
            if payload == b"bad":
                raise BadInputError("No.", fix="Ask otherwise.")
            if payload == b"away":
                raise HeadwayError("Away.")
            if payload == b"broken":
                raise ZeroDivisionError
            return payload

        two.on_question("slow", slowly)
        two.on_question("quick", at_once)
        slow = asyncio.create_task(one.ask("slow", b"abc"))
        assert await one.ask("quick", b"1") == b"1"
        assert await slow == b"cba"
        with pytest.raises(BadInputError, match=r"No\. Ask otherwise\."):
            await one.ask("quick", b"bad")
        with pytest.raises(HeadwayError, match="Away") as told:
            await one.ask("quick", b"away")
        assert not isinstance(told.value, BadInputError)
        with pytest.raises(HeadwayError, match="failed with ZeroDivisionError"):
            await one.ask("quick", b"broken")
        with pytest.raises(HeadwayError, match="Nobody answers"):
            await one.ask("other", b"")


async def test_whoever_waits_is_told_when_the_other_end_is_gone_or_late() -> None:
    async with joined() as (one, two):
        never = asyncio.Event()
        asked = asyncio.Event()

        async def silent(payload: bytes) -> bytes:
            asked.set()
            await never.wait()
            return payload

        two.on_question("a", silent)
        with pytest.raises(WorkerError, match="did not answer"):
            await one.ask("a", b"", 0.01)
        asked.clear()
        waiting = asyncio.create_task(one.ask("a", b""))
        await asked.wait()
        await two.close()
        with pytest.raises(WorkerError, match="gone"):
            await waiting
        await one.ended
        with pytest.raises(WorkerError, match="gone"):
            await one.ask("a", b"")
        one.tell("a", b"")
        assert one.dropped == 1


async def test_news_for_one_who_does_not_read_are_dropped_before_they_fill_the_memory() -> None:
    one = Line()
    mine, its = socket.socketpair()
    await one.open(mine)
    for _ in range(40):
        one.tell("a", b"x" * (1 << 20))
    assert 20 <= one.dropped <= 24  # 16 MiB wait, and what the sockets hold
    its.close()
    await one.close()
