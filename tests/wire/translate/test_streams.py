"""Streams, interpreted: the same wherever they are cut, the same as the whole answer, one block after the other."""

import json
from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreting import CREATED, heard
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from headway.core.errors import HeadwayError
from headway.core.usage import Usage
from headway.wire.dialect import Dialect
from headway.wire.dialects import CHAT, MESSAGES, RESPONSES
from headway.wire.openai import Answer, ToolCall
from headway.wire.translate.conversation import Call, Text, Thought
from headway.wire.translate.exchange import Exchange
from headway.wire.translate.hear_anthropic import AnthropicHearing
from headway.wire.translate.hear_chat import ChatHearing
from headway.wire.translate.ids import plain_id
from headway.wire.translate.said import Hearing, Reply
from wire import JSON, cuts, damaged, data_of, encode, stream

ASKED: dict[Dialect, dict[str, Any]] = {
    CHAT: {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    MESSAGES: {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], "stream": True},
    RESPONSES: {"model": "m", "input": "x", "stream": True},
}


def delta(reason: str | None = None, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {"id": "c", "model": "q", "choices": [{"index": 0, "delta": fields, "finish_reason": reason}]}


def piece(index: int, arguments: str, call_id: str | None = None) -> dict[str, Any]:
    function: dict[str, Any] = {"arguments": arguments} | ({} if call_id is None else {"name": f"f_{call_id}"})
    return delta(tool_calls=[{"index": index, "id": call_id, "function": function}])


CHUNKS: list[dict[str, Any]] = [
    delta(role="assistant", content=""),
    delta(reasoning_content="hm"),
    delta(content="He"),
    delta(content="llo"),
    piece(0, "", "a"),
    piece(0, '{"x":'),
    piece(0, "1}"),
    piece(1, "{}", "b"),
    delta("tool_calls"),
    {"id": "c", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}},
]
CHAT_SENT = stream(*CHUNKS, "[DONE]")
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "msg_c", "model": "q", "usage": {"input_tokens": 9}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "zzz"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "Hello"}},
    {"type": "content_block_stop", "index": 2},
    {"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "a", "name": "f_a"}},
    {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": '{"x":1}'}},
    {"type": "content_block_stop", "index": 3},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]
ANTHROPIC_SENT = stream(*EVENTS)
PAIRS = [
    pytest.param(MESSAGES, CHAT, CHAT_SENT, id="messages on chat"),
    pytest.param(RESPONSES, CHAT, CHAT_SENT, id="responses on chat"),
    pytest.param(CHAT, MESSAGES, ANTHROPIC_SENT, id="chat on messages"),
    pytest.param(RESPONSES, MESSAGES, ANTHROPIC_SENT, id="responses on messages"),
]


def exchange(caller: Dialect, engine: Dialect) -> Exchange:
    return Exchange(caller, engine, encode(ASKED[caller]), created=CREATED)


def reply(hearing: Hearing, *events: dict[str, Any]) -> Reply:
    """What was heard in all."""
    said = Reply()
    for event in events:
        for each in hearing.feed(encode(event)):
            said.hear(each)
    for each in hearing.end():
        said.hear(each)
    return said.finish()


@pytest.mark.parametrize(("caller", "engine", "sent"), PAIRS)
@settings(max_examples=50)
@given(data=st.data())
def test_cut_anywhere_it_says_the_same(caller: Dialect, engine: Dialect, sent: bytes, data: st.DataObject) -> None:
    assert heard(exchange(caller, engine), data.draw(cuts(sent))) == heard(exchange(caller, engine), [sent])


@pytest.mark.parametrize(("caller", "engine", "sent"), PAIRS)
def test_callers_see_what_the_engine_said_and_that_it_ended(caller: Dialect, engine: Dialect, sent: bytes) -> None:
    followed = caller.follow(1000)
    told = heard(exchange(caller, engine), [sent])
    for data in data_of(told):
        followed.feed(data, 1.0)
    answer = followed.answer()
    assert answer.content == "Hello"
    assert (answer.tool_calls[0].id, answer.tool_calls[0].name) == ("a", "f_a")
    assert json.loads(answer.tool_calls[0].arguments) == {"x": 1}
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (9, 4)
    assert followed.done
    assert caller.ended(told)


@pytest.mark.parametrize(("caller", "engine", "sent"), PAIRS)
def test_a_stream_is_ended_once_and_as_soon_as_the_engine_says_so(
    caller: Dialect, engine: Dialect, sent: bytes
) -> None:
    interpreter = exchange(caller, engine).interpreter()
    told = b"".join([interpreter.feed(data) for data in data_of(sent)])
    assert caller.ended(told)
    assert interpreter.end() == b""
    assert interpreter.feed(data_of(sent)[-1]) == b""


def test_a_chat_that_ends_without_its_mark_is_ended_with_its_response() -> None:
    told = heard(exchange(MESSAGES, CHAT), [stream(*CHUNKS)])
    assert MESSAGES.ended(told)


def test_an_answer_without_a_word_is_an_answer() -> None:
    for caller in (MESSAGES, RESPONSES):
        told = heard(exchange(caller, CHAT), [stream({"id": "", "choices": []}, "[DONE]")])
        assert caller.ended(told)
        assert caller.follow(9).feed(data_of(told)[0], 1.0) is False


def test_a_notice_before_the_answer_is_not_its_beginning() -> None:
    notice: dict[str, Any] = {"id": "", "model": "", "choices": [], "prompt_filter_results": []}
    assert reply(ChatHearing(), notice, *CHUNKS).id == "c"


def test_a_chat_client_that_did_not_ask_is_not_told_the_usage() -> None:
    body = {name: value for name, value in ASKED[CHAT].items() if name != "stream_options"}
    plain = Exchange(CHAT, MESSAGES, encode(body), created=CREATED)
    assert b'"usage"' not in heard(plain, [ANTHROPIC_SENT])


EVENT_TYPES: dict[Dialect, TypeAdapter[Any]] = {
    CHAT: TypeAdapter(ChatCompletionChunk),
    MESSAGES: TypeAdapter(RawMessageStreamEvent),
    RESPONSES: TypeAdapter(ResponseStreamEvent),
}


@pytest.mark.parametrize(("caller", "engine", "sent"), PAIRS)
def test_every_event_is_what_the_clients_own_types_say(caller: Dialect, engine: Dialect, sent: bytes) -> None:
    told = data_of(heard(exchange(caller, engine), [sent]))
    for data in told:
        if data != b"[DONE]":
            EVENT_TYPES[caller].validate_json(data)
    assert len(told) >= 8
    if caller is RESPONSES:
        assert [json.loads(data)["sequence_number"] for data in told] == list(range(len(told)))


def test_whole_answers_are_what_the_clients_own_types_say() -> None:
    message = encode(EVENTS[0]["message"] | {"content": CONTENT, "stop_reason": "tool_use"})
    chat = encode(WHOLE_CHAT)
    ChatCompletion.model_validate_json(exchange(CHAT, MESSAGES).answer(message))
    Message.model_validate_json(exchange(MESSAGES, CHAT).answer(chat))
    for engine, answer in ((CHAT, chat), (MESSAGES, message)):
        told = exchange(RESPONSES, engine).answer(answer)
        assert Response.model_validate_json(told).output_text == "Hello"


def test_a_call_is_recorded_as_the_caller_will_repeat_it() -> None:
    given_answer = Answer(tool_calls=(ToolCall("functions.f:0", "f", "{}"), ToolCall("t2", "free", '{"input":"x"}')))
    messages = exchange(MESSAGES, CHAT).as_told(given_answer)
    assert [call.id for call in messages.tool_calls] == [plain_id("functions.f:0"), "t2"]
    body = ASKED[RESPONSES] | {"tools": [{"type": "custom", "name": "free"}]}
    responses = Exchange(RESPONSES, CHAT, encode(body), created=CREATED).as_told(given_answer)
    assert responses.tool_calls == (ToolCall("functions.f:0", "f", "{}"), ToolCall("t2", "free", "x"))
    spelled = Answer(tool_calls=(ToolCall(plain_id("functions.f:0"), "f", "{}"),))
    assert exchange(CHAT, MESSAGES).as_told(spelled).tool_calls[0].id == "functions.f:0"


CALLS = [Call("a", "f_a", '{"x":1}'), Call("b", "f_b", '{"y":2}')]


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, '{"x":1}', "a"), piece(1, '{"y":2}', "b")],
        [piece(0, '{"x"', "a"), piece(1, '{"y"', "b"), piece(0, ":1}"), piece(1, ":2}")],
        [piece(0, "", "a"), piece(1, '{"y":2}', "b"), piece(0, '{"x":1}')],
        [piece(0, '{"x":1}', "a"), piece(0, '{"y":2}', "b")],
        [piece(7, '{"x":1', "a"), piece(7, "}"), piece(9, '{"y":', "b"), piece(9, "2}")],
    ],
    ids=["in order", "mixed", "begun and left", "both numbered 0", "gaps"],
)
def test_calls_come_one_after_the_other_however_the_engine_mixes_them(pieces: list[dict[str, Any]]) -> None:
    assert reply(ChatHearing(), delta(content="x"), *pieces, delta("tool_calls")).parts == [Text("x"), *CALLS]
    told = heard(exchange(MESSAGES, CHAT), [stream(*pieces, delta("tool_calls"), "[DONE]")])
    shape = [
        (event["type"].removeprefix("content_block_"), event["index"])
        for event in map(json.loads, data_of(told))
        if "index" in event
    ]
    deltas = [each for each in shape if each[0] != "delta"]
    assert deltas == [("start", 0), ("stop", 0), ("start", 1), ("stop", 1)]
    assert shape.index(("stop", 0)) < min(at for at, each in enumerate(shape) if each[1] == 1)


