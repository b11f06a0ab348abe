"""The agent as a task of the runtime: by tools, within a budget, in one record."""

import json
from pathlib import Path
from typing import Any

import pytest

from headway.agents.knowledge.agent import KnowledgeAnswer
from headway.agents.knowledge.as_task import answering
from headway.agents.knowledge.assignment import Mode
from headway.agents.knowledge.retrieval.index import Index
from headway.core.errors import OverBudgetError, StoppedError, UpstreamError
from headway.core.span import ModelCall, Retrieval, ToolUse
from headway.gateway.fake import FakeEngine, Reply, ToolCall
from headway.runtime import Budget, Models, Runtime
from headway.trace.store import Store

QUESTION = "Why was the ferry late?"


async def run(
    engine: FakeEngine,
    index: Index,
    mode: Mode,
    *,
    budget: Budget | None = None,
    store: Path | None = None,
    steps: list[str] | None = None,
    pieces: list[str] | None = None,
    question: str = QUESTION,
) -> KnowledgeAnswer:
    task = answering(
        index,
        "fake",
        budget=budget or Budget(),
        on_text=(pieces if pieces is not None else []).append,
        on_step=(steps if steps is not None else []).append,
        mode=mode,
    )
    async with Models(engine.url) as models, Runtime(models=models, store=store) as runtime:
        return await runtime.start(task, question)


def tool_results(body: dict[str, Any]) -> list[str]:
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def searching(body: dict[str, Any]) -> Reply:
    match len(tool_results(body)):
        case 0:
            calls = (
                ToolCall("a", "search", '{"query": "cakes on Sundays"}'),
                ToolCall("b", "around", '{"passage": 2}'),
            )
            return Reply(tool_calls=calls)
        case _:
            return Reply(
                content='A rope, not a QUOTE.\nQUOTE [2] "a rope was in its propeller"\nQUOTE [1] "cakes with plums"'
            )


async def test_the_model_searches_by_tools_and_quotes_what_they_showed(ferry_index: Index, tmp_path: Path) -> None:
    store, steps, pieces = tmp_path / "spans.db", list[str](), list[str]()
    async with FakeEngine(searching) as engine:
        answer = await run(engine, ferry_index, "tools", store=store, steps=steps, pieces=pieces)
    first, second = engine.requests
    assert {tool["function"]["name"] for tool in first["tools"]} >= {"search", "around"}
    assert second["messages"][: len(first["messages"])] == first["messages"]
    found, around = tool_results(second)
    assert "[1] cakes\nThe bakery sells cakes with plums on Sundays." in found
    assert around == "[2] ferry\nThe ferry was late because a rope was in its propeller."
    assert answer.text == "A rope, not a QUOTE."
    assert "".join(pieces).strip() == answer.text
    assert [(quote.source, quote.document) for quote in answer.quotes] == [(2, "ferry.md"), (1, "cakes.md")]
    assert {source.number: source.document for source in answer.sources}[1] == "cakes.md"
    assert [call.finish_reason for call in answer.calls] == ["tool_calls", "stop"]
    assert (answer.usage.input_tokens or 0) > 0
    assert steps == [
        "search: the question itself",
        "answer, with tools",
        "search: cakes on Sundays",
        "look around: passage 2",
    ]
    with Store(store, readonly=True) as opened:
        (row,) = opened.tasks()
        spans = opened.spans(row.task)
    assert sum(isinstance(span.work, ModelCall) for span in spans) == 2
    assert sorted(span.work.name for span in spans if isinstance(span.work, ToolUse)) == ["around", "search"]
    retrievals = [span for span in spans if isinstance(span.work, Retrieval)]
    assert [span.work.results for span in retrievals if isinstance(span.work, Retrieval)] == [3, 3]


async def test_a_model_that_calls_no_tools_answers_from_the_first_search(ferry_index: Index) -> None:
    reply = Reply(content='A rope.\nQUOTE [2] "a rope was in its propeller"')
    async with FakeEngine(lambda _: reply) as engine:
        answer = await run(engine, ferry_index, "tools")
    assert answer.grounded
    assert len(answer.calls) == 1


async def test_a_passage_that_is_not_there_is_told_to_the_model(ferry_index: Index) -> None:
    def script(body: dict[str, Any]) -> Reply:
        if tool_results(body):
            return Reply(content="NOT IN THE DOCUMENTS")
        return Reply(tool_calls=(ToolCall("a", "around", '{"passage": 99}'),))

    async with FakeEngine(script) as engine:
        answer = await run(engine, ferry_index, "tools")
    assert "There is no passage 99." in tool_results(engine.requests[-1])[0]
    assert answer.refused is not None
    assert (answer.refused.by, answer.text) == ("model", "")


async def test_a_model_that_searches_for_ever_is_stopped(ferry_index: Index) -> None:
    def script(body: dict[str, Any]) -> Reply:
        query = json.dumps({"query": f"cake {len(body['messages'])}"})
        return Reply(tool_calls=(ToolCall("a", "search", query),))

    async with FakeEngine(script) as engine:
        with pytest.raises(StoppedError):
            await run(engine, ferry_index, "tools")
    assert len(engine.requests) <= 8


PLAN = '{"steps":[{"action":"search","about":"the boat"},{"action":"answer","about":"the boat"}]}'


def planning(body: dict[str, Any]) -> Reply:
    return Reply(content=PLAN) if "response_format" in body else Reply(content="A rope.")


@pytest.mark.parametrize(("mode", "calls", "searches"), [("direct", 1, 1), ("planning", 2, 2), ("cag", 1, 0)])
async def test_each_way_is_one_task_whose_searches_and_calls_are_recorded(
    ferry_index: Index, tmp_path: Path, mode: Mode, calls: int, searches: int
) -> None:
    store, pieces = tmp_path / "spans.db", list[str]()
    async with FakeEngine(planning) as engine:
        answer = await run(engine, ferry_index, mode, store=store, pieces=pieces)
    assert len(engine.requests) == len(answer.calls) == calls
    assert (answer.text, "".join(pieces), answer.mode) == ("A rope.", "A rope.", mode)
    assert (answer.calls[-1].ttft or 0) > 0
    with Store(store, readonly=True) as opened:
        (row,) = opened.tasks()
        works = [span.work for span in opened.spans(row.task)]
    assert sum(isinstance(work, ModelCall) for work in works) == calls
    assert sum(isinstance(work, Retrieval) for work in works) == searches


@pytest.mark.parametrize("mode", ["direct", "planning", "cag", "tools"])
async def test_no_call_is_made_that_the_budget_does_not_hold(ferry_index: Index, mode: Mode) -> None:
    async with FakeEngine(planning) as engine:
        with pytest.raises(OverBudgetError):
            await run(engine, ferry_index, mode, budget=Budget(tokens=10))
    assert engine.requests == []


async def test_an_endpoint_that_refuses_the_schema_gets_a_plan_by_rules_and_one_that_refuses_the_key_an_error(
    ferry_index: Index,
) -> None:
    def script(body: dict[str, Any]) -> Reply:
        return Reply(status=400, error="no schemas here") if "response_format" in body else Reply(content="A rope.")

    async with FakeEngine(script) as engine:
        answer = await run(engine, ferry_index, "planning")
    assert answer.plan is not None
    assert (answer.plan.source, "no schemas here" in answer.plan.why) == ("rules", True)
    async with FakeEngine(script, api_key="other") as engine:
        with pytest.raises(UpstreamError, match="answered 401"):
            await run(engine, ferry_index, "planning")
