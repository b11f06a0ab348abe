"""The real clients of each dialect, served by engines of another: whole answers, streams, tools, errors."""

from typing import Any

import anthropic
import openai
import pytest
from interpreting import anthropic_client, interpreted, openai_client

from headway.wire.dialects import CHAT, COUNT_TOKENS, MESSAGES, RESPONSES
from wire import encode, stream

USAGE: dict[str, Any] = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 80},
    "completion_tokens_details": {"reasoning_tokens": 7},
}
CALLS: list[dict[str, Any]] = [
    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Bonn"}'}},
    {"id": "functions.time:1", "type": "function", "function": {"name": "time", "arguments": "{}"}},
]
COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "qwen",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "reasoning_content": "hm", "content": "Let me look.", "tool_calls": CALLS},
            "finish_reason": "tool_calls",
        }
    ],
    "usage": USAGE,
}


def chunk(reason: str | None = None, **delta: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "qwen", "choices": [choice]}


def piece(index: int, arguments: str, **first: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    function = {"arguments": arguments} | ({"name": first.pop("name")} if first else {})
    return chunk(tool_calls=[{"index": index, "function": function, **first}])


CHUNKS = stream(
    chunk(role="assistant", content=""),
    chunk(reasoning_content="h"),
    chunk(reasoning_content="m"),
    chunk(content="Let me "),
    chunk(content="look."),
    piece(0, "", id="call_1", type="function", name="weather"),
    piece(0, '{"city":'),
    piece(0, '"Bonn"}'),
    piece(1, "{}", id="functions.time:1", type="function", name="time"),
    chunk("tool_calls"),
    {**chunk(), "choices": [], "usage": USAGE},
    "[DONE]",
)
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bonn"}},
        {"type": "tool_use", "id": "toolu_2", "name": "time", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 15,
        "cache_read_input_tokens": 80,
        "cache_creation_input_tokens": 5,
        "output_tokens": 20,
    },
}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *[{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": index},
    ]


EVENTS = stream(
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "ping"},
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "sig"},
    ),
    *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Let me look."}),
    *block(
        2,
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"city":'},
        {"type": "input_json_delta", "partial_json": '"Bonn"}'},
    ),
    *block(3, {"type": "tool_use", "id": "toolu_2", "name": "time", "input": {}}),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 20},
    },
    {"type": "message_stop"},
)
WEATHER_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
ANTHROPIC_TOOLS: list[Any] = [{"name": "weather", "description": "Tells it.", "input_schema": WEATHER_SCHEMA}]
CHAT_TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": WEATHER_SCHEMA}}
]


def is_the_answer(message: anthropic.types.Message) -> None:
    thinking, text, weather, time = message.content
    assert thinking.type == "thinking"
    assert thinking.thinking == "hm"
    assert text.type == "text"
    assert text.text == "Let me look."
    assert weather.type == "tool_use"
    assert (weather.id, weather.name, weather.input) == ("call_1", "weather", {"city": "Bonn"})
    assert time.type == "tool_use"
    assert (time.name, time.input) == ("time", {})
    assert (message.stop_reason, message.model, message.id) == ("tool_use", "qwen", "msg_chatcmpl-1")
    usage = message.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (20, 80, 20)


async def say(client: Any, streams: bool, **options: Any) -> Any:  # noqa: ANN401 - of many types
    if not streams:
        return await client.messages.create(**options)
    async with client.messages.stream(**options) as events:
        return await events.get_final_message()


