"""Retries before real engines: what is sent again, where, when, and what never is."""

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from serving import QUESTION, chat, serving

from headway.core.fleet import Replica, ReplicaId
from headway.gateway.fake import FakeEngine, Fault, Reply
from headway.gateway.naming import Naming
from headway.gateway.retrying import Retrying, retry_after
from headway.gateway.wiring import Passes
from headway.policy.models.catalog import Alias, catalog
from headway.policy.resend.retry import RetryRules

CLOSE = "connection: close\r\n"


def retrying(draw: float = 0.0, **rules: Any) -> Passes:  # noqa: ANN401 - the rules' own fields
    return Passes(retries=Retrying(RetryRules(**rules), draw=lambda: draw))


def then(*replies: Reply) -> Callable[[dict[str, Any]], Reply]:
    """These replies, one after the other; the last one stays."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_a_status_that_may_not_come_again_is_answered_by_the_same_replica(status: int, stream: bool) -> None:
    async with (
        FakeEngine(then(Reply(status=status), Reply(content="well"))) as only,
        serving(only, passes=retrying()) as served,
    ):
        raw = await served.raw(chat(CLOSE, stream=stream))
        span, call = await served.call()
        page = await served.raw(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert raw.startswith(b"HTTP/1.1 200")
    assert b"well" in raw
    assert (span.error, call.attempts) == (None, 2)
    assert [(one.replica, one.error) for one in call.setbacks] == [("r0", f"http_{status}")]
    assert b"headway_retries_total 1\n" in page
    assert b"headway_retry_budget 9.1\n" in page or b"headway_retry_budget 9.0\n" in page


async def test_another_replica_is_asked_first_and_the_engines_own_wait_is_then_no_matter() -> None:
    refusing = Reply(status=429, headers={"retry-after": "20"})
    async with (
        FakeEngine(lambda _: refusing) as busy,
        FakeEngine() as free,
        serving(busy, free, passes=retrying()) as served,
    ):
        answer = await served.ask(chat())
    assert (answer.status, answer.headers["x-headway-replica"]) == (200, "r1")
    assert (len(busy.requests), len(free.requests)) == (1, 1)


async def test_an_engines_wish_to_be_left_alone_is_heeded_where_there_is_no_other() -> None:
    asked_to_wait = Reply(status=429, headers={"retry-after-ms": "150"})
    async with (
        FakeEngine(then(asked_to_wait, Reply(content="well"))) as only,
        serving(only, passes=retrying()) as served,
    ):
        assert (await served.ask(chat())).status == 200
        _, call = await served.call()
    (setback,) = call.setbacks
    assert setback.end - setback.start >= 0.15


async def test_a_wish_that_is_longer_than_allowed_goes_to_the_caller() -> None:
    refusing = Reply(status=429, headers={"retry-after": "31"}, error="later")
    async with FakeEngine(lambda _: refusing) as only, serving(only, passes=retrying()) as served:
        answer = await served.ask(chat())
        page = await served.raw(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert (answer.status, answer.headers["retry-after"], answer.error["message"]) == (429, "31", "later")
    assert b'headway_retries_refused_total{reason="patience"} 1\n' in page
    assert len(only.requests) == 1


async def test_the_last_refusal_is_the_answer_when_all_attempts_are_used() -> None:
    async with (
        FakeEngine(lambda _: Reply(status=503, error="no")) as only,
        serving(only, passes=retrying(attempts=4)) as served,
    ):
        answer = await served.ask(chat())
        span, call = await served.call()
    assert (answer.status, answer.error["message"]) == (503, "no")
    assert (span.error, call.attempts, len(call.setbacks)) == ("http_503", 4, 3)


@pytest.mark.parametrize("status", [400, 401, 404, 422])
async def test_what_is_the_callers_fault_is_not_sent_again(status: int) -> None:
    async with FakeEngine(lambda _: Reply(status=status)) as only, serving(only, passes=retrying()) as served:
        assert (await served.ask(chat())).status == status
    assert len(only.requests) == 1


@pytest.mark.parametrize("fault", ["close_mid_header", "not_http", "close_mid_stream"])
async def test_a_whole_answer_that_breaks_off_is_made_again(fault: Fault) -> None:
    async with (
        FakeEngine(then(Reply(chunks=("a", "b"), fault=fault), Reply(content="well"))) as only,
        serving(only, passes=retrying()) as served,
    ):
        answer = await served.ask(chat())
        _, call = await served.call()
    assert answer.status == 200
    assert b"well" in answer.body
    assert call.attempts == 2


async def test_a_stream_of_which_the_client_has_a_byte_is_never_made_again() -> None:
    async with (
        FakeEngine(lambda _: Reply(chunks=("a", "b", "c"), fault="close_mid_stream")) as only,
        serving(only, passes=retrying()) as served,
    ):
        raw = await served.raw(chat(CLOSE, stream=True))
    assert b"upstream_closed" in raw
    assert len(only.requests) == 1


async def test_a_request_that_kills_its_engine_kills_no_third_one() -> None:
    dying = Reply(fault="close_before_answer")
    async with (
        FakeEngine(lambda _: dying) as one,
        FakeEngine(lambda _: dying) as two,
        FakeEngine() as three,
        serving(one, two, three, passes=retrying()) as served,
    ):
        assert (await served.ask(chat())).status == 502
    assert three.requests == []


async def test_a_replica_that_comes_up_again_meanwhile_answers() -> None:
    async with FakeEngine() as engine:
        await engine.go_down()
        passes = retrying(draw=0.999, attempts=3, base=0.2)
        async with serving(engine, passes=passes) as served:
            asked = asyncio.create_task(served.ask(chat()))
            health = served.gateway.fleet.health
            async with asyncio.timeout(5):
                while health()[0].healthy:  # noqa: ASYNC110 - another's state, looked at as it turns
                    await asyncio.sleep(0)
            await engine.come_up()
            served.gateway.fleet.mark(ReplicaId("r0"), True, "probed")  # noqa: FBT003 - its signature
            assert (await asked).status == 200


async def test_all_calls_together_are_bounded_by_the_budget() -> None:
    async with FakeEngine(lambda _: Reply(status=503)) as only, serving(only, passes=retrying(ratio=0.01)) as served:
        for _ in range(20):
            await served.ask(chat())
    # ten saved up and a hundredth of twenty calls: ten resends
    assert len(only.requests) == 30


async def test_retries_come_before_the_next_model_which_then_has_its_own() -> None:
    async with FakeEngine(lambda _: Reply(status=503)) as large, FakeEngine(then(Reply(status=500), Reply())) as small:
        replicas = (
            Replica(id=ReplicaId("r0"), url=large.url, models=("large",)),
            Replica(id=ReplicaId("r1"), url=small.url, models=("small",)),
        )
        naming = Naming(catalog([Alias(name="fast", models=("large", "small"))], []))
        passes = Passes(naming=naming, retries=Retrying(RetryRules(attempts=2), draw=lambda: 0.0))
        async with serving(*replicas, passes=passes) as served:
            assert (await served.ask(chat(model="fast"))).status == 200
            _, call = await served.call()
    assert (len(large.requests), len(small.requests), call.attempts) == (2, 2, 4)
    assert [one.error for one in call.setbacks] == ["http_503", "http_503", "http_500"]


async def test_a_client_that_leaves_during_the_pause_ends_it() -> None:
    async with (
        FakeEngine(lambda _: Reply(status=503)) as only,
        serving(only, passes=retrying(draw=0.999, base=60.0, cap=60.0, patience=60.0)) as served,
    ):
        async with served.connect() as (_, writer):
            writer.write(chat())
            await only.until(lambda: len(only.requests) == 1 and not only.active)
        span, call = await served.call()
    assert (span.error, call.attempts) == ("client_gone", 1)
    assert len(only.requests) == 1


async def test_a_gateway_that_stops_ends_the_pause_with_an_answer() -> None:
    async with (
        FakeEngine(lambda _: Reply(status=503)) as only,
        serving(only, passes=retrying(draw=0.999, base=60.0, cap=60.0, patience=60.0)) as served,
    ):
        asked = asyncio.create_task(served.ask(chat()))
        await only.until(lambda: len(only.requests) == 1 and not only.active)
        await served.gateway.close(drain=0.05)
        answer = await asked
    assert (answer.status, answer.error["code"]) == (503, "shutdown")


async def test_an_anthropic_caller_is_retried_through_a_translation() -> None:
    async with (
        FakeEngine(then(Reply(status=529), Reply(content="well"))) as only,
        serving(only, passes=retrying()) as served,
    ):
        async with anthropic.AsyncAnthropic(
            base_url=served.url.removesuffix("/v1"), api_key="k", max_retries=0
        ) as client:
            said = await client.messages.create(model="m", max_tokens=9, messages=QUESTION)
        _, call = await served.call()
    assert [block.text for block in said.content if block.type == "text"] == ["well"]
    assert call.attempts == 2
    assert call.route is not None
    assert call.route.notes.count("Translated into openai-chat.") == 1


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({}, None),
        ({b"retry-after": b"7"}, 7.0),
        ({b"retry-after": b" 0.5 "}, 0.5),
        ({b"retry-after": b"7", b"retry-after-ms": b"250"}, 0.25),
        ({b"retry-after": b"Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({b"retry-after": b"Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
        ({b"retry-after": b"soon"}, None),
        ({b"retry-after": b"-3"}, None),
        ({b"retry-after": b""}, None),
        ({b"retry-after": b"1e9"}, None),
    ],
)
def test_an_engines_wish_is_read_in_all_its_forms(fields: dict[bytes, bytes], seconds: float | None) -> None:
    assert retry_after(fields, 60.0) == seconds
