"""The agent against a scripted engine over real HTTP, with the real client."""

import json
from typing import Any

import pytest
from openai import AsyncOpenAI

from headway.agents.knowledge.agent import WAYS, KnowledgeAnswer, ask
from headway.agents.knowledge.assignment import Mode
from headway.agents.knowledge.plain_model import PlainModel
from headway.agents.knowledge.retrieval.index import Index
from headway.core.errors import BadInputError, UpstreamError
from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine, Fault, Reply

QUESTION = "Why was the boat late, and who was told?"
STEPS = [
    ("search", "why the boat was late"),
    ("search", "told about the late boat"),
    ("summarise", "it"),
    ("answer", "both"),
]
PLAN = json.dumps({"steps": [{"action": action, "about": about} for action, about in STEPS]})


def script(body: dict[str, Any]) -> Reply:
    if "response_format" in body:
        return Reply(content=PLAN, usage=Usage(input_tokens=10, output_tokens=5, cache_read=0))
    if body.get("stream"):
        return Reply(chunks=("A rope", " did", " it."), usage=Usage(input_tokens=40, output_tokens=3, cache_read=30))
    return Reply(content="A note of what was found.", usage=Usage(input_tokens=30, output_tokens=6, cache_read=10))


async def run(
    engine: FakeEngine, index: Index, mode: Mode, question: str = QUESTION
) -> tuple[KnowledgeAnswer, list[str], list[str]]:
    pieces: list[str] = []
    steps: list[str] = []
    async with AsyncOpenAI(base_url=engine.url, api_key="k", max_retries=0) as client:
        answer = await ask(
            question, index, PlainModel(client, "fake"), on_text=pieces.append, on_step=steps.append, way=WAYS[mode]
        )
    return answer, pieces, steps


async def test_direct_is_one_streamed_call_on_what_was_found(ferry_index: Index) -> None:
    async with FakeEngine(script) as engine:
        answer, pieces, steps = await run(engine, ferry_index, "direct")
    (request,) = engine.requests
    assert request["stream"] is True
    assert "tools" not in request
    prompt = request["messages"][-1]["content"]
    assert prompt.index("plums") < prompt.index("rope")  # the nearest passage stands next to the question
    assert prompt.endswith(QUESTION)
    assert pieces == ["A rope", " did", " it."]
    assert answer.text == "A rope did it."
    assert answer.finish_reason == "stop"
    assert answer.plan is None
    assert [source.document for source in answer.sources] == ["told.md", "ferry.md", "cakes.md"]
    assert answer.sources[0].place == "Notes"
    assert answer.usage == Usage(input_tokens=40, output_tokens=3, cache_read=30)
    assert steps == ["search: the question itself", "answer"]


async def test_planning_takes_the_steps_of_the_models_plan_in_one_growing_conversation(ferry_index: Index) -> None:
    async with FakeEngine(script) as engine:
        answer, pieces, steps = await run(engine, ferry_index, "planning")
    planning, note, final = engine.requests
    assert planning["response_format"]["type"] == "json_schema"
    assert note["messages"][: len(planning["messages"])] == planning["messages"]
    assert note["messages"][len(planning["messages"])] == {"role": "assistant", "content": PLAN}
    assert final["messages"][: len(note["messages"])] == note["messages"]
    assert final["messages"][len(note["messages"])] == {"role": "assistant", "content": "A note of what was found."}
    assert final["messages"][-1]["content"].endswith(QUESTION)
    assert answer.plan is not None
    assert (answer.plan.source, answer.plan.why) == ("model", "")
    assert [(step.action, step.about) for step in answer.plan.steps] == STEPS
    assert pieces == ["A rope", " did", " it."]
    assert answer.usage == Usage(input_tokens=80, output_tokens=14, cache_read=40)
    assert [call.step for call in answer.calls] == ["plan", "summarise", "answer"]
    assert answer.calls[0].ttft is None
    assert 0 < (answer.calls[-1].ttft or 0) <= answer.calls[-1].seconds <= answer.seconds
    assert steps == [
        "search: the question itself",
        "plan",
        "plan by model: search → search → summarise → answer",
        *(f"{a}: {b}" for a, b in STEPS),
    ]


async def test_a_passage_that_two_searches_find_is_shown_once(ferry_index: Index) -> None:
    async with FakeEngine(script) as engine:
        answer, _, _ = await run(engine, ferry_index, "planning")
    documents = [source.document for source in answer.sources]
    assert len(documents) == len(set(documents))
    shown = json.dumps(engine.requests[-1]["messages"])
    assert shown.count("rope was in its propeller") == 1