@pytest.mark.parametrize("streams", [False, True])
async def test_an_anthropic_client_on_a_chat_engine_takes_a_turn_with_tools(streams: bool) -> None:
    seen: list[dict[str, Any]] = []
    question: dict[str, Any] = {"role": "user", "content": "weather and time?"}
    options: dict[str, Any] = {
        "model": "qwen",
        "max_tokens": 500,
        "system": "Be brief.",
        "tools": ANTHROPIC_TOOLS,
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
    }
    answer = CHUNKS if streams else encode(COMPLETION)
    async with (
        interpreted(MESSAGES, CHAT, answer, answer, seen=seen) as url,
        anthropic_client(url) as client,
    ):
        message = await say(client, streams, messages=[question], **options)
        is_the_answer(message)
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": "fine", "is_error": call.name == "time"}
            for call in message.content
            if call.type == "tool_use"
        ]
        turns = [question, {"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
        is_the_answer(await say(client, streams, messages=turns, **options))
    assert seen[1]["messages"] == [
        {"role": "system", "content": "Be brief."},
        question,
        {"role": "assistant", "reasoning_content": "hm", "content": "Let me look.", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "call_1", "content": "fine"},
        {"role": "tool", "tool_call_id": "functions.time:1", "content": "Error: fine"},
    ]
    assert seen[1]["tools"] == CHAT_TOOLS
    assert seen[1]["max_completion_tokens"] == 500
    assert seen[1].get("stream_options") == ({"include_usage": True} if streams else None)


async def complete(client: Any, streams: bool, **options: Any) -> Any:  # noqa: ANN401 - of many types
    if not streams:
        return await client.chat.completions.create(**options)
    async with client.chat.completions.stream(stream_options={"include_usage": True}, **options) as events:
        return await events.get_final_completion()


@pytest.mark.parametrize("streams", [False, True])
async def test_a_chat_client_on_an_anthropic_engine_takes_a_turn_with_tools(streams: bool) -> None:
    seen: list[dict[str, Any]] = []
    options: dict[str, Any] = {"model": "claude", "tools": CHAT_TOOLS, "max_completion_tokens": 500}
    messages: list[Any] = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "weather?"}]
    answer = EVENTS if streams else encode(MESSAGE)
    async with interpreted(CHAT, MESSAGES, answer, answer, seen=seen) as url, openai_client(url) as client:
        completion = await complete(client, streams, messages=messages, **options)
        (choice,) = completion.choices
        said = choice.message
        assert (said.content, choice.finish_reason, completion.model) == ("Let me look.", "tool_calls", "claude")
        assert said.model_extra["reasoning_content"] == "hm"
        assert [(call.id, call.function.name, call.function.arguments) for call in said.tool_calls] == [
            ("toolu_1", "weather", '{"city":"Bonn"}' if streams else '{"city": "Bonn"}'),
            ("toolu_2", "time", "" if streams else "{}"),
        ]
        usage = completion.usage
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (100, 20, 120)
        assert usage.prompt_tokens_details.cached_tokens == 80
        turn = {
            "role": "assistant",
            "content": said.content,
            "tool_calls": [
                {"id": call.id, "type": "function", "function": call.function.model_dump(include={"name", "arguments"})}
                for call in said.tool_calls
            ],
        }
        results = [{"role": "tool", "tool_call_id": call.id, "content": "fine"} for call in said.tool_calls]
        await complete(client, streams, messages=[*messages, turn, *results], **options)
    assert seen[1]["system"] == "Be brief."
    assert seen[1]["max_tokens"] == 500
    assert seen[1]["tools"] == ANTHROPIC_TOOLS
    assert seen[1]["messages"] == [
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bonn"}},
                {"type": "tool_use", "id": "toolu_2", "name": "time", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "fine"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "fine"},
            ],
        },
    ]


