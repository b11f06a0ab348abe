"""Gateways that tell each other where calls went: a session goes on where its prompt is, whoever is called next."""

import asyncio
import itertools
import json
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from house import House, Opened
from own_redis import OwnRedis
from services import clear_redis, own_name, redis_url
from serving import Served, chat, serving

from headway.core.clock import SystemClock
from headway.core.fleet import Replica
from headway.core.span import ModelCall, Receipt
from headway.gateway.bus import Bus
from headway.gateway.door import Door
from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.scheduling import Scheduling
from headway.gateway.whereabouts import BusChannel, Channel, Recent, Whereabouts
from headway.gateway.whereabouts_redis import RedisChannel
from headway.gateway.wiring import Passes
from headway.policy.identify import Identifier
from headway.policy.route import RoutePolicy
from headway.policy.routing.expected_seconds import ExpectedSeconds
from headway.policy.routing.round_robin import RoundRobin

REPLICAS = frozenset({"r0", "r1"})
LONG = "A long question, word by word. " * 100


@asynccontextmanager
async def gateway(
    me: str,
    engines: Sequence[FakeEngine | Replica],
    policy: RoutePolicy,
    channel: Channel | None,
    door: Door | None = None,
) -> AsyncGenerator[Served]:
    whereabouts = Whereabouts(me, REPLICAS, SystemClock(), channel)
    passes = Passes(whereabouts=whereabouts, door=door)
    identifier = Identifier(lambda: uuid4().hex, measure=True)
    async with serving(
        *engines, policy=policy, scheduling=Scheduling(), passes=passes, identifier=identifier
    ) as served:
        yield served


@asynccontextmanager
async def two_gateways(
    channel: Callable[[], Channel | None] = lambda: None, doors: tuple[Door | None, Door | None] = (None, None)
) -> AsyncGenerator[tuple[Served, Served]]:
    """One that sends calls to each of two engines in turn, and one that goes by what it knows of them."""
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(FakeEngine(lambda _: Reply(content="done"))) for _ in range(2)]
        one = await stack.enter_async_context(gateway("one", engines, RoundRobin(), channel(), doors[0]))
        two = await stack.enter_async_context(gateway("two", engines, ExpectedSeconds(), channel(), doors[1]))
        one.gateway.bus.join(two.gateway.bus.hear)
        two.gateway.bus.join(one.gateway.bus.hear)
        yield one, two


async def counted(served: Served, outcome: str, extra: str = "") -> int:
    page = (await served.ask(f"GET /metrics HTTP/1.1\r\nhost: x\r\n{extra}\r\n".encode())).body.decode()
    sample = f'headway_whereabouts_total{{outcome="{outcome}"}} '
    return next(int(line.removeprefix(sample)) for line in page.splitlines() if line.startswith(sample))


async def until_heard(served: Served, calls: int, extra: str = "") -> None:
    async with asyncio.timeout(10):
        while await counted(served, "heard", extra) < calls:
            pass


async def ask(served: Served, session: str, turns: int, extra: str = "") -> None:
    """A call of a session that has had so many turns."""
    messages: list[Any] = [{"role": "user", "content": f"{session}: {LONG}"}]
    for turn in range(turns):
        messages += [{"role": "assistant", "content": "done"}, {"role": "user", "content": f"and then {turn}?"}]
    answer = await served.ask(chat(extra, messages=messages))
    assert answer.status == 200, answer.body


async def last_receipt(served: Served, calls: int) -> Receipt:
    spans = [span for span in await served.spans(calls) if isinstance(span.work, ModelCall)]
    work = max(spans, key=lambda span: span.start).work
    assert isinstance(work, ModelCall)
    assert work.route is not None
    return work.route


async def test_a_session_goes_on_where_another_gateway_has_sent_it() -> None:
    async with two_gateways() as (one, two):
        await ask(one, "first", 0)  # to r0
        await ask(one, "second", 0)  # to r1
        await until_heard(two, 2)
        await ask(two, "second", 1)
        assert (await last_receipt(two, 1)).winner == "r1"
        await ask(two, "first", 1)
        assert (await last_receipt(two, 2)).winner == "r0"
        await until_heard(one, 2)
        assert await counted(one, "told") == await counted(two, "told") == 2


@asynccontextmanager
async def shared_redis() -> AsyncGenerator[Callable[[], RedisChannel]]:
    url, prefix = redis_url(), own_name()
    try:
        yield lambda: RedisChannel(url, prefix=prefix)
    finally:
        clear_redis(prefix)


