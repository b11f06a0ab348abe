"""A replica that hangs up without a word: which calls go to another, and which never do."""

import json

import pytest
from serving import QUESTION, chat, raw_engine, serving, streamed, whole

from headway.core.config import Limits
from headway.core.fleet import Replica, ReplicaId
from headway.core.span import ModelCall
from headway.gateway.fake import FakeEngine, Fault, Reply
from headway.gateway.scheduling import Scheduling
from headway.policy.route import RoutePolicy
from headway.policy.routing.cache_aware import CacheAware
from headway.policy.routing.expected_seconds import ExpectedSeconds
from headway.policy.routing.least_loaded import LeastLoaded
from headway.policy.routing.preble import PrebleE2
from headway.policy.routing.session_home import SessionHome

TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n'


def breaking(fault: Fault) -> FakeEngine:
    return FakeEngine(lambda _: Reply(chunks=("a", "b", "c"), fault=fault))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_whose_replica_hung_up_without_a_word_is_answered_by_another(stream: bool) -> None:
    async with breaking("close_before_answer") as dying, FakeEngine() as other, serving(dying, other) as served:
        raw = await served.raw(chat("connection: close\r\n", stream=stream))
        assert raw.startswith(b"HTTP/1.1 200 ")
        assert b"x-headway-replica: r1" in raw
        span, call = await served.call()
        assert (span.error, call.attempts, call.replica) == (None, 2, "r1")
        (setback,) = call.setbacks
        assert (setback.replica, setback.error) == ("r0", "upstream_closed")
        assert call.sent is not None
        assert span.start <= setback.start <= setback.end <= call.sent
    assert (len(dying.requests), len(other.requests)) == (1, 1)


async def test_a_request_that_kills_its_engine_kills_no_third_one() -> None:
    async with (
        breaking("close_before_answer") as first,
        breaking("close_before_answer") as second,
        FakeEngine() as third,
        serving(first, second, third) as served,
    ):
        answer = await served.ask(chat())
        assert (answer.status, answer.error["code"]) == (502, "upstream_closed")
        assert "'r1'" in answer.error["message"]
        span, call = await served.call()
        assert (span.error, call.attempts, call.replica) == ("upstream_closed", 2, "r1")
        assert [(one.replica, one.error) for one in call.setbacks] == [("r0", "upstream_closed")]
    assert third.requests == []


async def test_where_there_is_no_other_replica_the_failure_is_told_with_its_receipt() -> None:
    async with breaking("close_before_answer") as only, serving(only) as served:
        answer = await served.ask(chat())
        assert (answer.status, answer.error["code"]) == (502, "upstream_closed")
        span, call = await served.call()
        assert (span.error, call.attempts, call.replica) == ("upstream_closed", 1, "r0")
        assert call.setbacks == (), "no other attempt came after it"
        assert call.route is not None
        assert call.route.winner == "r0"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["stall_before", "close_mid_header", "close_mid_stream", "reset_mid_stream"])
async def test_who_may_be_at_work_or_has_begun_to_answer_is_not_replaced(fault: Fault, stream: bool) -> None:
    limits = Limits(first_byte_seconds=0.2)
    async with breaking(fault) as engine, FakeEngine() as other, serving(engine, other, limits=limits) as served:
        await served.raw(chat("connection: close\r\n", stream=stream))
        span, call = await served.call()
        assert span.error in {"upstream_timeout", "upstream_closed"}
        assert (call.attempts, call.replica) == (1, "r0")
    assert other.requests == []


async def test_a_dead_idle_connection_and_then_a_dying_replica() -> None:
    async with (
        FakeEngine() as other,
        raw_engine(whole(b"{}"), b"", b"") as dying,
        serving(dying, Replica(id=ReplicaId("r1"), url=other.url)) as served,
    ):
        await served.ask(chat())
        await served.ask(chat())  # they take turns
        answer = await served.ask(chat())
        assert answer.headers["x-headway-replica"] == "r1"
        last = (await served.spans(calls=3))[-1]
        assert last.error is None
        assert isinstance(last.work, ModelCall)
        assert [(one.replica, one.error) for one in last.work.setbacks] == [("r0", "upstream_closed")] * 2
        first, second = last.work.setbacks
        assert first.end == second.start
        assert json.loads(answer.body)["choices"][0]["message"]["content"] == "echo: one two three"
    assert [request["messages"] for request in other.requests] == [QUESTION, QUESTION]


async def test_a_replica_that_cannot_be_reached_is_a_setback_though_nothing_was_sent() -> None:
    gone = Replica(id=ReplicaId("r0"), url="http://127.0.0.1:1/v1")
    async with FakeEngine() as other, serving(gone, other) as served:
        await served.ask(chat())
        span, call = await served.call()
        assert (span.error, call.attempts, call.replica) == (None, 1, "r1")
        assert [(one.replica, one.error) for one in call.setbacks] == [("r0", "upstream_connect")]


@pytest.mark.parametrize("observed", [True, False])
async def test_an_engine_that_hangs_up_after_done_has_answered(observed: bool) -> None:
    unended = streamed(TOKEN + b"data: [DONE]\n\n", end=b"")
    async with raw_engine(unended) as engine, serving(engine, observed=observed) as served:
        raw = await served.raw(chat("connection: close\r\n", stream=True))
        assert raw.endswith(b"[DONE]\n\n\r\n0\r\n\r\n")
        assert b"error" not in raw
        if observed:
            span, call = await served.call()
            assert (span.error, call.finish_reason) == (None, "stop")


@pytest.mark.parametrize(
    ("policy", "scheduling"),
    [
        (LeastLoaded, None),
        (LeastLoaded, Scheduling()),
        (ExpectedSeconds, None),
        (ExpectedSeconds, Scheduling()),
        (SessionHome, None),
        (CacheAware, None),
        (PrebleE2, None),
    ],
)
@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=503, headers={"retry-after-ms": "1"}),
        Reply(status=429, headers={"retry-after-ms": "1"}),
        Reply(content="x y z", fault="reset_mid_stream"),
    ],
    ids=["503", "429", "reset"],
)
async def test_what_a_client_sends_again_goes_to_another_replica_than_the_one_that_failed(
    reply: Reply, policy: type[RoutePolicy], scheduling: Scheduling | None
) -> None:
    async with (
        FakeEngine(lambda _: reply) as failing,
        FakeEngine(lambda _: Reply(content="here")) as idle,
        serving(failing, idle, policy=policy(), scheduling=scheduling) as served,
        served.client() as client,
    ):
        patient = client.with_options(max_retries=2)
        asked = [*QUESTION]
        for _ in range(3):
            answer = await patient.chat.completions.create(model="m", messages=asked)
            assert answer.choices[0].message.content == "here"
            asked += [answer.choices[0].message, {"role": "user", "content": "and then?"}]
        assert len(idle.requests) == 3