async def respond(client: Any, streams: bool, **options: Any) -> Any:  # noqa: ANN401 - of many types
    if not streams:
        return await client.responses.create(**options)
    async with client.responses.stream(**options) as events:
        return await events.get_final_response()


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("engine", [CHAT, MESSAGES], ids=["chat", "messages"])
async def test_a_responses_client_on_either_engine_takes_a_turn_with_tools(streams: bool, engine: Any) -> None:  # noqa: ANN401 - a dialect
    seen: list[dict[str, Any]] = []
    options: dict[str, Any] = {
        "model": "m",
        "instructions": "Be brief.",
        "max_output_tokens": 500,
        "tools": [
            {"type": "function", "name": "weather", "parameters": WEATHER_SCHEMA, "strict": False},
            {"type": "custom", "name": "time", "description": "Tells it."},
        ],
    }
    answers = {CHAT: (CHUNKS, encode(COMPLETION)), MESSAGES: (EVENTS, encode(MESSAGE))}
    answer = answers[engine][0 if streams else 1]
    question = {"role": "user", "content": "weather?"}
    async with interpreted(RESPONSES, engine, answer, answer, seen=seen) as url, openai_client(url) as client:
        response = await respond(client, streams, input=[question], **options)
        assert response.output_text == "Let me look."
        assert (response.status, response.instructions) == ("completed", "Be brief.")
        reasoning, message, weather, time = response.output
        assert (reasoning.type, reasoning.content[0].text) == ("reasoning", "hm")
        assert (message.type, message.role) == ("message", "assistant")
        assert (weather.type, weather.name) == ("function_call", "weather")
        assert weather.arguments.replace(" ", "") == '{"city":"Bonn"}'
        assert (time.type, time.name, time.input) == ("custom_tool_call", "time", "")
        usage = response.usage
        assert (usage.input_tokens, usage.input_tokens_details.cached_tokens, usage.output_tokens) == (100, 80, 20)
        turns = [item.model_dump(exclude_none=True) for item in response.output]
        results = [
            {"type": "function_call_output", "call_id": weather.call_id, "output": "rain"},
            {"type": "custom_tool_call_output", "call_id": time.call_id, "output": "noon"},
        ]
        await respond(client, streams, input=[question, *turns, *results], **options)
    ids = ("call_1", "functions.time:1") if engine is CHAT else ("toolu_1", "toolu_2")
    assert (weather.call_id, time.call_id) == ids
    if engine is CHAT:
        assert seen[1]["messages"][-2:] == [
            {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
            {"role": "tool", "tool_call_id": "functions.time:1", "content": "noon"},
        ]
        assert seen[1]["messages"][2]["reasoning_content"] == "hm"
    else:
        assert [each["tool_use_id"] for each in seen[1]["messages"][-1]["content"]] == ["toolu_1", "toolu_2"]


async def test_tokens_are_counted_by_asking_for_one_more() -> None:
    seen: list[dict[str, Any]] = []
    async with (
        interpreted(COUNT_TOKENS, CHAT, encode(COMPLETION), seen=seen) as url,
        anthropic_client(url) as client,
    ):
        counted = await client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "hi"}])
    assert counted.input_tokens == 100
    assert seen[0]["max_completion_tokens"] == 1


async def test_what_cannot_be_translated_is_the_callers_own_error() -> None:
    async with interpreted(MESSAGES, CHAT) as url, anthropic_client(url) as client:
        tools: list[Any] = [{"type": "web_search_20250305", "name": "web_search"}]
        with pytest.raises(anthropic.BadRequestError, match=r"tools\[0\].*web_search_20250305"):
            await client.messages.create(
                model="m", max_tokens=5, messages=[{"role": "user", "content": "x"}], tools=tools
            )
    async with interpreted(CHAT, MESSAGES) as url, openai_client(url) as client:
        with pytest.raises(openai.BadRequestError, match="`n` cannot be translated"):
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], n=2)
    async with interpreted(RESPONSES, CHAT) as url, openai_client(url) as client:
        with pytest.raises(openai.BadRequestError, match="previous_response_id"):
            await client.responses.create(model="m", input="x", previous_response_id="resp_1")


async def test_an_engine_that_breaks_off_is_the_clients_own_error() -> None:
    begun = stream(chunk(content="He"), {"error": {"message": "out of memory"}})
    question: list[Any] = [{"role": "user", "content": "x"}]
    async with interpreted(MESSAGES, CHAT, begun) as url, anthropic_client(url) as client:
        with pytest.raises(anthropic.APIStatusError, match="out of memory"):
            async with client.messages.stream(model="m", max_tokens=5, messages=question) as events:
                await events.get_final_message()
    failed = stream({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    async with interpreted(CHAT, MESSAGES, failed) as url, openai_client(url) as client:
        with pytest.raises(openai.APIError, match="Overloaded"):
            async with client.chat.completions.stream(model="m", messages=question) as events:
                await events.get_final_completion()
