"""An agent behind a gateway, as `headway explain` shows it."""

import asyncio
import json
from pathlib import Path
from typing import Any

from joined import gateway_into
from scripted import calls, says
from typer.testing import CliRunner

from headway.app.cli.main import app
from headway.core.span import ModelCall, Span, ToolUse
from headway.core.task import TaskId
from headway.gateway.fake import FakeEngine
from headway.runtime import Agent, Context, Models, Policy, Run, Runtime, task, tool
from headway.trace.store import Store


@tool(purity="reads")
async def look(run: Run, path: str) -> str:
    """Read a file."""
    await asyncio.sleep(0.01)
    if path == "deep":
        return await summary(run, "what is in it?")
    return path * 3000


summary = Agent("fake", name="summary")
agent = Agent("fake", [look], Policy(context=Context(tokens=2000)), name="reader")


@task()
async def review(run: Run) -> str:
    """Ask the agent."""
    return await agent(run, "what do they say?")


async def reviewed(path: Path) -> tuple[TaskId, list[Span]]:
    """A review, and its spans."""
    script = iter(
        [
            calls(("look", '{"path": "a"}'), ("look", '{"path": "b"}'), ("lok", "{}")),
            calls(("look", '{"path": "deep"}'), first=3),
            says("a summary"),
            says("they say a and b"),
        ]
    )
    with Store(path) as store:
        async with (
            FakeEngine(lambda _: next(script)) as engine,
            gateway_into(store, engine) as url,
            Models(url) as models,
            Runtime(store=path, models=models) as runtime,
        ):
            started = runtime.start(review)
            assert await started == "they say a and b"
        return started.id, list(store.spans(started.id))


async def test_explain_shows_an_agents_calls_and_tools_nested(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    name, spans = await reviewed(path)
    by_id = {span.id: span for span in spans}
    tools = [span for span in spans if isinstance(span.work, ToolUse) and not span.work.inferred]
    assert sorted(span.name for span in tools) == ["execute_tool lok", *["execute_tool look"] * 3]
    assert {way(by_id, span) for span in tools} == {("invoke_agent reader", "invoke_agent review")}
    theirs = [span for span in spans if isinstance(span.work, ModelCall) and span.work.replica == "r"]
    mine = ("chat fake", "invoke_agent reader", "invoke_agent review")
    nested = ("chat fake", "invoke_agent summary", "execute_tool look", "invoke_agent reader", "invoke_agent review")
    assert sorted(way(by_id, span) for span in theirs) == sorted([mine, mine, mine, nested])
    first, second = (
        next(s for s in tools if isinstance(s.work, ToolUse) and s.work.call_id == f"c{n}") for n in (0, 1)
    )
    assert max(first.start, second.start) < min(first.end or 0, second.end or 0), "they were made at once"

    shown = CliRunner().invoke(app, ["explain", name, "--store", str(path), "--json"], catch_exceptions=False)
    account: dict[str, Any] = json.loads(shown.stdout)
    assert (account["calls"], account["failures"]) == (4, 1)
    text = CliRunner().invoke(app, ["explain", name, "--store", str(path)], catch_exceptions=False).stdout
    assert [line.split()[1:3] for line in text.splitlines() if " tool lo" in line] == [
        *[["tool", "look"]] * 2,
        ["tool", "lok"],
        ["tool", "look"],
    ], "the gateway infers them too, and each is shown once"
    assert "Before call 2 of reader, 2 results of tools were cut to fit into its prompt." in " ".join(text.split())


def way(spans: dict[Any, Span], span: Span) -> tuple[str, ...]:
    """The names from above a span up to its root."""
    names: list[str] = []
    while span.parent is not None:
        span = spans[span.parent]
        names.append(span.name)
    return tuple(names)
