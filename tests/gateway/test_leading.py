"""A fan-out over a common beginning before real engines: who goes first, who follows, and that nobody waits in vain."""

import asyncio
from typing import Any

from fanning import CLOSE, SHARED, Fan
from serving import chat, serving

from headway.core.span import ModelCall
from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.retrying import Retrying
from headway.gateway.wiring import Passes
from headway.policy.resend.retry import RetryRules


def held() -> tuple[Reply, asyncio.Event]:
    gate = asyncio.Event()
    return Reply(chunks=("led",), gate=gate), gate


def calls(spans: list[Any]) -> list[ModelCall]:
    return [span.work for span in spans if isinstance(span.work, ModelCall)]


async def test_the_rest_go_when_the_first_begins_to_answer_and_to_the_same_replica() -> None:
    fan, (first, gate) = Fan(), held()
    replies = [first]
    async with (
        FakeEngine(lambda _: replies.pop() if replies else Reply(chunks=("followed",))) as engine,
        serving(engine, passes=fan.passes, identifier=fan.identifier) as served,
    ):
        branches = [fan.branch(served, 0)]
        await engine.until(lambda: engine.active == 1)
        branches += [fan.branch(served, number) for number in (1, 2, 3)]
        await fan.waiting(3)
        assert len(engine.requests) == 1
        gate.set()
        answers = await asyncio.gather(*branches)
        spans = await served.spans(calls=4)
        page = await served.raw(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert b"followed" in await fan.branch(served, 4), "what is cached is not waited for"
    assert [b"led" in answer or b"followed" in answer for answer in answers] == [True] * 4
    followers = [call for call in calls(spans) if call.queued]
    assert len(followers) == 3
    notes = [call.route.notes[-1] for call in followers if call.route is not None]
    assert all("for a call that begins with the same" in note for note in notes)
    assert b'headway_calls_led_total{outcome="followed"} 3\n' in page


async def test_where_the_first_fails_the_next_one_leads() -> None:
    fan, (second, gate) = Fan(), held()
    failing = Reply(status=500, gate=asyncio.Event())
    replies = [second, failing]
    async with (
        FakeEngine(lambda _: replies.pop() if replies else Reply(chunks=("followed",))) as engine,
        serving(engine, passes=fan.passes, identifier=fan.identifier) as served,
    ):
        branches = [fan.branch(served, 0)]
        await engine.until(lambda: engine.active == 1)
        branches += [fan.branch(served, number) for number in (1, 2)]
        await fan.waiting(2)
        assert failing.gate is not None
        failing.gate.set()
        await engine.until(lambda: len(engine.requests) == 2)
        await fan.waiting(1)
        gate.set()
        answers = await asyncio.gather(*branches)
    assert answers[0].startswith(b"HTTP/1.1 500")
    assert [b"200 OK" in answer for answer in answers[1:]] == [True, True]


async def test_a_leader_whose_client_leaves_holds_nobody_up() -> None:
    fan, (first, _) = Fan(), held()
    replies = [first]
    async with (
        FakeEngine(lambda _: replies.pop() if replies else Reply(chunks=("followed",))) as engine,
        serving(engine, passes=fan.passes, identifier=fan.identifier) as served,
    ):
        async with served.connect() as (_, writer):
            writer.write(chat(messages=[SHARED, {"role": "user", "content": "x"}], stream=True))
            await engine.until(lambda: engine.active == 1)
            follower = fan.branch(served, 1)
            await fan.waiting(1)
        assert b"followed" in await follower


async def test_a_follower_that_leaves_is_forgotten() -> None:
    fan, (first, gate) = Fan(), held()
    async with (
        FakeEngine(lambda _: first) as engine,
        serving(engine, passes=fan.passes, identifier=fan.identifier) as served,
    ):
        leader = fan.branch(served, 0)
        await engine.until(lambda: engine.active == 1)
        async with served.connect() as (_, writer):
            writer.write(chat(messages=[SHARED, {"role": "user", "content": "x"}], stream=True))
            await fan.waiting(1)
        await fan.waiting(0)
        gate.set()
        assert b"led" in await leader
        assert [span.error == "client_gone" for span in await served.spans(calls=2)].count(True) == 1
    assert len(engine.requests) == 1


async def test_nobody_waits_longer_than_is_allowed() -> None:
    fan, (first, gate) = Fan(longest=0.1), held()
    replies = [first]
    async with (
        FakeEngine(lambda _: replies.pop() if replies else Reply(chunks=("alone",))) as engine,
        serving(engine, passes=fan.passes, identifier=fan.identifier) as served,
    ):
        leader = fan.branch(served, 0)
        await engine.until(lambda: engine.active == 1)
        assert b"alone" in await fan.branch(served, 1)
        gate.set()
        await leader
    assert (fan.leading.followed, fan.leading.overdue) == (0, 1)


async def test_a_deadline_holds_for_who_waits() -> None:
    fan, (first, gate) = Fan(), held()
    async with (
        FakeEngine(lambda _: first) as engine,
        serving(engine, passes=fan.passes, identifier=fan.identifier) as served,
    ):
        leader = fan.branch(served, 0)
        await engine.until(lambda: engine.active == 1)
        extra = f"x-headway-deadline: 0.1\r\n{CLOSE}"
        raw = await served.raw(chat(extra, messages=[SHARED, {"role": "user", "content": "x"}], stream=True))
        assert raw.startswith(b"HTTP/1.1 504")
        gate.set()
        await leader
    assert len(engine.requests) == 1


async def test_what_is_short_or_another_replicas_waits_for_nobody() -> None:
    fan, (first, gate) = Fan(), held()
    async with (
        FakeEngine(lambda _: first) as engine,
        FakeEngine(lambda _: first) as other,
        serving(engine, other, passes=fan.passes, identifier=fan.identifier) as served,
    ):
        branches = [fan.branch(served, number) for number in range(2)]
        await engine.until(lambda: engine.active == 1)
        await other.until(lambda: other.active == 1)
        short = [asyncio.create_task(served.raw(chat(CLOSE, stream=True))) for _ in range(4)]
        await engine.until(lambda: engine.active == 3)
        gate.set()
        await asyncio.gather(*branches, *short)


async def test_a_leader_that_is_sent_again_leads_anew() -> None:
    fan = Fan()
    passes = Passes(leading=fan.leading, retries=Retrying(RetryRules(), draw=lambda: 0.0))
    replies = [Reply(chunks=("well",)), Reply(chunks=("well",)), Reply(status=503)]
    async with (
        FakeEngine(lambda _: replies.pop()) as engine,
        serving(engine, passes=passes, identifier=fan.identifier) as served,
    ):
        answers = await asyncio.gather(*[fan.branch(served, number) for number in range(2)])
    assert [b"well" in answer for answer in answers] == [True, True]
