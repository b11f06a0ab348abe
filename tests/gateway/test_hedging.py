"""Hedging before real engines, one of them slow: who is asked beside it, who answers, and what becomes of the other."""

import asyncio
from typing import Any

import pytest
from serving import QUESTION, Served, chat, serving

from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.hedging import HedgeRules, Hedging
from headway.gateway.retrying import Retrying
from headway.gateway.wiring import Passes
from headway.policy.resend.retry import RetryRules

CLOSE = "connection: close\r\n"
LATE = 0.05


def hedging(kind: str = "m", **rules: object) -> Passes:
    """First tokens of this kind of calls are known to take 50 ms."""
    hedges = Hedging(HedgeRules(**rules))  # pyright: ignore[reportArgumentType] - the rules' own fields
    for _ in range(20):
        hedges.hedger.observe(kind, LATE)
    return Passes(hedging=hedges)


def stalls(*, chunks: tuple[str, ...] = ("slow",)) -> tuple[Reply, asyncio.Event]:
    gate = asyncio.Event()
    return Reply(chunks=chunks, gate=gate), gate


async def metrics(served: Served) -> bytes:
    return await served.raw(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")


async def idle(served: Served, replica: str) -> None:
    """Wait until the gateway has no call at this replica."""
    async with asyncio.timeout(5):
        while any(one.id == replica and one.in_flight for one in served.gateway.fleet.health()):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0)


async def test_who_begins_first_answers_and_the_other_is_cut_off() -> None:
    slow, _ = stalls()
    async with FakeEngine(lambda _: slow) as one, FakeEngine() as two, serving(one, two, passes=hedging()) as served:
        async with served.client() as client:
            events = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
            text = "".join([event.choices[0].delta.content or "" async for event in events])
        await one.wait_cancelled()
        span, call = await served.call()
        page = await metrics(served)
    assert text == "echo: one two three"
    assert (span.error, call.replica, call.attempts) == (None, "r1", 2)
    (setback,) = call.setbacks
    assert (setback.replica, setback.error) == ("r0", "hedged")
    assert setback.end - setback.start >= LATE
    assert call.sent is not None
    assert setback.end <= call.sent
    assert call.route is not None
    assert call.route.winner == "r1"
    assert call.route.notes[-1].endswith("so r1 was asked too; r1 began first.")
    assert b'headway_hedges_total{first="second_replica"} 1\n' in page


async def test_where_the_first_begins_after_all_the_second_is_cut_off() -> None:
    first, gate = stalls()
    second, _ = stalls()
    async with FakeEngine(lambda _: first) as one, FakeEngine(lambda _: second) as two:  # noqa: SIM117 - as they come
        async with serving(one, two, passes=hedging()) as served:
            asked = asyncio.create_task(served.raw(chat(CLOSE, stream=True)))
            await two.until(lambda: two.active == 1)
            gate.set()
            raw = await asked
            await two.wait_cancelled()
            span, call = await served.call()
            page = await metrics(served)
    assert b"slow" in raw
    assert b"x-headway-replica: r0" in raw
    assert (span.error, call.replica, call.attempts) == (None, "r0", 2)
    (setback,) = call.setbacks
    assert (setback.replica, setback.error) == ("r1", "hedged")
    assert call.sent is not None
    assert call.sent < setback.start, "it is the first attempt's, before the other was made"
    assert b'headway_hedges_total{first="first_replica"} 1\n' in page


async def test_one_of_two_that_fails_leaves_the_other_to_answer() -> None:
    slow, gate = stalls()
    async with FakeEngine(lambda _: slow) as one, FakeEngine(lambda _: Reply(status=503)) as two:  # noqa: SIM117 - too long for one line
        async with serving(one, two, passes=hedging()) as served:
            asked = asyncio.create_task(served.raw(chat(CLOSE, stream=True)))
            await two.until(lambda: len(two.requests) == 1)
            await idle(served, "r1")
            gate.set()
            assert b"slow" in await asked
            span, call = await served.call()
    assert (span.error, call.replica) == (None, "r0")
    assert [(one.replica, one.error) for one in call.setbacks] == [("r1", "http_503")]


