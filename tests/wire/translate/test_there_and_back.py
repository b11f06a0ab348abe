"""Roles, texts, ids and arguments survive translation there and back; any JSON is translated or refused."""

import json
import re
from base64 import b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreting import CREATED, checked
from msgspec import Raw

from headway.core.errors import BadInputError
from headway.wire.dialect import Dialect
from headway.wire.dialects import CHAT, MESSAGES, RESPONSES
from headway.wire.translate import from_anthropic, from_chat, to_anthropic, to_chat
from headway.wire.translate.arguments import as_object, as_text
from headway.wire.translate.conversation import (
    Call,
    Choice,
    Conversation,
    File,
    Form,
    Image,
    Message,
    Part,
    Result,
    Text,
    Thought,
    Tool,
)
from headway.wire.translate.exchange import Exchange, translates
from headway.wire.translate.ids import original_id, plain_id
from wire import JSON, damaged, encode

ODD = 'aé🙂 \n"\\{}'
WORDS = st.text(ODD, min_size=1, max_size=6).filter(lambda text: bool(text.strip()))
NAME = st.text("abYZ09_-", min_size=1, max_size=6)
ID = NAME | st.text("a:./ é", min_size=1, max_size=6)
VALUE = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.just(1.5) | st.text(ODD, max_size=4)
ARGUMENTS = st.dictionaries(st.text(ODD, max_size=2), VALUE | st.lists(VALUE, max_size=2), max_size=2).map(json.dumps)
BASE64 = st.binary(max_size=9).map(lambda data: b64encode(data).decode())
TEXT = WORDS.map(Text)
IMAGE = st.builds(Image, url=NAME.map("https://example.org/{}.png".format)) | st.builds(
    Image, data=BASE64, media_type=st.sampled_from(["image/png", "image/webp"])
)
FILE = st.builds(File, data=BASE64, media_type=st.just("application/pdf"), name=NAME)
CALL = st.builds(Call, ID, NAME, ARGUMENTS | st.just("") | st.just("{not json"))
RESULT = st.builds(Result, ID, st.lists(TEXT, max_size=2).map(tuple))
USER = st.lists(TEXT | IMAGE | FILE, min_size=1, max_size=3).map(lambda parts: Message("user", tuple(parts)))
ASSISTANT = st.tuples(st.lists(TEXT, max_size=1), st.lists(CALL, max_size=3)).map(
    lambda both: Message("assistant", (*both[0], *both[1]))
)
RESULTS = st.lists(RESULT, min_size=1, max_size=3).map(lambda parts: Message("user", tuple(parts)))
TURNS = st.lists(USER | ASSISTANT.filter(lambda message: bool(message.parts)) | RESULTS, min_size=1, max_size=5)
TOOL = st.builds(
    Tool, NAME, st.none() | WORDS, st.just(Raw(b'{"type":"object","properties":{"a":{"type":"string"}}}')), st.none()
)
CHOICE = st.builds(Choice, st.sampled_from(["auto", "none", "any"])) | st.builds(Choice, st.just("one"), NAME)


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    system = draw(st.lists(TEXT, max_size=2))
    tools = draw(st.lists(TOOL, max_size=2))
    return Conversation(
        model=draw(NAME),
        messages=(*([Message("system", tuple(system))] if system else []), *draw(TURNS)),
        stream=draw(st.booleans()),
        tools=tuple(tools),
        choice=draw(st.none() | CHOICE) if tools else None,
        parallel=draw(st.sampled_from([None, False])) if tools else None,
        max_tokens=draw(st.integers(1, 10_000)),
        temperature=draw(st.none() | st.floats(0, 1)),
        top_p=draw(st.none() | st.floats(0, 1)),
        stop=tuple(draw(st.lists(WORDS, max_size=3))),
        form=draw(st.none() | st.just(Form("f", Raw(b'{"type":"object"}')))),
        effort=draw(st.sampled_from([None, "low", "medium", "high"])),
        user=draw(st.none() | NAME),
    )


def flat(asked: Conversation) -> list[tuple[str, Part]]:
    """Who said what, whatever turns it was cut into; arguments as values, for white space and order are not theirs."""
    return [(message.role, _plain(part)) for message in asked.messages for part in message.parts]


def _plain(part: Part) -> Any:  # noqa: ANN401 - a part or what it is worth
    match part:
        case Call():
            return part.id, part.name, _value(part.arguments)
        case Result():
            return part.call_id, "\n".join([each.text for each in part.parts if isinstance(each, Text)]), part.failed
        case _:
            return part