def test_the_second_call_is_not_held_back_once_the_first_is_whole() -> None:
    hearing = ChatHearing()
    hearing.feed(encode(piece(0, '{"x":1}', "a")))
    assert len(hearing.feed(encode(piece(1, '{"y"', "b")))) == 2


def test_words_between_calls_keep_their_place() -> None:
    said = reply(ChatHearing(), piece(0, "{}", "a"), delta(content="so"), piece(1, "{}", "b"), delta("stop"))
    assert said.parts == [Call("a", "f_a", "{}"), Text("so"), Call("b", "f_b", "{}")]
    assert said.reason == "tools"


def test_a_call_without_an_id_gets_one_that_stays() -> None:
    nameless = delta(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": "{}"}}])
    assert reply(ChatHearing(), nameless, delta("tool_calls")).parts == [Call("call_c_0", "f", "{}")]


CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "redacted_thinking", "data": "zzz"},
    {"type": "text", "text": "Hello"},
    {"type": "tool_use", "id": "a", "name": "f_a", "input": {"x": 1}},
]
WHOLE_CHAT: dict[str, Any] = {
    "id": "c",
    "model": "q",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "content": "Hello",
                "reasoning_content": "hm",
                "tool_calls": [
                    {"id": "a", "function": {"name": "f_a", "arguments": '{"x":1}'}},
                    {"id": "b", "function": {"name": "f_b", "arguments": "{}"}},
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 4},
}


