"""The scheduler decides for real calls: they are sent at once, held for their turn, or refused; none waits for ever."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from serving import Raw, Served, chat, serving

from headway.core.fleet import FleetView, Replica, ReplicaId
from headway.core.span import ModelCall, Span
from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.scheduling import Scheduling
from headway.policy.route import RouteDecision, RouteDone, RouteEvent, RouteRequest
from headway.policy.routing.expected_seconds import ExpectedSeconds

FIRST = 8
"""Calls that a replica of which nothing is known is given at a time."""


def task(name: str, lane: str = "interactive") -> str:
    return f"x-headway-task: {name}\r\nx-headway-lane: {lane}\r\n"


async def ask(served: Served, name: str, extra: str = "", **fields: Any) -> Raw:  # noqa: ANN401 - any JSON
    return await served.ask(chat(task(name) + extra, **fields))


class Gated:
    """Engines whose answers wait until they are let go."""

    def __init__(self, count: int = 1) -> None:
        self.gate = asyncio.Event()
        self.engines = [FakeEngine(lambda _: Reply(content="done", gate=self.gate)) for _ in range(count)]

    async def until_asked(self, count: int, engine: int = 0) -> None:
        await self.engines[engine].until(lambda: len(self.engines[engine].requests) == count)


@asynccontextmanager
async def full(
    scheduling: Scheduling | None = None, *, engines: int = 1
) -> AsyncGenerator[tuple[Gated, Served, list[asyncio.Task[Raw]]]]:
    """A gateway whose replicas are at work on all calls that they are given."""
    gated = Gated(engines)
    async with asyncio.TaskGroup() as group:
        for engine in gated.engines:
            await engine.come_up()
        try:
            async with serving(
                *gated.engines, policy=ExpectedSeconds(), scheduling=scheduling or Scheduling()
            ) as served:
                asking = [group.create_task(ask(served, f"first{n}")) for n in range(FIRST * engines)]
                for number in range(engines):
                    await gated.until_asked(FIRST, number)
                yield gated, served, asking
                gated.gate.set()
                await asyncio.wait(asking)
        finally:
            for engine in gated.engines:
                await engine.go_down()


def call_of(spans: list[Span], name: str) -> tuple[Span, ModelCall]:
    (found,) = [span for span in spans if span.task == name]
    assert isinstance(found.work, ModelCall)
    return found, found.work


async def test_a_call_is_sent_at_once_where_the_fleet_has_room() -> None:
    async with FakeEngine() as engine, serving(engine, policy=ExpectedSeconds(), scheduling=Scheduling()) as served:
        assert (await ask(served, "t")).status == 200
        _, call = await served.call()
        assert call.queued == 0.0
        assert call.route is not None
        assert (call.route.policy, call.route.winner, call.route.notes) == ("expected-seconds", "r0", ())


async def test_a_call_waits_while_its_replica_has_all_that_it_is_given_and_its_span_says_for_how_long() -> None:
    async with full() as (gated, served, _):
        late = asyncio.create_task(ask(served, "late"))
        await served.until_waiting(1)
        assert len(gated.engines[0].requests) == FIRST
        page = await served.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b'headway_calls_waiting{lane="interactive"} 1\n' in page.body
        gated.gate.set()
        assert (await late).status == 200
        page = await served.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b'headway_calls_waiting{lane="interactive"} 0\n' in page.body
        assert b"headway_queue_seconds_count 1\n" in page.body
        span, call = call_of(await served.spans(FIRST + 1), "late")
        assert call.queued is not None
        assert call.sent is not None
        assert 0 < call.queued <= call.sent - span.start
        assert call.route is not None
        assert call.route.notes == (f"It waited {call.queued:.3f} s for its turn.",)


async def test_a_client_that_leaves_the_queue_frees_its_place() -> None:
    async with full(Scheduling(most_waiting=1)) as (gated, served, _):
        async with served.connect() as (_, writer):
            writer.write(chat(task("leaver")))
            await served.until_waiting(1)
            assert (await ask(served, "refused")).status == 429
        await served.until_waiting(0)
        late = asyncio.create_task(ask(served, "late"))
        await served.until_waiting(1)
        gated.gate.set()
        assert (await late).status == 200
        span, call = call_of(await served.spans(FIRST + 3), "leaver")
        assert (span.error, call.sent) == ("client_gone", None)
        assert call.queued is not None
        assert call.queued > 0
        assert len(gated.engines[0].requests) == FIRST + 1


async def test_one_call_more_than_may_wait_is_refused_at_once_and_told_when_to_come_again() -> None:
    async with full(Scheduling(most_waiting=0)) as (_, served, _):
        answer = await ask(served, "refused")
        assert answer.status == 429
        assert answer.headers["retry-after"] == "1"
        assert answer.error["code"] == "queue_full"
        assert answer.error["message"] == "0 calls wait for their turn already, which is the limit. Try again in 1 s."
        span, call = call_of(await served.spans(1), "refused")
        assert (span.error, call.attempts) == ("queue_full", 0)
        assert call.route is not None
        assert call.route.winner == ""


async def test_a_refusal_is_worded_in_the_callers_dialect() -> None:
    async with full(Scheduling(most_waiting=0)) as (_, served, _):
        body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}).encode()
        head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        answer = await served.ask(head.encode() + body)
        assert answer.status == 429
        assert json.loads(answer.body)["type"] == "error"


async def test_a_call_that_has_waited_for_too_long_is_refused() -> None:
    async with full(Scheduling(longest_wait=0.05)) as (_, served, _):
        answer = await ask(served, "late")
        assert (answer.status, answer.error["code"]) == (503, "queue_timeout")
        assert int(answer.headers["retry-after"]) >= 1


async def test_a_deadline_that_cannot_be_met_is_refused_at_once() -> None:
    async with FakeEngine() as engine, serving(engine, policy=ExpectedSeconds(), scheduling=Scheduling()) as served:
        answer = await ask(served, "t", "x-headway-deadline: 0.001\r\n")
        assert (answer.status, answer.error["code"]) == (503, "deadline_unreachable")
        assert answer.headers["x-should-retry"] == "false"
        assert (await ask(served, "u", "x-headway-deadline: 3600\r\n")).status == 200
    assert len(engine.requests) == 1


async def test_a_gateway_that_stops_tells_those_who_wait() -> None:
    async with full() as (_, served, _):
        late = asyncio.create_task(ask(served, "late"))
        await served.until_waiting(1)
        await served.gateway.close(drain=0.0)
        answer = await late
        assert (answer.status, answer.error["code"]) == (503, "shutdown")


async def test_calls_that_wait_go_to_another_replica_when_theirs_is_lost_and_are_told_when_none_is_left() -> None:
    async with full(engines=2) as (gated, served, _):
        late = [asyncio.create_task(ask(served, f"late{n}")) for n in range(3)]
        await served.until_waiting(3)
        first = gated.engines[0]
        await first.go_down()
        served.gateway.fleet.mark(served.gateway.fleet.view().loads[0].replica.id, healthy=False, reason="test")
        gated.gate.set()
        assert [answer.status for answer in await asyncio.gather(*late)] == [200, 200, 200]
        assert len(first.requests) == FIRST
    async with full() as (_, served, _):
        late = [asyncio.create_task(ask(served, f"late{n}")) for n in range(3)]
        await served.until_waiting(3)
        served.gateway.fleet.mark(served.gateway.fleet.view().loads[0].replica.id, healthy=False, reason="test")
        answers = await asyncio.gather(*late)
        assert [(answer.status, answer.error["code"]) for answer in answers] == [(503, "no_replica")] * 3


@pytest.mark.parametrize("stream", [False, True])
async def test_a_growing_conversation_goes_where_its_beginning_is_held(stream: bool) -> None:
    told: list[RouteEvent] = []

    class Told(ExpectedSeconds):
        def observe(self, event: RouteEvent) -> None:
            told.append(event)
            super().observe(event)

    messages: list[Any] = [{"role": "user", "content": "the beginning of a long story " * 200}]
    async with (
        FakeEngine() as one,
        FakeEngine() as two,
        serving(one, two, policy=Told(), scheduling=Scheduling()) as served,
        served.client() as client,
    ):
        for number in range(4):
            answer: Any = await client.chat.completions.create(model="m", messages=messages, stream=stream)
            said = "".join([c.choices[0].delta.content or "" async for c in answer]) if stream else "x"
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": f"go on {number}"}]
        calls = [span.work for span in await served.spans(4) if isinstance(span.work, ModelCall)]
    assert sorted([len(one.requests), len(two.requests)]) == [0, 4]
    assert {call.replica for call in calls} == {calls[0].replica}
    kinds = [type(event).__name__ for event in told]
    assert kinds == (["RouteSent", "RouteStarted", "RouteDone"] if stream else ["RouteSent", "RouteDone"]) * 4


class Broken(ExpectedSeconds):
    """A policy that fails for one model."""

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        if request.model == "bad":
            raise ZeroDivisionError
        return super().decide(request, view, now)


async def test_a_policy_that_fails_fails_its_call_and_no_other() -> None:
    async with FakeEngine() as engine, serving(engine, policy=Broken(), scheduling=Scheduling()) as served:
        answer = await ask(served, "a", model="bad")
        assert (answer.status, answer.error["code"]) == (500, "internal_error")
        assert (await ask(served, "b")).status == 200


async def test_a_policy_that_wants_all_is_told_all_without_a_schedule_and_nothing_is_held_back() -> None:
    gated = Gated()
    async with gated.engines[0] as engine, serving(engine, policy=ExpectedSeconds()) as served:
        async with asyncio.TaskGroup() as group:
            asking = [group.create_task(ask(served, str(number))) for number in range(3 * FIRST)]
            await gated.until_asked(3 * FIRST)
            gated.gate.set()
        assert {task.result().status for task in asking} == {200}


class Elsewhere(ExpectedSeconds):
    """A policy that always wants the last replica, and cannot bear to be told of the end of calls."""

    name = "elsewhere"

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        chosen = super().decide(request, view, now)
        return RouteDecision(replica=view.loads[-1].replica, receipt=chosen.receipt)

    def observe(self, event: RouteEvent) -> None:
        if isinstance(event, RouteDone):
            raise ZeroDivisionError
        super().observe(event)


async def test_a_policy_in_the_shadow_is_counted_and_noted_and_harms_no_call() -> None:
    async with (
        FakeEngine() as one,
        FakeEngine() as two,
        serving(one, two, policy=ExpectedSeconds(), scheduling=Scheduling(), tried=Elsewhere()) as served,
    ):
        answer = await ask(served, "t", messages=[{"role": "user", "content": "tell me a story " * 50}])
        assert answer.status == 200
        _, call = await served.call()
        assert call.route is not None
        if call.replica == "r0":
            (note,) = call.route.notes
            assert note.startswith("elsewhere, which is tried in the shadow, would have sent it to r1, expected ")
        page = (await served.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")).body
        other = call.replica == "r0"
        assert b'headway_shadow_decisions_total{policy="elsewhere",outcome="same"} %d\n' % (not other) in page
        assert b'headway_shadow_decisions_total{policy="elsewhere",outcome="other"} %d\n' % other in page
        assert b'headway_shadow_decisions_total{policy="elsewhere",outcome="failed"} 1\n' in page


async def test_a_flood_of_batch_leaves_interactive_calls_their_turn() -> None:
    gated = Gated()
    async with gated.engines[0] as engine, serving(engine, policy=ExpectedSeconds(), scheduling=Scheduling()) as served:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(ask(served, "first"))
            await gated.until_asked(1)
            flood = [group.create_task(served.ask(chat(task(f"batch{n}", "batch")))) for n in range(20)]
            await served.until_waiting(19, or_more=True)
            asking = [group.create_task(ask(served, f"later{n}")) for n in range(3)]

            def sent(lane: str) -> int:
                return sum(one["x-headway-lane"] == lane for one in engine.headers)

            await engine.until(lambda: sent("interactive") == 4)
            assert sent("batch") <= 1  # a tenth of what the replica is given at a time, one at least
            gated.gate.set()
        assert {one.result().status for one in (first, *flood, *asking)} == {200}  # and batch is served


async def test_tasks_beyond_what_a_replica_serves_side_by_side_wait_until_one_has_ended() -> None:
    gated = Gated()
    async with gated.engines[0] as engine:
        replica = Replica(id=ReplicaId("r0"), url=engine.url, slots=2)
        async with (
            serving(replica, policy=ExpectedSeconds(), scheduling=Scheduling()) as served,
            asyncio.TaskGroup() as group,
        ):
            asking = [group.create_task(ask(served, f"task{n}")) for n in range(3)]
            await gated.until_asked(2)
            await served.until_waiting(1)
            gated.gate.set()
            await asyncio.wait(asking)
            assert [one.result().status for one in asking] == [200, 200, 200]


async def test_a_forgotten_model_name_leaves_no_queue_behind() -> None:
    async with full() as (_, served, _):
        for number in range(3):
            async with served.connect() as (_, writer):
                writer.write(chat(task(f"leaver{number}"), model=f"invented-{number}"))
                await served.until_waiting(1)
            await served.until_waiting(0)
