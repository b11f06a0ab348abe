import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from joined import gateway_into
from serving import serving
from typer.testing import CliRunner

from headway.app.cli.main import app
from headway.core.errors import BadInputError, HeadwayError, NotDoneError, OverBudgetError, UpstreamError
from headway.core.money import MicroUsd, Price
from headway.core.span import ModelCall, Span
from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine, Reply, ToolCall
from headway.runtime import Amount, Budget, Models, Run, Runtime, Said, task
from headway.trace.store import Store

ONE_EACH = {"fake": Price(input=1_000_000, output=1_000_000)}
"""A micro-USD for each token."""
HELLO: list[dict[str, Any]] = [{"role": "user", "content": "one two three"}]


@asynccontextmanager
async def asking(reply: Reply, prices: dict[str, Price] | None = None) -> AsyncGenerator[tuple[FakeEngine, Runtime]]:
    """A runtime whose model answers ``reply``."""
    async with (
        FakeEngine(lambda _: reply) as engine,
        Models(engine.url, prices=prices) as models,
        Runtime(models=models) as runtime,
    ):
        yield engine, runtime


@task()
async def asks(run: Run) -> str:
    return (await run.chat(HELLO, model="fake", max_tokens=10)).text


async def test_a_model_is_asked_and_paid_for_what_it_used() -> None:
    usage = Usage(input_tokens=3, output_tokens=4, cache_read=0)
    async with asking(Reply(content="hi", usage=usage), ONE_EACH) as (engine, runtime):
        started = runtime.start(asks)
        assert await started == "hi"
    assert started.spent == Amount(money=MicroUsd(7), tokens=7, calls=1)
    assert engine.requests[0]["max_completion_tokens"] == 10
    assert engine.headers[0]["traceparent"].split("-")[1] == started.id


async def test_tools_options_and_tool_calls_pass() -> None:
    call = ToolCall("c1", "look", '{"at": 1}')

    @task()
    async def tooled(run: Run) -> dict[str, Any]:
        tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
        reply = await run.chat(HELLO, model="fake", tools=tools, temperature=0)
        assert reply.tool_calls == (call,)
        assert reply.finish_reason == "tool_calls"
        return reply.message

    async with asking(Reply(tool_calls=(call,))) as (engine, runtime):
        message = await runtime.start(tooled)
    assert message["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": 1}'}
    assert engine.requests[0]["temperature"] == 0


async def test_a_price_that_nobody_knows_is_told_and_not_taken_for_nothing() -> None:
    @task(budget=Budget(usd=1))
    async def limited(run: Run) -> str:
        return await asks.body(run)

    async with FakeEngine() as engine, Models(engine.url) as models, Runtime(models=models) as runtime:
        started = runtime.start(asks)
        await started
        assert started.spent.unpriced == started.spent.calls == 1
        with pytest.raises(BadInputError, match=r"price of 'fake' is not known.*prices="):
            await runtime.start(limited)
        assert len(engine.requests) == 1


async def test_a_call_that_may_cost_too_much_is_not_made() -> None:
    @task(budget=Budget(usd="0.00001 USD"))
    async def poor(run: Run) -> str:
        return await asks.body(run)

    async with FakeEngine() as engine, Models(engine.url, prices=ONE_EACH) as models, Runtime(models=models) as runtime:
        with pytest.raises(OverBudgetError):
            await runtime.start(poor)
        assert engine.requests == []


async def test_concurrent_calls_wait_for_what_others_put_back() -> None:
    """Each may take 60 micro-USD of 200 and takes 2: all 40 fit, though not at once."""

    async def item(run: Run, number: int) -> str:
        return (await run.chat([{"role": "user", "content": f"{number:03}"}], model="fake", max_tokens=10)).text

    @task(budget=Budget(usd="0.0002 USD"))
    async def many(run: Run) -> int:
        return len(await run.map(item, range(40)))

    usage = Usage(input_tokens=1, output_tokens=1, cache_read=0)
    async with asking(Reply(content="x", usage=usage), ONE_EACH) as (_, runtime):
        started = runtime.start(many)
        assert await started == 40
    assert started.spent == Amount(money=MicroUsd(80), tokens=80, calls=40)


async def test_an_answer_that_does_not_say_what_it_took_counts_as_the_most() -> None:
    async with asking(Reply(content="x", usage=Usage()), ONE_EACH) as (_, runtime):
        started = runtime.start(asks)
        await started
    written = len(json.dumps([HELLO, []], separators=(",", ":"))) + 10
    assert started.spent == Amount(money=MicroUsd(written), tokens=written, calls=1)


async def test_what_a_person_waits_for_is_streamed_to_him() -> None:
    @task()
    async def told(run: Run) -> str:
        return (await run.chat(HELLO, model="fake", say=True)).text

    async with asking(Reply(content="a b c")) as (engine, runtime):
        started = runtime.start(told)
        said = "".join([event.text async for event in started.progress() if isinstance(event, Said)])
        assert await started == said == "a b c"
    assert engine.requests[0]["stream"] is True