def test_a_stream_says_what_the_whole_answer_does() -> None:
    whole = Reply()
    for event in ChatHearing().whole(encode(WHOLE_CHAT)):
        whole.hear(event)
    streamed = reply(ChatHearing(), *CHUNKS)
    whole.finish()
    assert streamed.parts == whole.parts
    assert streamed.parts == [Thought("hm"), Text("Hello"), Call("a", "f_a", '{"x":1}'), Call("b", "f_b", "{}")]
    assert (streamed.id, streamed.model, streamed.reason, streamed.usage) == (
        whole.id,
        whole.model,
        whole.reason,
        whole.usage,
    )
    assert whole.usage == Usage(input_tokens=9, output_tokens=4)


def test_thoughts_of_anthropics_api_keep_their_signatures() -> None:
    assert reply(AnthropicHearing(), *EVENTS).parts == [
        Thought("hm", "s"),
        Thought(hidden="zzz"),
        Text("Hello"),
        Call("a", "f_a", '{"x":1}'),
    ]


@pytest.mark.parametrize(
    ("chat", "stop", "anthropic", "responses"),
    [
        ("stop", None, ("end_turn", None), ("completed", None)),
        ("stop", "END", ("stop_sequence", "END"), ("completed", None)),
        ("length", None, ("max_tokens", None), ("incomplete", {"reason": "max_output_tokens"})),
        ("content_filter", None, ("refusal", None), ("incomplete", {"reason": "content_filter"})),
        ("tool_calls", None, ("tool_use", None), ("completed", None)),
        ("something_new", None, ("end_turn", None), ("completed", None)),
    ],
)
def test_why_it_ended(chat: str, stop: str | None, anthropic: tuple[Any, Any], responses: tuple[Any, Any]) -> None:
    choice: dict[str, Any] = {"index": 0, "delta": {"content": "x"}, "finish_reason": chat, "stop_reason": stop}
    sent = stream({"id": "c", "choices": [choice]}, "[DONE]")
    messages = [json.loads(data) for data in data_of(heard(exchange(MESSAGES, CHAT), [sent]))]
    told = messages[-2]["delta"]
    assert (told["stop_reason"], told["stop_sequence"]) == anthropic
    last = json.loads(data_of(heard(exchange(RESPONSES, CHAT), [sent]))[-1])["response"]
    assert (last["status"], last["incomplete_details"]) == responses
    assert last["usage"] is None


