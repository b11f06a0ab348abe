import pytest
from claims import claimed
from importing import document, read, sample
from sessions import assert_unharmed, at, calls, chats, lines, reasons, tools, waits

from headway.core.span import ToolUse
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.sources.agents.tracelab import TraceLab


def events(*times: tuple[str, float]) -> list[object]:
    return [{"event_type": kind, "timestamp": f"2026-03-01T10:00:{second:06.3f}Z"} for kind, second in times]


def used(call: str, start: float, end: float, inside: int | None) -> dict[str, object]:
    stamp = "2026-03-01T10:00:{:06.3f}Z"
    made: dict[str, object] = {"tool_name": "Bash", "tool_call_id": call, "is_error": False, "input": {"command": call}}
    return {
        **made,
        "emitted_at": stamp.format(start),
        "result_at": stamp.format(end),
        "tool_internal_latency_ms": inside,
    }


def a_round(index: int, first: str, timing: list[object], *tools: object) -> dict[str, object]:
    tokens = {"input_tokens_total": 100 + index, "prefix_tokens": 60, "output_tokens": 5, "reasoning_output_tokens": 2}
    named = {"provider": "claude", "session_id": "s-1", "round_index": index, "model": "m"}
    return {**named, **tokens, "first_input_event_type": first, "timing_events": timing, "tools": tools}


ROWS = [
    a_round(0, "user_message", events(("user_message", 0), ("text", 2), ("tool_call", 3)), used("a", 3, 5, None)),
    a_round(1, "tool_result", events(("tool_result", 5), ("tool_call", 7)), used("b", 7, 10, 1000)),
    a_round(2, "tool_result", events(("tool_result", 10), ("text", 11))),
    a_round(3, "user_message", events(("user_message", 30), ("text", 34))),
]


def test_a_task_is_what_came_of_a_users_message() -> None:
    pieces, skips = read(TraceLab(), document(lines([*ROWS[2:], *ROWS[:2]])))
    assert not skips
    first, second = pieces
    assert [at(chat, first) for chat in chats(first)] == [(0, 3), (5, 7), (10, 11)]
    assert [at(wait, second) for wait in waits(second)] == [(-19, 0)]
    assert calls(first)[0].usage == Usage(input_tokens=100, output_tokens=5, cache_read=60, reasoning=2)


@pytest.mark.parametrize(("agent", "seller"), [("claude", "anthropic"), ("codex", "openai"), ("other", "other")])
def test_calls_are_priced_by_who_sells_the_model_and_not_by_the_agent(agent: str, seller: str) -> None:
    (piece,), _ = read(TraceLab(), document(lines([ROWS[3] | {"provider": agent}])))
    assert calls(piece)[0].provider == seller


def test_a_tool_that_timed_itself_counts_as_long_as_it_says() -> None:
    pieces, _ = read(TraceLab(), document(lines(ROWS)))
    assert [at(tool, pieces[0]) for tool in tools(pieces[0])] == [(3, 5), (9, 10)]
    assert [tool.work.inferred for tool in tools(pieces[0]) if isinstance(tool.work, ToolUse)] == [True, False]


def test_rounds_that_several_files_hold_count_once_and_broken_ones_are_counted() -> None:
    pieces, skips = read(TraceLab(), document(lines(ROWS)), document(lines([*ROWS, {"session_id": 1}])))
    assert len(pieces) == 2
    assert reasons(skips) == {
        "a round that another one repeats: counted once": 4,
        "a line that is not JSON, or not a round": 1,
    }


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(TraceLab()) == {f"tracelab/{kind}_round_trace.jsonl" for kind in ("derived", "sanitized")}


WORK = "workloads/tracelab/example_sessions"


@pytest.mark.parametrize(
    "name",
    [
        "traces/tracelab/derived_round_trace.jsonl",
        "traces/tracelab/sanitized_round_trace.jsonl",
        f"{WORK}/derived/round_trace.expanded.json",
        f"{WORK}/sanitized/round_trace.expanded.json",
    ],
)
def test_two_real_sessions_in_all_their_forms(name: str) -> None:
    pieces, skips = read(TraceLab(), document(sample(name).read_bytes()))
    assert not skips
    assert [(len(calls(piece)), at(piece.spans[0], piece)[1]) for piece in pieces] == [
        (5, 123.269),
        (5, 58.502),
        (5, 24.046),
        (2, 7.147),
        (2, 5.158),
    ]
    assert [call.usage.output_tokens for call in calls(pieces[0])] == [931, 1016, 2475, 117, 1275]
    assert calls(pieces[0])[0].usage == Usage(
        input_tokens=32272, output_tokens=931, cache_read=27217, cache_write=2163, reasoning=None
    )
    assert calls(pieces[2])[3].usage == Usage(input_tokens=10152, output_tokens=233, cache_read=3456, reasoning=26)
    assert [tool.name for tool in tools(pieces[0])][:2] == ["execute_tool Bash", "execute_tool WebSearch"]
    assert [tool.error for tool in tools(pieces[2])][:3] == [None, "tool_error", None]
    assert dissect(pieces[0].spans).n == 5


def test_no_damage_raises() -> None:
    assert_unharmed(TraceLab, [lines(ROWS)])


def test_no_damage_to_a_real_file_raises() -> None:
    assert_unharmed(TraceLab, [sample("traces/tracelab/derived_round_trace.jsonl").read_bytes()], 40)
