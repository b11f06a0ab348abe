"""Expected values are read by hand from the logs: when each call ended, how long it took, what it used."""

import json

from claims import calls_of, claimed, extent, files_of, length, tools_of
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import damaged, document, read, sample

from headway.core.span import HumanWait
from headway.trace.sources.document import Document
from headway.trace.sources.openhands.logs import OpenHandsLlm
from headway.trace.sources.skips import Skips

SYSTEM = {"role": "system", "content": "Help."}
USER = {"role": "user", "content": "What is here?"}
CALLED = {
    "role": "assistant",
    "content": "Look",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "a.txt"}
ANSWER = {"role": "assistant", "content": "A file."}
AGAIN = {"role": "user", "content": "And now?"}


def _log(end: float, seconds: float, prompt: list[object], said: object, **fields: object) -> dict[str, object]:
    response = {
        "id": f"chatcmpl-{end}-{said}",
        "model": "gpt-5",
        "choices": [{"message": said, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60}},
    }
    log: dict[str, object] = {"messages": prompt, "response": response, "cost": 0.0005}
    return log | {"timestamp": 1_767_607_200 + end, "latency_sec": seconds} | fields


TALK = [
    _log(3, 2, [SYSTEM, USER], CALLED),
    _log(6, 2, [SYSTEM, USER, CALLED, RESULT], ANSWER),
    _log(31, 1, [SYSTEM, USER, CALLED, RESULT, ANSWER, AGAIN], ANSWER),
]


def _files(*logs: object, folder: str = "logs") -> list[Document]:
    return [document(json.dumps(log).encode(), f"{folder}/gpt-5-{number}.json") for number, log in enumerate(logs)]


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(OpenHandsLlm()) == files_of("openhands_llm_logs")


def test_a_folder_of_growing_prompts_is_one_task() -> None:
    paths = sorted(sample("traces/openhands_llm_logs").glob("*.json"))
    (piece,), skips = read(OpenHandsLlm(), *[document(path.read_bytes(), str(path)) for path in paths])
    calls, tools = calls_of(piece.spans), tools_of(piece.spans)
    assert not skips.all()
    assert piece.title == "Hello! Can you create a new Python file named hello.py that prints 'Hello, Worl…"
    assert [length(span) for span, _ in calls] == [4.6587, 3.1146, 3.4473, 3.3175, 3.8624, 5.6065]
    assert [call.usage.input_tokens for _, call in calls] == [4812, 5002, 6123, 6277, 6485, 6729]
    assert [call.usage.output_tokens for _, call in calls] == [146, 95, 120, 131, 113, 199]
    assert [call.cost for _, call in calls] == [16626, 16431, 20169, 20796, 21150, 23172]
    assert [(use.name, length(span)) for span, use in tools] == [
        ("str_replace_editor", 0.0031),
        ("terminal", 0.6845),
        ("str_replace_editor", 0.0048),
        ("str_replace_editor", 0.0093),
        ("terminal", 0.6852),
    ]
    assert all(use.inferred and use.issued_by == call[0].id for call, (_, use) in zip(calls, tools, strict=False))
    assert extent(piece) == 25.3939
    assert calls[1][1].prompt is not None
    assert calls[0][1].answer == calls[1][1].prompt[2]


def test_order_of_files_does_not_matter() -> None:
    files = _files(*TALK)
    assert read(OpenHandsLlm(), *files)[0] == read(OpenHandsLlm(), *reversed(files))[0]


def test_a_new_message_of_the_user_is_a_new_task() -> None:
    first, second = read(OpenHandsLlm(), *_files(*TALK))[0]
    ((tool, use),) = tools_of(first.spans)
    (wait,) = [span for span in second.spans if isinstance(span.work, HumanWait)]
    assert (first.title, second.title) == ("What is here?", "And now?")
    assert first.spans[0].session == second.spans[0].session
    assert (use.name, length(tool), length(wait), wait.parent) == ("terminal", 1.0, 24.0, None)
    assert [call.usage.cache_read for _, call in calls_of(first.spans)] == [60, 60]


def test_the_same_question_asked_twice_is_two_conversations() -> None:
    later = [_log(103, 2, [SYSTEM, USER], CALLED), _log(106, 2, [SYSTEM, USER, CALLED, RESULT], ANSWER)]
    pieces, _ = read(OpenHandsLlm(), *_files(*TALK[:2], *later))
    assert [len(calls_of(piece.spans)) for piece in pieces] == [2, 2]
    assert pieces[0].task != pieces[1].task


def test_a_condenser_in_between_works_for_the_conversation() -> None:
    condenser = _log(4.5, 1, [{"role": "user", "content": "Shorten this"}], {"role": "assistant", "content": "Short"})
    (piece,), _ = read(OpenHandsLlm(), *_files(*TALK[:2], condenser))
    assert [round(span.start - 1_767_607_200, 3) for span, _ in calls_of(piece.spans)] == [1.0, 3.5, 4.0]


def test_a_rewritten_history_goes_on() -> None:
    summary = {"role": "assistant", "content": "So far: nothing."}
    shorter = _log(9, 2, [SYSTEM, USER, summary], ANSWER)
    (piece,), _ = read(OpenHandsLlm(), *_files(*TALK[:2], shorter))
    assert len(calls_of(piece.spans)) == 3


def test_two_folders_are_two_conversations() -> None:
    pieces, _ = read(OpenHandsLlm(), *_files(TALK[0], folder="a"), *_files(*TALK[:2], folder="b"))
    assert [len(calls_of(piece.spans)) for piece in pieces] == [1, 2]


def test_a_failed_call_is_named_by_its_file() -> None:
    failed: dict[str, object] = {
        "messages": [SYSTEM, USER],
        "error": {"type": "RateLimitError", "message": "429"},
        "timestamp": None,
        "latency_sec": 1.5,
        "cost": 0.0,
    }
    (piece,), _ = read(
        OpenHandsLlm(), document(json.dumps(failed).encode(), "x/litellm_proxy__m-1-1767607203.500-ab12-error.json")
    )
    ((span, call),) = calls_of(piece.spans)
    assert (span.end, length(span), span.error) == (1_767_607_203.5, 1.5, "RateLimitError")
    assert (call.model, call.cost, call.usage.input_tokens) == ("litellm_proxy/m-1", None, None)


def test_a_log_without_any_time_is_counted() -> None:
    pieces, skips = read(OpenHandsLlm(), document(json.dumps(TALK[0] | {"timestamp": None}).encode(), "x.json"))
    assert pieces == []
    assert [skip.reason for skip in skips.all()] == ["a log without the time of its call"]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_damage_raises(data: st.DataObject) -> None:
    originals = [json.dumps(log).encode() for log in TALK]
    files = [document(data.draw(damaged(originals)), "a.json"), document(originals[1], "b.json")]
    OpenHandsLlm().claims(files[0].sample())
    for piece in OpenHandsLlm().read(files, Skips()):
        assert {span.task for span in piece.spans} == {piece.task}


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_no_damage_to_real_files_raises(data: st.DataObject) -> None:
    paths = sorted(sample("traces/openhands_llm_logs").glob("*.json"))[:2]
    files = [document(data.draw(damaged([path.read_bytes()])), path.name) for path in paths]
    for piece in OpenHandsLlm().read(files, Skips()):
        assert {span.task for span in piece.spans} == {piece.task}
