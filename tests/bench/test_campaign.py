"""Loads against a real server, played to their end or stopped."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import cycle
from random import Random

import pytest

from headway.bench.arrivals import Arrivals, Closed, arrivals
from headway.bench.campaign import Campaign, Stop, run
from headway.bench.endpoint import endpoint
from headway.bench.graph import Call, Graph, Session, Shared, Tool
from headway.bench.spans import HeardTask, listen, spans_of
from headway.core.clock import SystemClock
from headway.core.errors import BadInputError
from headway.core.span import HumanWait, ModelCall, ToolUse
from headway.gateway.fake import FakeEngine, Fault, Reply
from headway.trace.ids import Ids


def call(name: str, *after: str, extends: str | None = None, shared: Shared | None = None) -> Call:
    return Call(id=name, input_tokens=5, output_tokens=9, after=after, extends=extends, shared=shared)


LOOP = Session(
    (Graph((call("a", shared=Shared("s", 4)), Tool(id="t", seconds=0.0, after=("a",)), call("b", "t", extends="a"))),)
)
CHAT = Session((Graph((call("one"),)), Graph((call("two", extends="one"),))), (0.0,))
ONE = Session((Graph((call("ask"),)),))


async def play(
    engine: FakeEngine,
    session: Session,
    load: Arrivals,
    stop: Stop,
    *,
    patience: float = 60.0,
    halt: asyncio.Event | None = None,
) -> Campaign:
    at, sessions = endpoint(engine.url, "fake"), cycle([session])
    return await run(at, sessions, load, stop, dice=Random(1), salt="salt", patience=patience, halt=halt)


def listened(campaign: Campaign) -> list[HeardTask]:
    return [listen(task, "fake", stream=True) for task in campaign.tasks]


@asynccontextmanager
async def saying(*replies: Reply) -> AsyncGenerator[FakeEngine]:
    """An engine that gives these in turn, again and again."""
    turn = cycle(replies)
    async with FakeEngine(lambda _: next(turn)) as engine:
        yield engine


async def test_a_call_goes_on_from_the_real_answer_and_begins_as_others_do() -> None:
    async with saying(Reply(content="first answer"), Reply(content="second")) as engine:
        await play(engine, LOOP, Closed(1), Stop(sessions=2))
    first, second, third, _ = [request["messages"] for request in engine.requests]
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]
    assert second[:2] == first
    assert second[2]["content"] == "first answer"
    assert third[0] == first[0], "what is shared is the same in every task"
    assert third[1] != first[1], "all else is never sent twice"
    assert engine.requests[0]["max_tokens"] == 9


async def test_sides_go_out_together_and_the_gathering_call_waits_for_both() -> None:
    gate = asyncio.Event()
    scatter = Session((Graph((call("left"), call("right"), call("gather", "left", "right"))),))
    async with saying(Reply(content="x", gate=gate)) as engine:
        playing = asyncio.create_task(play(engine, scatter, Closed(1), Stop(sessions=1)))
        await engine.until(lambda: engine.active == 2)
        assert len(engine.requests) == 2
        gate.set()
        campaign = await playing
    assert [one.step.id for one in campaign.tasks[0].calls][2] == "gather"


async def test_so_many_are_under_way_and_no_more() -> None:
    gate = asyncio.Event()
    async with saying(Reply(content="x", gate=gate)) as engine:
        playing = asyncio.create_task(play(engine, ONE, Closed(3), Stop(sessions=7)))
        await engine.until(lambda: engine.active == 3)
        gate.set()
        campaign = await playing
    assert len(campaign.tasks) == 7
    assert campaign.connections == 3, "a connection is used again"


async def test_an_open_load_does_not_wait_for_answers() -> None:
    gate = asyncio.Event()
    async with saying(Reply(content="x", gate=gate)) as engine:
        playing = asyncio.create_task(play(engine, ONE, arrivals("constant 500/s"), Stop(sessions=20)))
        await engine.until(lambda: engine.active == 20)
        gate.set()
        campaign = await playing
    intended = sorted(task.intended for task in campaign.tasks)
    assert [at - intended[0] for at in intended] == pytest.approx([n / 500 for n in range(20)], abs=1e-5)


async def test_stopping_keeps_what_was_measured() -> None:
    halt, gate = asyncio.Event(), asyncio.Event()
    replies = iter([Reply(content="x"), Reply(content="x", gate=gate)])
    async with FakeEngine(lambda _: next(replies)) as engine:
        playing = asyncio.create_task(play(engine, ONE, Closed(1), Stop(sessions=5), halt=halt))
        await engine.until(lambda: len(engine.requests) == 2)
        halt.set()
        campaign = await playing
        await engine.wait_cancelled()
    assert campaign.interrupted
    assert [task.ended is not None for task in campaign.tasks] == [True, False]
    assert engine.open_connections == 0


async def test_after_a_failure_no_step_of_the_task_begins_and_the_load_goes_on() -> None:
    async with saying(Reply(status=500), Reply(content="x"), Reply(content="y")) as engine:
        campaign = await play(engine, LOOP, Closed(1), Stop(sessions=2))
    failed, whole = listened(campaign)
    assert (failed.error, failed.e2e, len(failed.calls)) == ("http_500", None, 1)
    assert (whole.error, len(whole.calls)) == (None, 2)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("close_before_answer", "closed"),
        ("close_mid_stream", "closed"),
        ("reset_mid_stream", "closed"),
        ("malformed_sse", "malformed"),
        ("error_event", "error_event"),
        ("not_http", "no_http"),
    ],
)
async def test_an_endpoint_that_breaks_is_heard_breaking(fault: Fault, error: str) -> None:
    async with saying(Reply(chunks=("a", "b", "c"), fault=fault)) as engine:
        (task,) = listened(await play(engine, ONE, Closed(1), Stop(sessions=1)))
    assert task.error == error


async def test_an_endpoint_that_stalls_is_left() -> None:
    async with saying(Reply(content="x", gate=asyncio.Event())) as engine:
        (task,) = listened(await play(engine, ONE, Closed(1), Stop(sessions=1), patience=0.05))
        await engine.wait_cancelled()
    assert task.error == "timeout"


async def test_an_endpoint_that_is_not_there_refuses() -> None:
    async with FakeEngine() as engine:
        url = engine.url
    load = run(endpoint(url, "fake"), cycle([ONE]), Closed(1), Stop(sessions=1), dice=Random(1), salt="")
    (task,) = listened(await load)
    assert task.error == "refused"


async def test_a_connection_that_was_closed_while_idle_is_no_failure() -> None:
    async with saying(Reply(content="x", fault="close_after_answer")) as engine:
        tasks = listened(await play(engine, ONE, Closed(1), Stop(sessions=4)))
    assert [task.error for task in tasks] == [None] * 4


async def test_a_load_that_nothing_ends_is_refused() -> None:
    async with FakeEngine() as engine:
        with pytest.raises(BadInputError, match="Nothing ends"):
            await play(engine, ONE, Closed(1), Stop())


async def test_a_played_task_is_spans_like_any_other() -> None:
    async with saying(Reply(chunks=("a", "b"))) as engine:
        (task,) = listened(await play(engine, LOOP, Closed(1), Stop(sessions=1)))
    (spans,) = spans_of([task], Ids(SystemClock()))
    root, *children = spans
    calls = [span for span in children if isinstance(span.work, ModelCall)]
    (tool,) = [span for span in children if isinstance(span.work, ToolUse)]
    assert {span.parent for span in children} == {root.id}
    assert isinstance(tool.work, ToolUse)
    assert tool.work.issued_by == calls[0].id
    assert root.start == task.played.intended
    for span in calls:
        assert isinstance(span.work, ModelCall)
        marks = [span.start, span.work.sent, span.work.first_token, span.work.last_token, span.end]
        assert marks == sorted(mark for mark in marks if mark is not None)


async def test_tasks_of_a_session_have_the_wait_for_the_person_between_them() -> None:
    async with saying(Reply(content="x")) as engine:
        tasks = listened(await play(engine, CHAT, Closed(1), Stop(sessions=1)))
    first, second = spans_of(tasks, Ids(SystemClock()))
    wait = second[0]
    assert isinstance(wait.work, HumanWait)
    assert (wait.start, wait.end) == (first[0].end, second[1].start)
    assert len({span.session for span in [*first, *second]}) == 1
    assert first[0].task != second[1].task