@pytest.mark.parametrize(
    ("anthropic", "chat"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("tool_use", "tool_calls"),
        ("pause_turn", "stop"),
    ],
)
def test_why_it_ended_for_chats(anthropic: str, chat: str) -> None:
    sent = stream(EVENTS[0], {"type": "message_delta", "delta": {"stop_reason": anthropic}}, EVENTS[-1])
    chunks = [json.loads(data) for data in data_of(heard(exchange(CHAT, MESSAGES), [sent])) if data != b"[DONE]"]
    assert [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]][-1] == chat


@pytest.mark.parametrize(("caller", "engine", "sent"), PAIRS)
@settings(max_examples=50)
@given(data=st.data())
def test_any_event_is_interpreted_or_the_engines_fault(
    caller: Dialect, engine: Dialect, sent: bytes, data: st.DataObject
) -> None:
    interpreter = exchange(caller, engine).interpreter()
    events = CHUNKS if engine is CHAT else EVENTS
    for event in data.draw(st.lists(st.sampled_from(events).flatmap(damaged) | JSON, max_size=5)):
        interpreter.feed(encode(event))
    interpreter.feed(data_of(sent)[0])
    interpreter.end()


@pytest.mark.parametrize(("caller", "engine", "sent"), PAIRS)
@settings(max_examples=50)
@given(data=st.data())
def test_any_whole_answer_is_told_or_the_engines_fault(
    caller: Dialect, engine: Dialect, sent: bytes, data: st.DataObject
) -> None:
    del sent
    body = WHOLE_CHAT if engine is CHAT else EVENTS[0]["message"] | {"content": [EVENTS[10]["content_block"]]}
    try:
        told = exchange(caller, engine).answer(encode(data.draw(JSON | damaged(body))))
    except HeadwayError:
        return
    caller.answer(told)
    status, refused = exchange(caller, engine).refusal(
        400, encode(data.draw(JSON | damaged({"error": {"message": "x"}})))
    )
    assert status == 400
    assert json.loads(refused)["error"]["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":"no such model","type":"x"}}', "no such model"),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', "Overloaded"),
        (b'{"error":"bad"}', "bad"),
        (b'{"message":"bad"}', "bad"),
        (b'{"detail":"bad"}', "bad"),
        (b"<html>", "The engine answered with status 529 and no message."),
    ],
)
def test_an_engines_refusal_is_told_in_the_callers_shape(body: bytes, message: str) -> None:
    status, told = exchange(CHAT, MESSAGES).refusal(529, body)
    assert (status, json.loads(told)["error"]["message"]) == (503, message)
    status, told = exchange(MESSAGES, CHAT).refusal(529, body)
    assert (status, json.loads(told)["error"]["type"]) == (529, "overloaded_error")
