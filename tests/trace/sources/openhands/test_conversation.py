"""Expected values are worked out by hand from the times and sums in the events."""

import json

import pytest
from claims import calls_of, claimed, extent, files_of, length, tools_of
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import damaged, document, read, sample

from headway.core.span import HumanWait
from headway.trace.sources.openhands.conversation import OpenHands
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece


def _at(second: float) -> str:
    return f"2026-01-05T10:00:{second:09.6f}"


def _event(second: float, kind: str, source: str = "environment", **fields: object) -> dict[str, object]:
    return {"id": f"e{second}", "timestamp": _at(second), "source": source, "kind": kind, **fields}


def _user(second: float, text: str) -> dict[str, object]:
    return _event(
        second, "MessageEvent", "user", llm_message={"role": "user", "content": [{"type": "text", "text": text}]}
    )


def _stats(second: float, prompt: int, completion: int, turn: int, cost: float = 0.0) -> dict[str, object]:
    tokens = {"prompt_tokens": prompt, "completion_tokens": completion, "cache_read_tokens": 0, "per_turn_token": turn}
    metrics = {"model_name": "gpt-5", "accumulated_cost": cost, "accumulated_token_usage": tokens}
    return _event(second, "ConversationStateUpdateEvent", key="stats", value={"usage_to_metrics": {"default": metrics}})


def _action(second: float, response: str, call: str, name: str = "terminal") -> dict[str, object]:
    tool_call = {"id": call, "name": name, "arguments": '{"command": "ls"}'}
    held = {"llm_response_id": response, "tool_name": name, "tool_call_id": call, "tool_call": tool_call}
    return _event(
        second, "ActionEvent", "agent", **held, action={"kind": "X"}, thought=[{"type": "text", "text": "Look"}]
    )


def _observed(second: float, call: str, **outcome: object) -> dict[str, object]:
    held = {"content": [{"type": "text", "text": "a.txt"}], **outcome}
    return _event(second, "ObservationEvent", tool_name="terminal", tool_call_id=call, action_id="x", observation=held)


def _said(second: float, response: str, text: str) -> dict[str, object]:
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return _event(second, "MessageEvent", "agent", llm_response_id=response, llm_message=message)


TALK = [
    _event(0, "SystemPromptEvent", "agent", system_prompt={"type": "text", "text": "Help."}),
    _user(1, "What is here?"),
    _stats(3, 100, 10, 110, 0.002),
    _action(3.1, "r1", "c1"),
    _action(3.1, "r1", "c2"),
    _observed(4, "c1", exit_code=0),
    _observed(5, "c2", exit_code=2),
    _stats(7, 250, 15, 155, 0.005),
    _said(7.1, "r2", "A file."),
    _user(30, "Thanks, and now?"),
    _said(31, "r3", "Nothing."),
]


def _lines(*events: object) -> bytes:
    return "\n".join(map(json.dumps, events)).encode()


def _pieces(*events: object) -> list[Piece]:
    pieces, skips = read(OpenHands(), document(_lines(*events), "events.jsonl"))
    assert not skips.all()
    return pieces


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(OpenHands()) == files_of("openhands")


def test_a_trajectory_of_the_first_generation() -> None:
    path = sample("traces/openhands/basic.json")
    (piece,), skips = read(OpenHands(), document(path.read_bytes(), path.name))
    (first, one), (last, two) = calls_of(piece.spans)
    ((tool, use),) = tools_of(piece.spans)
    assert not skips.all()
    assert (piece.timing, extent(piece)) == ("messages", 21.5048)
    assert (length(first), length(tool), length(last)) == (16.8636, 0.0369, 4.6043)
    assert (one.usage.input_tokens, one.usage.output_tokens, one.usage.cache_read, one.usage.cache_write) == (
        3486, 1135, 0, 3482,
    )  # fmt: skip
    assert (two.usage.input_tokens, two.usage.output_tokens, two.usage.cache_read, two.usage.cache_write) == (
        4646, 177, 3482, 1158,
    )  # fmt: skip
    assert (use.name, use.call_id, use.issued_by) == ("str_replace_editor", "toolu_017nBp7UfiGqyrA7j77HgtFP", first.id)
    assert piece.title is not None
    assert piece.title.startswith("Please create a simple 2048 game.")


def test_events_tell_calls_by_the_growth_of_sums() -> None:
    path = sample("traces/openhands/events.jsonl")
    (piece,), skips = read(OpenHands(), document(path.read_bytes(), path.name))
    calls, tools = calls_of(piece.spans), tools_of(piece.spans)
    assert not skips.all()
    assert [length(span) for span, _ in calls] == [22.0183, 7.8725, 6.2188, 4.9064]
    assert [call.usage.input_tokens for _, call in calls] == [596, 35299, 35579, 35984]
    assert [call.usage.output_tokens for _, call in calls] == [775, 185, 195, 192]
    assert [call.usage.cache_read for _, call in calls] == [0, 1115, 33421, 33657]
    assert {call.cost for _, call in calls} == {None}  # the proxy has no price for this model
    assert [(length(span), use.failed, span.error) for span, use in tools] == [
        (0.404, True, "error"),
        (0.155, True, "error"),
        (0.7895, True, "exit_code"),
    ]
    assert [use.issued_by for _, use in tools] == [calls[1][0].id, calls[2][0].id, calls[3][0].id]
    assert piece.remarks == ()


