"""Groups of tools for engines that know none: asked under longer names, called back by the two that they have."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreting import CREATED
from openai.types.responses import Response, ResponseFunctionToolCall
from openai.types.responses.response_custom_tool_call import ResponseCustomToolCall

from headway.wire.dialects import CHAT, MESSAGES, RESPONSES
from headway.wire.openai import Answer, ToolCall
from headway.wire.translate.exchange import Exchange
from headway.wire.translate.namespaces import long_name
from wire import encode

TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "search", "description": "Searches the web.", "parameters": {"type": "object"}},
    {
        "type": "namespace",
        "name": "agents",
        "description": "Other agents.",
        "tools": [
            {"type": "function", "name": "search", "description": "Finds one.", "parameters": {"type": "object"}},
            {"type": "custom", "name": "tell", "description": "Tells it something."},
        ],
    },
]


def exchange(engine: Any = CHAT, **fields: Any) -> Exchange:  # noqa: ANN401 - a dialect, and any JSON
    body = {"model": "m", "input": "hi", "tools": TOOLS, **fields}
    return Exchange(RESPONSES, engine, encode(body), created=CREATED)


def completion(*calls: tuple[str, str]) -> bytes:
    tools = [
        {"id": f"t{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": tools}
    return encode(
        {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    )


def test_the_engine_is_asked_under_longer_names() -> None:
    asked = json.loads(exchange().body)
    functions = [tool["function"] for tool in asked["tools"]]
    assert [function["name"] for function in functions] == ["search", "agents__search", "agents__tell"]
    assert [function["description"] for function in functions] == [
        "Searches the web.",
        "Finds one.\n\nOf all tools whose names begin with agents__: Other agents.",
        "Tells it something.",
    ]
    tools = json.loads(exchange(MESSAGES).body)["tools"]
    assert [tool["name"] for tool in tools] == ["search", "agents__search", "agents__tell"]


def test_the_caller_is_told_its_own_tools() -> None:
    calls = (("search", "{}"), ("agents__search", '{"a":1}'), ("agents__tell", '{"input":"hush"}'))
    told = Response.model_validate_json(exchange().answer(completion(*calls)))
    plain, grouped, free = told.output
    assert isinstance(plain, ResponseFunctionToolCall)
    assert (plain.name, plain.namespace) == ("search", None)
    assert isinstance(grouped, ResponseFunctionToolCall)
    assert (grouped.namespace, grouped.name, grouped.arguments) == ("agents", "search", '{"a":1}')
    assert isinstance(free, ResponseCustomToolCall)
    assert (free.namespace, free.name, free.input) == ("agents", "tell", "hush")


def test_a_stream_tells_them_too() -> None:
    interpreter = exchange(stream=True).interpreter()
    call = {"index": 0, "id": "t", "type": "function", "function": {"name": "agents__search", "arguments": "{}"}}
    told = interpreter.feed(encode({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))
    told += interpreter.feed(encode({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}))
    told += interpreter.feed(b"[DONE]")
    events = [json.loads(line[6:]) for line in told.splitlines() if line.startswith(b"data: ")]
    items = [event["item"] for event in events if "item" in event]
    assert [(item["type"], item["namespace"], item["name"]) for item in items] == [
        ("function_call", "agents", "search")
    ] * 2
    assert b"agents__search" not in told


def test_what_was_called_before_is_said_under_the_same_names() -> None:
    history = [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "t1", "namespace": "agents", "name": "search", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "t2", "namespace": "agents", "name": "tell", "input": "x"},
        {"type": "function_call", "call_id": "t3", "namespace": "gone", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "t4", "name": "search", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "t1", "output": "x"},
    ]
    said = json.loads(exchange(input=history).body)["messages"][1]["tool_calls"]
    assert [call["function"]["name"] for call in said] == ["agents__search", "agents__tell", "gone__f", "search"]


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ({"type": "function", "name": "search"}, "search"),
        ({"type": "custom", "name": "tell"}, "agents__tell"),
        ({"type": "function", "name": "search", "namespace": "agents"}, "agents__search"),
        ({"type": "function", "name": "nonesuch"}, "nonesuch"),
    ],
)
def test_the_one_tool_that_is_to_be_called(choice: dict[str, str], name: str) -> None:
    assert json.loads(exchange(tool_choice=choice).body)["tool_choice"]["function"]["name"] == name


def test_a_call_is_recorded_as_the_caller_will_repeat_it() -> None:
    answer = Answer(tool_calls=(ToolCall("t", "agents__search", "{}"), ToolCall("u", "agents__tell", '{"input":"x"}')))
    assert exchange().as_told(answer).tool_calls == (ToolCall("t", "search", "{}"), ToolCall("u", "tell", "x"))


names = st.text("abz_", min_size=1, max_size=40)


@given(
    st.dictionaries(names, st.lists(names, min_size=1, max_size=4, unique=True), max_size=4), st.sets(names, max_size=4)
)
def test_no_two_tools_have_one_name_and_none_is_too_long(groups: dict[str, list[str]], plain: set[str]) -> None:
    tools: list[dict[str, Any]] = [{"type": "function", "name": name} for name in sorted(plain)]
    tools += [
        {
            "type": "namespace",
            "name": group,
            "description": "",
            "tools": [{"type": "function", "name": name} for name in within],
        }
        for group, within in groups.items()
    ]
    asked = exchange(tools=tools)
    flat = [tool["function"]["name"] for tool in json.loads(asked.body).get("tools", ())]
    assert len(set(flat)) == len(flat) == len(plain) + sum(map(len, groups.values()))
    assert all(len(name) <= 64 for name in flat if name not in plain)
    told = Response.model_validate_json(asked.answer(completion(*[(name, "{}") for name in flat])))
    back = [(item.namespace, item.name) for item in told.output if isinstance(item, ResponseFunctionToolCall)]
    assert back == [(None, name) for name in sorted(plain)] + [
        (g, name) for g, within in groups.items() for name in within
    ]


def test_names_that_are_too_long_are_cut_and_stay_apart() -> None:
    one, other = (long_name("group" * 12, f"tool{number}") for number in (1, 2))
    assert len(one) == len(other) == 64
    assert one != other
    assert one == long_name("group" * 12, "tool1")