@pytest.mark.parametrize(
    ("reply", "error", "says"),
    [
        (Reply(status=400, error="no such thing"), BadInputError, "answered 400.*Mend the request"),
        (Reply(status=429, error="slow down"), UpstreamError, "answered 429"),
        (Reply(status=500, error="broken"), UpstreamError, "answered 500"),
        (Reply(content="x", fault="malformed_json"), UpstreamError, "fake at http"),
        (Reply(content="x", fault="close_before_answer"), UpstreamError, "fake at http"),
        (Reply(content="x", fault="wrong_content_type"), UpstreamError, "fake at http"),
    ],
    ids=["refused", "too many", "broken", "nonsense", "closed", "web page"],
)
async def test_what_goes_wrong_is_told_by_whom_and_whether_to_try_again(
    reply: Reply, error: type[Exception], says: str
) -> None:
    async with asking(reply) as (_, runtime):
        with pytest.raises(error, match=says):
            await runtime.start(asks)


@pytest.mark.parametrize(
    ("reply", "paid"),
    [
        (Reply(status=400), False),
        (Reply(status=429), False),
        (Reply(status=503), False),
        (Reply(status=500), True),
        (Reply(content="x", fault="malformed_json"), True),
        (Reply(content="x", fault="close_before_answer"), True),
    ],
    ids=["refused", "too many", "busy", "broken", "nonsense", "closed"],
)
async def test_a_failed_call_costs_the_most_unless_the_endpoint_says_that_it_did_nothing(
    reply: Reply, paid: bool
) -> None:
    async with asking(reply, ONE_EACH) as (_, runtime):
        started = runtime.start(asks)
        with pytest.raises(HeadwayError):
            await started
    most = len(json.dumps([HELLO, []], separators=(",", ":"))) + 10
    assert started.spent == Amount(money=MicroUsd(most if paid else 0), tokens=most if paid else 0, calls=1)


async def test_an_endpoint_that_cannot_be_reached_costs_nothing() -> None:
    async with FakeEngine() as engine:
        pass
    async with Models(engine.url, prices=ONE_EACH) as models, Runtime(models=models) as runtime:
        started = runtime.start(asks)
        with pytest.raises(NotDoneError, match="fake at http"):
            await started
    assert started.spent == Amount(calls=1)


@pytest.mark.parametrize("fault", ["close_mid_stream", "error_event", "malformed_sse"])
async def test_a_stream_that_breaks_is_an_error(fault: Any) -> None:  # noqa: ANN401 - one of the fake's
    @task()
    async def told(run: Run) -> str:
        return (await run.chat(HELLO, model="fake", say=True)).text

    async with asking(Reply(content="a b c", fault=fault)) as (_, runtime):
        with pytest.raises(UpstreamError, match="fake at http"):
            await runtime.start(told)


async def test_a_task_without_models_says_how_to_give_it_some() -> None:
    with pytest.raises(BadInputError, match=r"Runtime\(models="):
        await asks.start()


async def test_cancelling_a_task_ends_its_calls_at_the_engine() -> None:
    """Elsewhere what a task had started outlived it (pydantic-ai#3960, langgraph#5682)."""
    arrived = asyncio.Event()

    def stalls(_: dict[str, Any]) -> Reply:
        arrived.set()
        return Reply(content="x", fault="stall_before")

    async with FakeEngine(stalls) as engine, Models(engine.url) as models, Runtime(models=models) as runtime:
        started = runtime.start(asks)
        await arrived.wait()
        await started.cancel()
        await engine.wait_cancelled()
        await engine.until(lambda: not engine.active)


async def test_a_task_whose_name_is_no_trace_id_is_named_by_a_header() -> None:
    async with FakeEngine() as engine, Models(engine.url) as models, Runtime(models=models) as runtime:
        await runtime.resume("bug-17", asks)  # pyright: ignore[reportArgumentType] - a name is a string
    assert engine.headers[0]["x-headway-task"] == "bug-17"
    assert len(engine.headers[0]["traceparent"].split("-")[1]) == 32


async def test_the_gateways_spans_of_a_call_hang_below_the_runtimes() -> None:
    async with FakeEngine() as engine, serving(engine) as served, Models(served.url) as models:
        async with Runtime(models=models) as runtime:
            started = runtime.start(asks)
            await started
        span, _ = await served.call()
    assert span.task == started.id
    assert span.parent is not None


async def test_explain_shows_a_scatter_and_its_gateway_as_one_task(tmp_path: Path) -> None:
    async def item(run: Run, number: int) -> str:
        return (await run.chat([{"role": "user", "content": f"page {number}"}], model="fake")).text

    @task()
    async def review(run: Run) -> int:
        return len(await run.map(item, range(5), limit=2))

    path = tmp_path / "store.db"
    with Store(path) as store:
        async with (
            FakeEngine() as engine,
            gateway_into(store, engine) as url,
            Models(url) as models,
            Runtime(store=path, models=models) as runtime,
        ):
            started = runtime.start(review)
            assert await started == 5
        spans = {span.id: span for span in store.spans(started.id)}
        assert [row.task for row in store.tasks(10)] == [started.id]
    theirs = [span for span in spans.values() if isinstance(span.work, ModelCall) and span.work.replica == "r"]
    assert len(theirs) == 5
    assert {way(spans, span) for span in theirs} == {
        ("chat fake", "chat fake", "item", "scatter item", "invoke_agent review")
    }
    shown = CliRunner().invoke(app, ["explain", started.id, "--store", str(path), "--json"], catch_exceptions=False)
    account = json.loads(shown.stdout)
    assert (account["calls"], account["failures"]) == (5, 0)


def way(spans: dict[Any, Span], span: Span) -> tuple[str, ...]:
    """The names from a span up to its root."""
    names = [span.name]
    while span.parent is not None:
        span = spans[span.parent]
        names.append(span.name)
    return tuple(names)
