"""Bugs in a policy or in the gateway: the call ends with a 500, the log names the place, and nothing leaks."""

import asyncio
import json
import logging

import pytest
from serving import QUESTION, Served, chat, raw_engine, serving, whole

from headway.core.fleet import FleetView
from headway.core.span import ModelCall
from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.fleet import LiveFleet
from headway.gateway.relay import StreamRelay, WholeRelay
from headway.gateway.unforeseen import Unforeseen
from headway.policy.route import RouteDecision, RouteEvent, RouteRequest
from headway.policy.routing.least_loaded import LeastLoaded

SECRET = QUESTION[0]["content"]


def the_log(caplog: pytest.LogCaptureFixture) -> str:
    """The one error in it."""
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    text = record.getMessage()
    assert "KeyError" in text
    assert "test_unforeseen.py" in text
    assert SECRET not in text
    assert record.exc_info is None
    return text


async def error_of(served: Served) -> str | None:
    spans = [span for span in await served.spans() if isinstance(span.work, ModelCall)]
    return spans[-1].error


class NoChoice(LeastLoaded):
    """Cannot decide the first time, or once a replica is excluded."""

    def __init__(self, *, at_once: bool) -> None:
        super().__init__()
        self._at_once = at_once

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        if self._at_once or request.excluded:
            raise KeyError(SECRET)
        return super().decide(request, view, now)


async def test_a_policy_that_breaks_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEngine() as engine, serving(engine, policy=NoChoice(at_once=True)) as served:
        for _ in range(2):
            answer = await served.ask(chat())
            assert (answer.status, answer.error["type"]) == (500, "server_error")
            assert answer.error["code"] == "internal_error"
            assert SECRET not in answer.error["message"]
        assert {span.error for span in await served.spans(calls=2)} == {"internal_error"}
        assert (await served.ask(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")).status == 200
    the_log(caplog)


@pytest.mark.parametrize("dead", ["no connection", "no word"])
async def test_a_policy_that_breaks_when_a_call_needs_another_replica(
    dead: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = FakeEngine(lambda _: Reply(fault="close_before_answer"))
    async with engine, FakeEngine() as other, serving(engine, other, policy=NoChoice(at_once=False)) as served:
        if dead == "no connection":
            await engine.go_down()
        answer = await served.ask(chat())
        assert (answer.status, answer.error["code"]) == (500, "internal_error")
        assert await error_of(served) == "internal_error"
    the_log(caplog)


class Deaf(LeastLoaded):
    """Cannot bear any news."""

    def observe(self, event: RouteEvent) -> None:
        raise KeyError(SECRET, event)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_policy_that_cannot_be_told_anything_harms_no_call(
    stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakeEngine() as engine, serving(engine, policy=Deaf()) as served:
        assert b" 200 OK" in await served.raw(chat("connection: close\r\n", stream=stream))
        assert await error_of(served) is None
    the_log(caplog)


def broken(*_: object, **__: object) -> None:
    raise KeyError(SECRET)


async def test_a_fault_in_a_stream_that_has_begun_is_an_error_event(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()
    async with FakeEngine(lambda _: Reply(chunks=("a",), gate=gate)) as engine, serving(engine) as served:
        monkeypatch.setattr(StreamRelay, "body", broken)
        async with served.connect() as (reader, writer):
            writer.write(chat(stream=True))
            await engine.until(lambda: engine.active == 1)
            gate.set()
            raw = await reader.read()
        assert raw.startswith(b"HTTP/1.1 200 ")
        event = raw.partition(b"data: ")[2].partition(b"\n\n")[0]
        assert json.loads(event)["error"]["code"] == "internal_error"
        assert raw.endswith(b"0\r\n\r\n")
        assert await error_of(served) == "internal_error"
    the_log(caplog)


@pytest.mark.parametrize("step", ["body", "end", "note"])
async def test_a_fault_in_a_whole_answer(
    step: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw_engine(whole(b"{}")) as engine, serving(engine) as served:
        monkeypatch.setattr(WholeRelay, step, broken)
        answer = await served.ask(chat())
        assert answer.status == (200 if step == "note" else 500)
        await error_of(served)
    the_log(caplog)


async def test_a_fault_outside_of_calls(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveFleet, "health", broken)
    async with FakeEngine() as engine, serving(engine) as served:
        assert (await served.ask(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")).status == 500
    the_log(caplog)


async def test_a_fault_while_the_models_are_listed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        monkeypatch.setattr(served.gateway.upstream, "fetch", broken)
        assert (await served.ask(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")).status == 500
    the_log(caplog)


async def test_each_place_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    unforeseen = Unforeseen()

    for name in ("nothing", "absent", "nothing"):
        try:
            getattr(unforeseen, name)() if name == "nothing" else {}[SECRET]
        except (AttributeError, KeyError) as error:
            unforeseen.met(error)
    assert len(caplog.records) == 2