async def test_the_first_that_fails_leaves_the_second_to_answer() -> None:
    broken, gate = Reply(fault="close_before_answer", gate=asyncio.Event()), asyncio.Event()
    second = Reply(chunks=("second",), gate=gate)
    async with FakeEngine(lambda _: broken) as one, FakeEngine(lambda _: second) as two:  # noqa: SIM117 - as they come
        async with serving(one, two, passes=hedging()) as served:
            asked = asyncio.create_task(served.raw(chat(CLOSE, stream=True)))
            await two.until(lambda: two.active == 1)
            assert broken.gate is not None
            broken.gate.set()
            await idle(served, "r0")
            gate.set()
            assert b"second" in await asked
            span, call = await served.call()
    assert (span.error, call.replica) == (None, "r1")
    assert [(one.replica, one.error) for one in call.setbacks] == [("r0", "upstream_closed")]


async def test_two_that_fail_are_one_failure_with_its_setback() -> None:
    slow = Reply(status=503, gate=asyncio.Event())
    async with FakeEngine(lambda _: slow) as one, FakeEngine(lambda _: Reply(status=503)) as two:  # noqa: SIM117 - too long for one line
        async with serving(one, two, passes=hedging()) as served:
            asked = asyncio.create_task(served.raw(chat(CLOSE, stream=True)))
            await two.until(lambda: len(two.requests) == 1 and not two.active)
            assert slow.gate is not None
            slow.gate.set()
            assert (await asked).startswith(b"HTTP/1.1 503")
            span, call = await served.call()
    assert (span.error, call.attempts, len(call.setbacks)) == ("http_503", 2, 1)


async def test_a_client_that_leaves_cuts_both_off() -> None:
    slow, _ = stalls()
    async with FakeEngine(lambda _: slow) as one, FakeEngine(lambda _: slow) as two:  # noqa: SIM117 - as they come
        async with serving(one, two, passes=hedging()) as served:
            async with served.connect() as (_, writer):
                writer.write(chat(stream=True))
                await two.until(lambda: two.active == 1)
            await one.wait_cancelled()
            await two.wait_cancelled()
            assert (await served.call())[0].error == "client_gone"


@pytest.mark.parametrize(
    ("passes", "fields"),
    [
        (Passes(hedging=Hedging(HedgeRules())), {"stream": True}),  # nothing is learnt yet
        (hedging(models=frozenset({"other"})), {"stream": True}),
        (hedging(paths=frozenset({b"/messages"})), {"stream": True}),
        (hedging(), {"stream": False}),
    ],
)
async def test_who_is_not_hedged_waits(passes: Passes, fields: dict[str, Any]) -> None:
    slow, gate = stalls()
    async with FakeEngine(lambda _: slow) as one, FakeEngine() as two, serving(one, two, passes=passes) as served:
        asked = asyncio.create_task(served.raw(chat(CLOSE, **fields)))
        await one.until(lambda: one.active == 1)
        await asyncio.sleep(3 * LATE)  # what must not happen has no event
        gate.set()
        assert b"slow" in await asked
    assert two.requests == []


async def test_what_is_learnt_is_when_streams_begin() -> None:
    passes = Passes(hedging=Hedging(HedgeRules()))
    assert passes.hedging is not None
    async with FakeEngine() as one, serving(one, passes=passes) as served:
        late, tried = None, 0
        while late is None and tried < 100:  # while they come later and later, none is hedged
            await served.raw(chat(CLOSE, stream=True))
            late, tried = passes.hedging.hedger.after("m"), tried + 1
    assert late is not None
    assert tried >= 20
    assert 0 < late < 5


async def test_hedges_are_bounded() -> None:
    passes = hedging(ratio=0.0)
    held = [Reply(chunks=("x",), ttft=4 * LATE)] * 100
    async with FakeEngine(lambda _: held.pop()) as one, FakeEngine(lambda _: held.pop()) as two:  # noqa: SIM117 - too long for one line
        async with serving(one, two, passes=passes) as served:
            await asyncio.gather(*[served.raw(chat(CLOSE, stream=True)) for _ in range(15)])
    assert len(one.requests) + len(two.requests) == 25, "ten are saved up, and none is earned"


async def test_a_retry_that_is_late_is_hedged_too() -> None:
    passes = Passes(hedging=hedging().hedging, retries=Retrying(RetryRules(), draw=lambda: 0.0))
    slow, _ = stalls()
    async with FakeEngine(lambda _: Reply(status=503)) as one, FakeEngine(lambda _: slow) as two:  # noqa: SIM117 - too long for one line
        async with FakeEngine() as three, serving(one, two, three, passes=passes) as served:
            raw = await served.raw(chat(CLOSE, stream=True))
            span, call = await served.call()
    assert raw.startswith(b"HTTP/1.1 200")
    assert (span.error, call.attempts, call.replica) == (None, 3, "r2")
    assert [(one.replica, one.error) for one in call.setbacks] == [("r0", "http_503"), ("r1", "hedged")]