def _value(arguments: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def options(asked: Conversation) -> list[Any]:
    return [
        asked.model,
        asked.stream,
        [(tool.name, tool.description, bytes(tool.schema)) for tool in asked.tools],
        None if asked.choice is None and asked.parallel is None else asked.choice or Choice("auto"),
        False if asked.choice is None or (asked.choice.mode != "none" and asked.parallel is False) else None,
        (asked.max_tokens, asked.temperature, asked.top_p, asked.stop, asked.effort, asked.user),
        None if asked.form is None else bytes(asked.form.schema),
    ]


@settings(max_examples=40)
@given(conversations())
def test_what_a_chat_is_told_is_read_as_it_was(asked: Conversation) -> None:
    back = from_chat.read(to_chat.write(asked, []), [])
    assert flat(back) == flat(asked)
    assert (back.choice, back.parallel) == (asked.choice, asked.parallel)
    assert options(back) == options(asked)


@settings(max_examples=40)
@given(conversations())
def test_what_anthropics_api_is_told_is_read_as_it_was(asked: Conversation) -> None:
    back = from_anthropic.read(to_anthropic.write(asked, []), [])
    assert flat(back) == flat(asked)
    assert options(back) == options(asked)


@settings(max_examples=40)
@given(conversations())
def test_from_one_to_the_other_and_back(asked: Conversation) -> None:
    chat = to_chat.write(asked, [])
    there = Exchange(CHAT, MESSAGES, chat, created=CREATED)
    checked(there, MESSAGES)
    back = Exchange(MESSAGES, CHAT, there.body, created=CREATED)
    checked(back, CHAT)
    assert flat(from_chat.read(back.body, [])) == flat(asked)


@given(ID)
def test_ids_are_plain_and_can_be_undone(call_id: str) -> None:
    plain = plain_id(call_id)
    assert re.fullmatch("[A-Za-z0-9_-]+", plain)
    assert original_id(plain) == call_id
    assert plain_id(call_id) == plain


@given(NAME | st.text(max_size=12))
def test_ids_that_we_did_not_spell_are_left_alone(call_id: str) -> None:
    if not call_id.startswith("hw_"):
        assert original_id(call_id) == call_id
    assert isinstance(original_id(f"hw_{call_id}"), str)


@given(ARGUMENTS | st.text(max_size=20))
def test_arguments_are_an_object_there_and_what_they_were_back(arguments: str) -> None:
    given_object = as_object(arguments)
    assert isinstance(json.loads(bytes(given_object)), dict)
    if arguments.strip():
        assert as_text(given_object) == arguments
    else:
        assert as_text(given_object) == "{}"


SEEDS: dict[str, tuple[Dialect, dict[str, Any]]] = {
    "anthropic": (
        MESSAGES,
        {
            "model": "m",
            "max_tokens": 5,
            "system": [{"type": "text", "text": "s"}],
            "messages": [
                {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]},
            ],
            "tools": [{"name": "f", "input_schema": {}}],
            "tool_choice": {"type": "tool", "name": "f"},
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "output_config": {"format": {"type": "json_schema", "schema": {}}},
            "metadata": {"user_id": "u"},
        },
    ),
    "chat": (
        CHAT,
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:;base64,AA=="}}]},
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{"}}],
                },
                {"role": "tool", "tool_call_id": "t", "content": "x"},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
            "stop": "x",
        },
    ),
    "responses": (
        RESPONSES,
        {
            "model": "m",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
                {"type": "reasoning", "content": [{"text": "hm"}]},
                {"type": "function_call", "call_id": "t", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "t", "output": "x"},
            ],
            "tools": [{"type": "custom", "name": "f"}],
            "text": {"format": {"type": "json_object"}},
            "reasoning": {"effort": "low"},
        },
    ),
}


@pytest.mark.parametrize("engine", [CHAT, MESSAGES], ids=["to chat", "to messages"])
@pytest.mark.parametrize("seed", SEEDS)
@settings(max_examples=60)
@given(data=st.data())
def test_any_json_is_translated_or_refused(engine: Dialect, seed: str, data: st.DataObject) -> None:
    caller, body = SEEDS[seed]
    if not translates(caller, engine):
        return
    try:
        exchange = Exchange(caller, engine, encode(data.draw(JSON | damaged(body))), created=CREATED)
    except BadInputError as error:
        assert error.fix  # noqa: PT017 - either is right
    else:
        assert isinstance(json.loads(exchange.body), dict)


@settings(max_examples=40)
@given(conversations(), st.sampled_from([CHAT, MESSAGES]))
def test_what_engines_are_asked_their_own_types_know(asked: Conversation, engine: Dialect) -> None:
    notes: list[str] = []
    chat = msgspec.structs.replace(asked, messages=(*asked.messages, Message("assistant", (Thought("hm"), Text("x")))))
    body = to_chat.write(chat, notes)
    assert notes[-1].startswith("The last message is the assistant's")
    if engine is MESSAGES:
        checked(Exchange(CHAT, MESSAGES, body, created=CREATED), MESSAGES)
