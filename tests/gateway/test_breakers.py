"""Circuit breakers before real engines: who is left alone, who tries, and that nobody is left without an answer."""

import json
from typing import Any

import pytest
from serving import Served, chat, serving

from headway.core.clock import VirtualClock
from headway.core.fleet import ReplicaId
from headway.core.span import ModelCall
from headway.gateway.breakers import BreakerRules, Breakers
from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.scheduling import Scheduling
from headway.gateway.wiring import Passes

R0 = ReplicaId("r0")


class Moody:
    """A script that fails while it is told to."""

    def __init__(self, *, well: bool = False) -> None:
        self.well = well

    def __call__(self, _: dict[str, Any]) -> Reply:
        return Reply(content="well") if self.well else Reply(status=500)


def breaking(**rules: Any) -> tuple[Passes, Breakers]:  # noqa: ANN401 - the rules' own fields
    breakers = Breakers(BreakerRules(**rules))
    return Passes(breakers=breakers), breakers


async def asked(served: Served, times: int) -> list[tuple[int, str]]:
    answers = [await served.ask(chat()) for _ in range(times)]
    return [(answer.status, answer.headers["x-headway-replica"]) for answer in answers]


async def page(served: Served, path: str) -> bytes:
    return await served.raw(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())


async def test_a_replica_that_fails_calls_is_left_alone_and_then_tried_by_one() -> None:
    ill, clock = Moody(), VirtualClock(1000.0)
    passes, breakers = breaking(calls=3)
    async with FakeEngine(ill) as one, FakeEngine() as two, serving(one, two, passes=passes, clock=clock) as served:
        answers = await asked(served, 12)
        assert answers.count((500, "r0")) == 3, "they take turns until the third failure"
        assert answers[-6:] == [(200, "r1")] * 6
        assert len(one.requests) == 3
        metrics = await page(served, "/metrics")
        assert b'headway_replica_breaker{replica="r0"} 2\n' in metrics
        assert b'headway_replica_breaker_opened_total{replica="r0"} 1\n' in metrics
        health = json.loads((await page(served, "/health")).partition(b"\r\n\r\n")[2])
        assert [replica["breaker"] for replica in health["replicas"]] == ["open", "closed"]
        shown = json.loads((await served.ask(b"GET /admin/breakers HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")).body)
        assert shown["breakers"][0] == {"replica": "r0", "state": "open", "opens": 1, "retry_after": 5.0}
        clock.advance(5.0)
        answers = await asked(served, 4)
        assert answers.count((500, "r0")) == 1, "one call tries, fails, and the rest is doubled"
        clock.advance(9.9)
        assert (500, "r0") not in await asked(served, 4)
        ill.well = True
        clock.advance(0.2)
        assert (200, "r0") in await asked(served, 4)
    assert [(one.state, one.opens) for one in breakers.states(clock.now())] == [("closed", 2), ("closed", 0)]


async def test_the_only_replica_is_asked_all_the_same_and_the_receipt_says_so() -> None:
    passes, breakers = breaking(calls=2)
    async with FakeEngine(Moody()) as only, serving(only, passes=passes) as served:
        assert await asked(served, 5) == [(500, "r0")] * 5
        assert [one.state for one in breakers.states(0.0)] == ["open"]
        last = (await served.spans(calls=5))[-1].work
    assert len(only.requests) == 5
    assert "as there is no other, this one is asked all the same" in str(last)


async def test_a_replica_that_flaps_is_asked_less_and_less() -> None:
    ill, clock = Moody(), VirtualClock(1000.0)
    passes, breakers = breaking(calls=2, rest=1.0)
    async with FakeEngine(ill) as one, FakeEngine() as two, serving(one, two, passes=passes, clock=clock) as served:
        for second in range(120):
            ill.well = second % 2 == 1  # ill in every other second, and so whenever it is tried
            await asked(served, 2)
            clock.advance(1.0)
    assert breakers.states(clock.now())[0].opens >= 2
    assert len(one.requests) < 40, "of 240 calls it would have had 120"


async def test_a_caller_that_leaves_says_nothing_of_the_replica() -> None:
    passes, breakers = breaking(calls=1)
    async with FakeEngine(lambda _: Reply(fault="stall_before")) as only, serving(only, passes=passes) as served:
        async with served.connect() as (_, writer):
            writer.write(chat())
            await only.until(lambda: only.active == 1)
        await only.wait_cancelled()
        await served.call()
        assert breakers.states(0.0) == []


async def test_a_trial_whose_caller_leaves_lets_another_try() -> None:
    replies = [Reply(status=500), Reply(fault="stall_before"), Reply(content="well")]
    clock = VirtualClock(1000.0)
    passes, breakers = breaking(calls=1)
    async with (
        FakeEngine(lambda _: replies.pop(0)) as only,
        serving(only, passes=passes, clock=clock) as served,
    ):
        assert await asked(served, 1) == [(500, "r0")]
        clock.advance(5.0)
        async with served.connect() as (_, writer):
            writer.write(chat())
            await only.until(lambda: only.active == 1)
            assert breakers.barred(clock.now()) == {R0}
        await only.wait_cancelled()
        await served.spans(calls=2)
        assert breakers.barred(clock.now()) == frozenset()
        assert await asked(served, 1) == [(200, "r0")]
    assert breakers.states(clock.now())[0].state == "closed"


async def test_what_is_the_callers_fault_or_load_opens_nothing() -> None:
    passes, breakers = breaking(calls=1)
    replies = [Reply(status=400), Reply(status=429), Reply(status=404)]
    async with FakeEngine(lambda _: replies.pop(0)) as only, serving(only, passes=passes) as served:
        await asked(served, 3)
    assert [one.state for one in breakers.states(0.0)] == ["closed"]


async def test_a_replica_that_cannot_be_reached_or_breaks_off_counts_as_failing() -> None:
    passes, breakers = breaking(calls=1)
    broken = Reply(chunks=("a", "b"), fault="close_mid_stream")
    async with FakeEngine(lambda _: broken) as only, serving(only, passes=passes) as served:
        await served.raw(chat("connection: close\r\n", stream=True))
        assert breakers.states(0.0)[0].state == "open"


@pytest.mark.parametrize("scheduling", [None, Scheduling()])
async def test_the_receipt_says_who_was_left_out_and_why(scheduling: Scheduling | None) -> None:
    passes, _ = breaking(calls=1)
    async with (
        FakeEngine(Moody()) as one,
        FakeEngine() as two,
        serving(one, two, passes=passes, scheduling=scheduling) as served,
    ):
        answers = await asked(served, 3)
        spans = sorted(await served.spans(3), key=lambda span: span.start)
        works = [span.work for span in spans if isinstance(span.work, ModelCall)]
    assert answers[0] == (500, "r0")
    assert answers[1:] == [(200, "r1")] * 2
    for work in works[1:]:
        assert work.route is not None
        assert "Left out, as too many calls failed there of late: r0." in work.route.notes