async def test_every_tool_result_in_the_history_answers_a_call_before_it(ferry_index: Index) -> None:
    async with FakeEngine(script) as engine:
        await run(engine, ferry_index, "planning")
    messages = engine.requests[-1]["messages"]
    issued = [call["id"] for message in messages for call in message.get("tool_calls", [])]
    assert issued == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert len(set(issued)) == len(STEPS)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(content=PLAN, finish_reason="length"), "it was cut off at 220 tokens"),
        (Reply(content="no plan"), "it is not the JSON that was asked for"),
        (Reply(status=400, error="response_format is not supported"), "response_format is not supported"),
    ],
)
async def test_rules_step_in_for_a_bad_plan_and_the_answer_says_so(ferry_index: Index, reply: Reply, why: str) -> None:
    async with FakeEngine(lambda body: reply if "response_format" in body else script(body)) as engine:
        answer, _, steps = await run(engine, ferry_index, "planning")
    assert answer.plan is not None
    assert answer.plan.source == "rules"
    assert why in answer.plan.why
    assert [step.action for step in answer.plan.steps] == ["search", "search", "summarise", "answer"]
    assert any(step.startswith("plan by rules") and why in step for step in steps)
    assert answer.text == "A rope did it."


async def test_usage_is_unknown_where_an_endpoint_does_not_tell(ferry_index: Index) -> None:
    async with FakeEngine(lambda _body: Reply(content="Words.", report_usage="never")) as engine:
        answer, _, _ = await run(engine, ferry_index, "direct")
    assert answer.usage == Usage()


@pytest.mark.parametrize("question", ["", "  \n", "x" * 1001])
async def test_a_question_must_have_a_sensible_length(ferry_index: Index, question: str) -> None:
    async with FakeEngine(script) as engine:
        with pytest.raises(BadInputError, match="The question has"):
            await run(engine, ferry_index, "direct", question)
    assert engine.requests == []


FAULTS: list[Fault] = [
    "close_before_answer",
    "close_mid_stream",
    "reset_mid_stream",
    "error_event",
    "malformed_json",
    "wrong_content_type",
]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_stream_that_breaks_is_an_error_that_names_the_endpoint(ferry_index: Index, fault: Fault) -> None:
    async with FakeEngine(lambda _body: Reply(content="one two three four", fault=fault)) as engine:
        with pytest.raises(UpstreamError, match=f"{engine.url}.*did not answer"):
            await run(engine, ferry_index, "direct")


@pytest.mark.parametrize("fault", ["close_before_answer", "short_body", "malformed_json", "wrong_content_type"])
async def test_a_whole_answer_that_is_broken_is_an_error_too(ferry_index: Index, fault: Fault) -> None:
    async with FakeEngine(lambda _body: Reply(content="one two three four", fault=fault)) as engine:
        with pytest.raises(UpstreamError, match=f"{engine.url}.*did not answer"):
            await run(engine, ferry_index, "planning")


@pytest.mark.parametrize("status", [401, 404, 429, 500])
async def test_a_refusal_is_told_in_the_endpoints_words(ferry_index: Index, status: int) -> None:
    async with FakeEngine(lambda _body: Reply(status=status, error="the reason")) as engine:
        with pytest.raises(UpstreamError, match="the reason"):
            await run(engine, ferry_index, "planning")


async def test_an_endpoint_that_is_not_there_is_named(ferry_index: Index) -> None:
    async with FakeEngine(script) as engine:
        pass
    with pytest.raises(UpstreamError, match=r"Connection error.*Check that the URL"):
        await run(engine, ferry_index, "direct")


async def test_what_does_not_fit_is_refused_unasked_unless_it_is_in_another_script(ferry_index: Index) -> None:
    async with FakeEngine(script) as engine, AsyncOpenAI(base_url=engine.url, api_key="k") as client:
        model = PlainModel(client, "fake")
        refused = await ask("How do vaccines work?", ferry_index, model, threshold=0.5)
        assert engine.requests == []
        assert refused.refused is not None
        assert (refused.refused.by, refused.text, refused.calls, refused.support) == ("search", "", (), 0.0)
        assert [source.number for source in refused.sources] == [1, 2, 3]
        fits = await ask("a rope in the propeller", ferry_index, model, threshold=0.5)
        korean = await ask("배는 왜 늦었나요?", ferry_index, model, threshold=0.5)
    assert (fits.refused, korean.refused) == (None, None)
    assert len(engine.requests) == 2