async def test_and_so_it_does_through_redis_with_one_that_came_later() -> None:
    async with shared_redis() as channel, two_gateways(channel) as (one, two):
        await ask(one, "first", 0)
        await ask(one, "second", 0)
        await until_heard(two, 2)
        await ask(two, "second", 1)
        assert (await last_receipt(two, 1)).winner == "r1"
        engines = [load.replica for load in two.gateway.fleet.view().loads]
        async with gateway("three", engines, ExpectedSeconds(), channel()) as three:
            await until_heard(three, 3)
            await ask(three, "second", 2)
            assert (await last_receipt(three, 1)).winner == "r1"


async def test_while_redis_is_away_each_goes_by_what_it_knows_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with OwnRedis() as redis, two_gateways(lambda: RedisChannel(redis.url)) as (one, two):
        await ask(one, "first", 0)
        await ask(one, "second", 0)
        await until_heard(two, 2)
        await redis.stop()
        await until_trouble(two, there=True)
        health = json.loads((await two.ask(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")).body)
        assert health["status"] == "ok"
        assert health["whereabouts"].startswith("Redis cannot be used")
        page = (await two.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")).body
        assert b"\nheadway_whereabouts_workers 0\n" in page
        await ask(two, "second", 1)
        assert (await last_receipt(two, 1)).winner == "r1"  # as it was told before
        assert await counted(two, "not_told") == 1
        assert "where other workers send calls is not known for now" in caplog.text
        await redis.start()
        await until_trouble(one, there=False)
        await until_trouble(two, there=False)
        await ask(one, "third", 0)  # to r0
        await ask(one, "fourth", 0)  # to r1
        await until_heard(two, 4)
        await ask(two, "fourth", 1)
        assert (await last_receipt(two, 2)).winner == "r1"
        assert "where other workers send calls is known again" in caplog.text


async def until_trouble(served: Served, *, there: bool) -> None:
    async with asyncio.timeout(20):
        while True:
            health = json.loads((await served.ask(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")).body)
            if (health["whereabouts"] != "known of all workers") is there:
                return


async def test_what_another_tenants_prompt_has_left_where_is_not_to_be_learnt_from_ones_own(tmp_path: Path) -> None:
    house, second = House(tmp_path), House(tmp_path)
    house.tenant("acme")
    house.tenant("mallory")
    key, attacker, operator = house.key("acme"), house.key("mallory"), house.key("acme", role="operator")
    async with Opened(house) as door, Opened(second) as other, two_gateways(doors=(door, other)) as (one, two):
        await ask(one, "decoy", 0, f"authorization: Bearer {key}\r\n")  # to r0
        await ask(one, "secret", 0, f"authorization: Bearer {key}\r\nx-session-id: s1\r\n")  # to r1
        await until_heard(two, 2, f"authorization: Bearer {operator}\r\n")
        forged = f"authorization: Bearer {attacker}\r\nx-session-id: s1\r\nx-headway-tenant: acme\r\n"
        await ask(two, "secret", 0, forged)
        receipt = await last_receipt(two, 1)
        assert len({candidate.score for candidate in receipt.candidates}) == 1, "the attacker's scores tell who has it"
        assert receipt.reason == "costs least"
        await ask(two, "secret", 1, f"authorization: Bearer {key}\r\nx-session-id: s1\r\n")
        assert (await last_receipt(two, 2)).winner == "r1", "its owner it does tell"
    house.registry.close()
    second.registry.close()


async def test_messages_that_nobody_can_read_are_counted_and_harm_nothing() -> None:
    async with two_gateways() as (one, two):
        for message in (b"", b"\xc1", b"garbage", b"\x93\xa1x\x90\x91\x01"):
            one.gateway.bus.publish("whereabouts", message)
        page = (await two.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")).body
        assert b"\nheadway_whereabouts_garbled_total 4\n" in page
        await ask(two, "first", 0)


async def test_a_channel_that_takes_nothing_holds_no_call_up() -> None:
    class Full(BusChannel):
        def tell(self, message: bytes) -> bool:
            del message
            return False

    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(FakeEngine(lambda _: Reply(content="done")))
        served = await stack.enter_async_context(gateway("one", [engine], ExpectedSeconds(), Full(Bus())))
        await ask(served, "first", 0)
        async with asyncio.timeout(10):
            while await counted(served, "not_told") < 1:
                pass
        assert await counted(served, "told") == 0


def test_what_was_told_last_is_kept_within_bounds() -> None:
    recent = Recent(limit=10)
    for number in itertools.islice(itertools.count(), 100):
        recent.add(b"%03d" % number)
    assert list(recent) == [b"097", b"098", b"099"]
    assert recent.bytes == 9
