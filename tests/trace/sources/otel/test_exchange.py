"""The messages of a call in every shape in which they are kept."""

import json

import pytest
from genai_spans import AT, CHAT, Attributes, call

from headway.core.span import ToolCallRef
from headway.trace.sources.digests import part
from headway.wire.otel import RawEvent

PROMPT = (part("system", "be brief"), part("user", "how warm?"))
ANSWER = part("assistant", 'looking\nweather({"city":"Rome"})')
CALLS = (ToolCallRef("c1", "weather"),)
CITY = '{"city":"Rome"}'


@pytest.mark.parametrize(
    "attributes",
    [
        {  # OTel 1.37
            "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "be brief"}]),
            "gen_ai.input.messages": json.dumps(
                [{"role": "user", "parts": [{"type": "text", "content": "how warm?"}]}]
            ),
            "gen_ai.output.messages": json.dumps(
                [
                    {
                        "role": "assistant",
                        "parts": [
                            {"type": "text", "content": "looking"},
                            {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Rome"}},
                        ],
                        "finish_reason": "tool_call",
                    }
                ]
            ),
        },
        {  # Traceloop
            "gen_ai.prompt.0.role": "system",
            "gen_ai.prompt.0.content": "be brief",
            "gen_ai.prompt.1.role": "user",
            "gen_ai.prompt.1.content": '[{"type": "text", "text": "how warm?"}]',
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "looking",
            "gen_ai.completion.0.tool_calls.0.id": "c1",
            "gen_ai.completion.0.tool_calls.0.name": "weather",
            "gen_ai.completion.0.tool_calls.0.arguments": CITY,
        },
        {  # OpenInference, its prompt out of order
            "llm.input_messages.1.message.role": "user",
            "llm.input_messages.1.message.contents.0.message_content.type": "text",
            "llm.input_messages.1.message.contents.0.message_content.text": "how warm?",
            "llm.input_messages.0.message.role": "system",
            "llm.input_messages.0.message.content": "be brief",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "looking",
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "weather",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": CITY,
        },
        {  # Pydantic AI's events as an attribute
            "events": json.dumps(
                [
                    {"event.name": "gen_ai.system.message", "content": "be brief"},
                    {"event.name": "gen_ai.user.message", "content": "how warm?", "role": "user"},
                    {
                        "event.name": "gen_ai.choice",
                        "index": 0,
                        "message": {
                            "role": "assistant",
                            "content": "looking",
                            "tool_calls": [
                                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": CITY}}
                            ],
                        },
                    },
                ]
            ),
        },
        {  # Logfire, MLflow: a whole request and response
            "request_data": json.dumps(
                {
                    "model": "m",
                    "messages": [
                        {"role": "system", "content": "be brief"},
                        {"role": "user", "content": [{"type": "text", "text": "how warm?"}]},
                    ],
                }
            ),
            "response_data": json.dumps(
                {
                    "message": {
                        "role": "assistant",
                        "content": "looking",
                        "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": CITY}}],
                    }
                }
            ),
        },
        {  # Anthropic's shape of the same
            "request_data": json.dumps({"system": "be brief", "messages": [{"role": "user", "content": "how warm?"}]}),
            "response_data": json.dumps(
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": "looking"},
                        {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}},
                    ],
                }
            ),
        },
    ],
)
def test_messages_in_every_shape_have_the_same_digests(attributes: Attributes) -> None:
    work = call(CHAT | attributes)
    assert (work.prompt, work.answer, work.tool_calls) == (PROMPT, ANSWER, CALLS)


def test_messages_in_events_are_those_of_the_span() -> None:
    events = [
        RawEvent("gen_ai.system.message", AT, {"content": "be brief"}),
        RawEvent("gen_ai.user.message", AT, {"content": "how warm?"}),
        RawEvent("gen_ai.choice", AT, {"message": "looking", "finish_reason": "stop"}),
    ]
    work = call(CHAT, events=events)
    assert (work.prompt, work.answer) == (PROMPT, part("assistant", "looking"))
    details = RawEvent(
        "gen_ai.client.inference.operation.details",
        AT,
        {"gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "how warm?"}]}]},
    )
    assert call(CHAT, events=[details]).prompt == (PROMPT[1],)


def test_vercels_prompt_and_answer_stand_in_attributes_of_their_own() -> None:
    work = call(
        {
            "ai.operationId": "ai.streamText.doStream",
            "ai.model.id": "m",
            "ai.prompt.messages": json.dumps([{"role": "user", "content": [{"type": "text", "text": "how warm?"}]}]),
            "ai.response.text": "looking",
            "ai.response.toolCalls": json.dumps([{"toolCallId": "c1", "toolName": "weather", "input": CITY}]),
        }
    )
    assert work.prompt == PROMPT[1:]
    assert work.tool_calls == CALLS


def test_googles_requests_name_roles_their_own_way() -> None:
    request = {
        "model": "m",
        "config": {"system_instruction": "be brief"},
        "contents": [
            {"role": "user", "parts": [{"text": "how warm?"}]},
            {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "weather", "args": {"city": "Rome"}}}]},
            {"role": "user", "parts": [{"function_response": {"name": "weather", "response": "21"}}]},
        ],
    }
    response = {"content": {"role": "model", "parts": [{"text": "21 degrees"}]}}
    work = call(
        {"gcp.vertex.agent.llm_request": json.dumps(request), "gcp.vertex.agent.llm_response": json.dumps(response)},
        "call_llm",
    )
    assert work.prompt == (*PROMPT, part("assistant", f"weather({CITY})"), part("tool", "21"))
    assert work.answer == part("assistant", "21 degrees")


def test_a_stream_kept_in_pieces_is_one_answer() -> None:
    pieces: Attributes = {
        f"llm.output_messages.{n}.message.content": text for n, text in enumerate(("Mont", "ju", "ïc"))
    }
    assert call(CHAT | pieces).answer == part("assistant", "Montjuïc")


def test_results_of_tools_are_the_tools_whoever_is_said_to_bring_them() -> None:
    brought = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "21"}]}]
    assert call(CHAT | {"gen_ai.input.messages": json.dumps(brought)}).prompt == (part("tool", "21"),)


@pytest.mark.parametrize(
    "told", ["[" * 5000, '[{"role": 7}]', "{}", "[]", '{"messages": 7}', "[[[1]]]", '[{"content": {"a": 1}}]', "\x00"]
)
def test_messages_that_make_no_sense_never_raise(told: str) -> None:
    for name in (
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "request_data",
        "events",
        "gen_ai.prompt.0.content",
    ):
        call(CHAT | {name: told})


def test_messages_that_were_not_kept_are_unknown() -> None:
    work = call(CHAT)
    assert (work.prompt, work.answer, work.tool_calls) == (None, None, ())
