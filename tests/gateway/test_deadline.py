"""A call's deadline on its way through: kept, passed on, and told in the caller's own words."""

import asyncio
import json

import anthropic
import pytest
from serving import QUESTION, chat, serving

from headway.core.fleet import Replica, ReplicaId
from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.retrying import Retrying
from headway.gateway.wiring import Passes
from headway.policy.resend.retry import RetryRules

CLOSE = "connection: close\r\n"


def until(seconds: float) -> str:
    return f"x-headway-deadline: {seconds}\r\n{CLOSE}"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_is_late_is_ended_and_its_engine_told(stream: bool) -> None:
    stuck = Reply(chunks=("x",), gate=asyncio.Event())
    async with FakeEngine(lambda _: stuck) as engine, serving(engine) as served:
        raw = await served.raw(chat(until(0.1), stream=stream))
        await engine.wait_cancelled()
        span, _ = await served.call()
    head, _, body = raw.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 504")
    assert b"x-should-retry: false" in head
    error = json.loads(body)["error"]
    assert error["code"] == span.error == "deadline_exceeded"
    assert "within the 0.1 s that x-headway-deadline allowed" in error["message"]


async def test_a_stream_that_has_begun_ends_with_an_error_event() -> None:
    stalled = Reply(chunks=("a", "b", "c"), fault="stall_mid_stream")
    async with FakeEngine(lambda _: stalled) as engine, serving(engine) as served:
        raw = await served.raw(chat(until(0.2), stream=True))
        await engine.wait_cancelled()
    assert b"HTTP/1.1 200" in raw
    assert b"deadline_exceeded" in raw


async def test_an_anthropic_caller_is_told_in_its_own_dialect() -> None:
    stuck = Reply(gate=asyncio.Event())
    async with FakeEngine(lambda _: stuck) as engine, serving(engine) as served:
        async with anthropic.AsyncAnthropic(
            base_url=served.url.removesuffix("/v1"), api_key="k", max_retries=5
        ) as client:
            with pytest.raises(anthropic.APIStatusError, match="x-headway-deadline") as caught:
                await client.messages.create(
                    model="m", max_tokens=9, messages=QUESTION, extra_headers={"x-headway-deadline": "0.1"}
                )
        await engine.wait_cancelled()
    assert caught.value.status_code == 504
    assert len(engine.requests) == 1, "the client is told that trying again is of no use"


async def test_what_is_over_already_is_not_sent() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        assert (await served.ask(chat(until(0)))).status == 504
        _, call = await served.call()
    assert (call.attempts, engine.requests) == (0, [])


async def test_in_time_nothing_happens() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        assert (await served.ask(chat(until(20)))).status == 200
    assert len(engine.requests) == 1


async def test_no_retry_goes_past_it() -> None:
    passes = Passes(retries=Retrying(RetryRules(base=60.0, cap=60.0, patience=60.0), draw=lambda: 0.9))
    async with FakeEngine(lambda _: Reply(status=503, error="no")) as engine, serving(engine, passes=passes) as served:
        answer = await served.ask(chat(until(5)))
    assert (answer.status, answer.error["message"]) == (503, "no")
    assert len(engine.requests) == 1


async def test_what_is_left_is_passed_on_to_the_next_gateway() -> None:
    async with FakeEngine() as engine, serving(engine) as inner:
        next_one = Replica(id=ReplicaId("inner"), url=inner.url)
        async with serving(next_one) as outer:
            assert (await outer.ask(chat(until(20)))).status == 200
            assert (await outer.ask(chat(CLOSE))).status == 200
    left = float(engine.headers[0]["x-headway-deadline"])
    assert 0 < left < 20
    assert "x-headway-deadline" not in engine.headers[1]


async def test_of_two_gateways_the_inner_one_ends_no_later_than_the_outer() -> None:
    stuck = Reply(gate=asyncio.Event())
    async with FakeEngine(lambda _: stuck) as engine, serving(engine) as inner:
        async with serving(Replica(id=ReplicaId("inner"), url=inner.url)) as outer:
            answer = await outer.ask(chat(until(0.2)))
        assert answer.status == 504
        await engine.wait_cancelled()
        assert (await inner.call())[0].error in {"deadline_exceeded", "client_gone"}