def test_a_state_without_calls_is_refused_with_a_sentence() -> None:
    path = sample("traces/openhands/cli_default_base_state.json")
    pieces, skips = read(OpenHands(), document(path.read_bytes(), path.name))
    assert pieces == []
    assert [skip.reason for skip in skips.all()] == ["the state of a conversation in which no model was called"]


def test_two_requests_are_two_tasks_with_a_person_between() -> None:
    first, second = _pieces(*TALK)
    assert (first.title, second.title) == ("What is here?", "Thanks, and now?")
    assert first.spans[0].session == second.spans[0].session is not None
    (wait,) = [span for span in second.spans if isinstance(span.work, HumanWait)]
    assert (length(wait), wait.parent) == (23.0, None)  # since the last answer was metered, 7, to 30
    assert (extent(first), length(second.spans[0])) == (6.0, 1.0)


def test_an_answer_with_two_tools_is_one_call() -> None:
    piece = _pieces(*TALK)[0]
    (asked, one), (_, two) = calls_of(piece.spans)
    tools = tools_of(piece.spans)
    assert [ref.id for ref in one.tool_calls] == ["c1", "c2"]
    assert [(length(span), use.failed, span.error) for span, use in tools] == [
        (0.9, False, None),
        (1.9, True, "exit_code"),
    ]
    assert {use.issued_by for _, use in tools} == {asked.id}
    assert [one.usage.input_tokens, two.usage.input_tokens] == [100, 150]
    assert [one.cost, two.cost] == [2000, 3000]
    assert one.prompt is not None
    assert two.prompt is not None
    assert [part.role for part in one.prompt] == ["system", "user"]
    assert [part.role for part in two.prompt][-2:] == ["tool", "tool"]


def test_sums_that_grow_by_more_than_a_turn_are_told() -> None:
    (piece,) = _pieces(_user(1, "Go"), _stats(3, 500, 90, 110), _said(3, "r1", "Done"))
    assert any("more than one call" in remark for remark in piece.remarks)


def test_a_rejected_action_waited_for_a_person() -> None:
    rejected = _event(9, "UserRejectObservation", tool_name="terminal", tool_call_id="c1", rejection_source="user")
    (piece,) = _pieces(_user(1, "Go"), _action(2, "r1", "c1"), rejected)
    ((tool, use),) = tools_of(piece.spans)
    (wait,) = [span for span in piece.spans if isinstance(span.work, HumanWait)]
    assert (tool.error, use.failed, wait.parent, length(wait)) == ("rejected", True, tool.id, 7.0)


def test_a_condenser_is_a_call_of_its_own() -> None:
    both = _stats(3, 100, 10, 110)
    held = json.loads(json.dumps(both))
    held["value"]["usage_to_metrics"]["condenser"] = {
        "model_name": "small",
        "accumulated_token_usage": {"prompt_tokens": 40, "completion_tokens": 4, "per_turn_token": 44},
    }
    (piece,) = _pieces(_user(1, "Go"), held, _said(4, "r1", "Done"))
    assert sorted((call.model, call.usage.input_tokens) for _, call in calls_of(piece.spans)) == [
        ("gpt-5", 100),
        ("small", 40),
    ]


def test_after_a_condensation_the_prompt_is_unknown() -> None:
    condensed = _event(5.5, "Condensation", forgotten_event_ids=[])
    first = _pieces(*TALK[:7], condensed, *TALK[7:9])[0]
    prompts = [call.prompt for _, call in calls_of(first.spans)]
    assert prompts[0] is not None
    assert prompts[1] is None


def test_an_error_of_the_conversation_is_the_tasks() -> None:
    failed = _event(4, "ConversationErrorEvent", code="LLMTimeoutError", detail="too slow")
    (piece,) = _pieces(_user(1, "Go"), _said(2, "r1", "Hm"), failed)
    assert piece.spans[0].error == "LLMTimeoutError"


def test_sums_inside_a_whole_state_count_too() -> None:
    whole = _stats(3, 100, 10, 110)
    whole |= {"key": "full_state", "value": {"id": "c", "stats": whole["value"]}}
    (piece,) = _pieces(_user(1, "Go"), whole, _said(3, "r1", "Done"))
    ((_, call),) = calls_of(piece.spans)
    assert (call.usage.input_tokens, call.usage.output_tokens) == (100, 10)


def test_sums_that_begin_again_are_a_new_count() -> None:
    (piece,) = _pieces(_user(1, "Go"), _stats(3, 500, 9, 509), _stats(6, 100, 5, 105), _said(6, "r1", "Done"))
    assert [call.usage.input_tokens for _, call in calls_of(piece.spans)] == [500, 100]


