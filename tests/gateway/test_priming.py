"""A fan-out before an engine with slots of its own: what one call computed is copied for the rest."""

import asyncio
import logging
from typing import Any

import pytest
from fanning import CLOSE, Fan
from serving import chat, serving

from headway.core.errors import NotFoundError
from headway.core.fleet import Replica, ReplicaId
from headway.core.span import ModelCall
from headway.core.usage import EngineTimings
from headway.gateway.engines import EmbeddedFleet, EngineSpec
from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.models import find


def llama(engine: FakeEngine | Replica) -> Replica:
    return Replica(id=ReplicaId("r0"), url=engine.url, engine="llama.cpp")


@pytest.mark.parametrize("stream", [True, False])
async def test_what_the_first_has_computed_is_computed_once(stream: bool) -> None:
    fan, gate = Fan(), asyncio.Event()
    replies = [Reply(content="led", gate=gate)]
    async with (
        FakeEngine(lambda _: replies.pop() if replies else Reply(content="followed"), slots=4) as engine,
        serving(llama(engine), passes=fan.passes, identifier=fan.identifier) as served,
    ):
        assert engine.slots is not None
        branches = [fan.branch(served, 0, stream=stream)]
        await engine.until(lambda: engine.active == 1)
        branches += [fan.branch(served, number, stream=stream) for number in (1, 2, 3)]
        await fan.waiting(3)
        assert len(engine.requests) == 1
        gate.set()
        answers = await asyncio.gather(*branches)
        spans = await served.spans(calls=4)
        page = await served.raw(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert engine.slots.computed == [2002, 1, 1, 1]
        assert engine.slots.asked == ["save 0", "restore 1", "restore 2"], "one of three finds the leader's own slot"
        assert len(engine.slots.files) == 1
    assert [b"led" in answer or b"followed" in answer for answer in answers] == [True] * 4
    followers = [span.work for span in spans if isinstance(span.work, ModelCall) and span.work.queued]
    assert len(followers) == 3
    assert b"headway_slots_primed_total 2\n" in page
    assert b'headway_calls_led_total{outcome="followed"} 3\n' in page


async def test_a_call_that_nobody_follows_has_no_slot_touched() -> None:
    fan = Fan()
    async with (
        FakeEngine(slots=4) as engine,
        serving(llama(engine), passes=fan.passes, identifier=fan.identifier) as served,
    ):
        await fan.branch(served, 0)
        assert engine.probes == []


async def test_one_file_is_written_however_often_and_slots_at_work_are_let_be() -> None:
    fan, held = Fan(), asyncio.Event()
    gates = [asyncio.Event(), asyncio.Event()]
    replies = [Reply(content="x", gate=held), *[Reply(content="led", gate=gate) for gate in gates]]
    leads: list[Any] = [{"role": "system", "content": f"{name} " * 2000} for name in ("one", "two")]

    def script(body: dict[str, Any]) -> Reply:
        content = body["messages"][0]["content"]
        if content == "beside":
            return replies[0]
        if body["messages"][1]["content"] == "lead":
            return replies[1 if content.startswith("one") else 2]
        return Reply(content="followed")

    async with (
        FakeEngine(script, slots=4) as engine,
        serving(llama(engine), passes=fan.passes, identifier=fan.identifier) as served,
    ):
        assert engine.slots is not None
        beside = asyncio.create_task(served.raw(chat(CLOSE, messages=[{"role": "user", "content": "beside"}])))
        await engine.until(lambda: engine.active == 1)
        for lead, gate in zip(leads, gates, strict=True):
            asked = [[lead, {"role": "user", "content": what}] for what in ("lead", "b", "c")]
            calls = [asyncio.create_task(served.raw(chat(CLOSE, messages=asked[0])))]
            await engine.until(lambda: engine.active == 2)
            calls += [asyncio.create_task(served.raw(chat(CLOSE, messages=messages))) for messages in asked[1:]]
            await fan.waiting(2)
            gate.set()
            await asyncio.gather(*calls)
        held.set()
        await beside
        assert len(engine.slots.files) == 1
        assert not any(one.endswith(" 0") for one in engine.slots.asked), "that one was at work"
        assert [computed for computed in engine.slots.computed if computed > 1] == [2001, 2001]


async def test_an_engine_that_cannot_do_it_is_asked_once_and_then_nobody_waits() -> None:
    fan, gate = Fan(), asyncio.Event()
    replies = [Reply(content="led", gate=gate)]
    async with (
        FakeEngine(lambda _: replies.pop() if replies else Reply(content="alone")) as engine,
        serving(llama(engine), passes=fan.passes, identifier=fan.identifier) as served,
    ):
        branches = [fan.branch(served, 0)]
        await engine.until(lambda: engine.active == 1)
        branches += [fan.branch(served, number) for number in (1, 2)]
        await fan.waiting(2)
        gate.set()
        await asyncio.gather(*branches)
        assert engine.probes == ["/slots"]
        replies.append(Reply(content="led", gate=asyncio.Event()))
        stuck = fan.branch(served, 3)
        await engine.until(lambda: engine.active == 1)
        assert b"alone" in await fan.branch(served, 4)
        stuck.cancel()
    assert fan.leading.overdue == 2


async def test_nobody_waits_longer_than_computing_it_would_take() -> None:
    """At 0.1 ms a token 2,500 tokens take a quarter of a second, and the first one's answer takes for ever."""
    fan = Fan()
    timings = EngineTimings(prefill_tokens=1000, prefill_seconds=0.1, decode_tokens=1, decode_seconds=0.01)
    replies = [Reply(content="a b c d", fault="stall_mid_stream"), Reply(content="told", timings=timings)]
    async with (
        FakeEngine(lambda _: replies.pop() if replies else Reply(content="alone"), slots=4) as engine,
        serving(llama(engine), passes=fan.passes, identifier=fan.identifier) as served,
    ):
        other = [{"role": "system", "content": "other " * 2000}, {"role": "user", "content": "x"}]
        await served.raw(chat(CLOSE, messages=other, stream=True))
        stuck = fan.branch(served, 0)
        await engine.until(lambda: engine.active == 1)
        assert b"alone" in await fan.branch(served, 1)
        stuck.cancel()
    assert fan.leading.overdue == 1


async def test_where_the_first_fails_or_leaves_the_next_one_leads() -> None:
    fan, gate = Fan(), asyncio.Event()
    replies = [Reply(content="led", gate=gate), Reply(status=500, gate=asyncio.Event())]
    failing = replies[-1]
    async with (
        FakeEngine(lambda _: replies.pop() if replies else Reply(content="followed"), slots=4) as engine,
        serving(llama(engine), passes=fan.passes, identifier=fan.identifier) as served,
    ):
        assert engine.slots is not None
        branches = [fan.branch(served, 0)]
        await engine.until(lambda: engine.active == 1)
        branches += [fan.branch(served, number) for number in (1, 2, 3)]
        await fan.waiting(3)
        assert failing.gate is not None
        failing.gate.set()
        await engine.until(lambda: len(engine.requests) == 2)
        await fan.waiting(2)
        gate.set()
        answers = await asyncio.gather(*branches)
    assert [b"200 OK" in answer for answer in answers] == [False, True, True, True]
    assert engine.slots.asked[0].startswith("save")


@pytest.mark.model
async def test_llama_cpp_computes_a_common_beginning_once(caplog: pytest.LogCaptureFixture) -> None:
    try:
        weights = find(None)
    except NotFoundError as error:
        pytest.skip(str(error))
    caplog.set_level(logging.ERROR)
    fan = Fan(tokens=40)
    engines = EmbeddedFleet(
        EngineSpec(weights=weights, slots=3, context=512, threads=1), 1, lambda _replica, _healthy, _why: None
    )
    words = " ".join(f"fact {number}" for number in range(40))
    (replica,) = await engines.start()
    try:
        async with serving(replica, passes=fan.passes, identifier=fan.identifier) as served:

            async def ask(number: int) -> Any:  # noqa: ANN401 - llama.cpp's own fields
                messages: list[Any] = [
                    {"role": "system", "content": words},
                    {"role": "user", "content": f"Which comes after fact {number}?"},
                ]
                async with served.client() as client:
                    made = await client.with_options(timeout=100).chat.completions.create(
                        model="embedded", messages=messages, max_tokens=4
                    )
                return made.model_dump()["timings"]["prompt_n"]

            first = asyncio.create_task(ask(0))
            async with asyncio.timeout(30):
                while not any(load.in_flight for load in served.gateway.fleet.view().loads):  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0)
            rest = [asyncio.create_task(ask(number)) for number in (1, 2, 3)]
            computed = await first
            again = [await one for one in rest]
            assert max(again) < computed / 2, f"{computed} tokens, then {again}"
    finally:
        await engines.stop()