STATE = {
    "id": "conv-1",
    "agent": {"kind": "Agent"},
    "workspace": {"kind": "LocalWorkspace"},
    "stats": {
        "usage_to_metrics": {
            "default": {
                "model_name": "gpt-5",
                "token_usages": [
                    {"model": "gpt-5", "prompt_tokens": 90, "completion_tokens": 9, "response_id": "r1"},
                    {"model": "gpt-5", "prompt_tokens": 140, "completion_tokens": 6, "response_id": "r2"},
                ],
                "response_latencies": [
                    {"model": "gpt-5", "latency": 1.5, "response_id": "r1"},
                    {"model": "gpt-5", "latency": 2.0, "response_id": "r2"},
                ],
                "costs": [{"model": "gpt-5", "cost": 0.001}, {"model": "gpt-5", "cost": 0.002}],
            }
        }
    },
}


def test_a_state_alone_has_durations() -> None:
    (piece,), _ = read(OpenHands(), document(json.dumps(STATE).encode(), "base_state.json"))
    calls = calls_of(piece.spans)
    assert piece.timing == "durations"
    assert [(span.start, span.end, call.usage.input_tokens, call.cost) for span, call in calls] == [
        (0.0, 1.5, 90, 1000),
        (1.5, 3.5, 140, 2000),
    ]


def test_events_with_a_file_each_and_the_state_beside_them_are_one_conversation() -> None:
    files = [
        document(json.dumps(event).encode(), f"conv/events/event-{number:05d}-x.json")
        for number, event in enumerate(TALK)
    ]
    (first, _), skips = read(OpenHands(), *files, document(json.dumps(STATE).encode(), "conv/base_state.json"))
    assert not skips.all()
    assert {span.session for span in first.spans} == {"conv-1"}
    assert [(length(span), call.usage.input_tokens) for span, call in calls_of(first.spans)] == [(1.5, 90), (2.0, 140)]


def _old(number: int, second: float, source: str, **fields: object) -> dict[str, object]:
    return {"id": number, "timestamp": _at(second), "source": source, "message": "m", **fields}


def test_the_first_generation_without_answers_kept_still_has_its_loop() -> None:
    events = [
        _old(0, 0, "user", action="message", args={"content": "Run it"}),
        _old(1, 2, "agent", action="run", args={"command": "make"}),
        _old(2, 5, "agent", observation="run", cause=1, content="boom", extras={"metadata": {"exit_code": 2}}),
        _old(3, 6, "environment", observation="agent_state_changed", cause=9, content=""),
        _old(4, 7, "agent", action="finish"),
        _old(5, 50, "user", action="message", args={"content": "Again"}),
        _old(6, 51, "agent", action="message"),
    ]
    (first, second), _ = read(OpenHands(), document(json.dumps(events).encode()))
    ((tool, use),) = tools_of(first.spans)
    assert [length(span) for span, _ in calls_of(first.spans)] == [2.0, 2.0]
    assert (use.name, length(tool), use.failed, tool.error) == ("run", 3.0, True, "exit_code")
    assert [length(span) for span in second.spans if isinstance(span.work, HumanWait)] == [43.0]
    assert (first.title, second.title) == ("Run it", "Again")


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (_event(2, "TelepathyEvent"), "an event of unknown kind: TelepathyEvent"),
        (
            _stats(2, 1, 1, 2) | {"value": {"usage_to_metrics": 7}},
            "a field of the wrong type, left out: usage_to_metrics",
        ),
        (_stats(2, 1, 1, 2) | {"value": 7}, "sums of tokens in no known shape"),
        (_user(2, "x") | {"timestamp": "soon"}, "an event whose time is none"),
        (_user(2, "x") | {"llm_message": 7}, "a field of the wrong type, left out: llm_message"),
        (_user(2, "x") | {"id": 7}, "an event or state in no known shape"),
    ],
)
def test_what_cannot_be_used_is_counted(event: dict[str, object], reason: str) -> None:
    _, skips = read(OpenHands(), document(_lines(*TALK, event), "events.jsonl"))
    assert (reason, 1) in [(skip.reason, skip.count) for skip in skips.all()]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_damage_raises(data: st.DataObject) -> None:
    old = [
        _old(0, 0, "user", action="message"),
        _old(1, 2, "agent", action="run"),
        _old(2, 3, "agent", observation="run", cause=1),
    ]
    made = [_lines(*TALK), json.dumps(STATE).encode(), json.dumps(old).encode()]
    source, found = OpenHands(), document(data.draw(damaged(made)))
    source.claims(found.sample())
    for piece in source.read([found], Skips()):
        assert {span.task for span in piece.spans} == {piece.task}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_damage_to_real_files_raises(data: st.DataObject) -> None:
    folder = sample("traces/openhands")
    originals = [(folder / name).read_bytes() for name in ("basic.json", "events.jsonl", "cli_default_base_state.json")]
    for piece in OpenHands().read([document(data.draw(damaged(originals)))], Skips()):
        assert {span.task for span in piece.spans} == {piece.task}
