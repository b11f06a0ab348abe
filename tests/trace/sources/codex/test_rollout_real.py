"""Expected values are read by hand from the files."""

from statistics import median

import pytest
from claims import claimed, files_of
from codex_lines import imported, length, real
from importing import document, read, sample
from sessions import assert_unharmed, at, calls, chats, reasons, tools, waits

from headway.core.span import ModelCall, Span
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.path import Phase
from headway.trace.sources.codex.rollout import Codex
from headway.trace.sources.source import Piece

FIVE = "rollout-2026-02-23T12-40-23-019c8a4c-ed82-79a1-aa28-7738fc5ab61a.jsonl"
PARALLEL = "rollout-2026-02-23T12-41-04-019c8a4d-8f45-7010-8b5d-7fad920aa6f9.jsonl"
LONG = "rollout-2026-02-23T12-54-34-019c8a59-e9dd-71f0-9ae3-4079fe9726a9.jsonl"
ABORTED = "rollout-2026-02-23T13-19-38-019c8a70-dda7-7f33-98ea-f30553347322.jsonl"


def total(piece: Piece) -> tuple[int, int, int, int]:
    """Input, cached, output and reasoning tokens of all calls whose tokens are known."""
    usages = [call.usage for call in calls(piece)]
    return (
        sum(usage.input_tokens or 0 for usage in usages),
        sum(usage.cache_read or 0 for usage in usages),
        sum(usage.output_tokens or 0 for usage in usages),
        sum(usage.reasoning or 0 for usage in usages),
    )


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(Codex()) == files_of("codex_rollout") | {"tracelab/codex_trace.json"}


def test_five_turns_with_people_between() -> None:
    pieces, skips = imported(FIVE)
    assert not skips
    assert [length(piece) for piece in pieces] == [195.247, 132.108, 297.973, 171.45, 107.364]
    assert [len(calls(piece)) for piece in pieces] == [21, 10, 28, 17, 5]
    assert [len(tools(piece)) for piece in pieces] == [28, 16, 35, 20, 6]  # one search of the provider's in the first
    assert [total(piece) for piece in pieces] == [
        (673392, 600576, 6682, 2901),
        (605183, 547584, 6913, 4175),
        (2663685, 2600960, 14143, 7504),
        (2466474, 2320512, 6295, 2194),
        (795291, 766720, 2042, 1122),
    ]
    first = calls(pieces[0])[0]
    assert first.usage == Usage(input_tokens=17203, output_tokens=358, cache_read=3456, reasoning=193)
    assert [at(span, pieces[0]) for span in chats(pieces[0])[:2]] == [(0, 12.818), (13.067, 18.348)]
    waited = [round((wait.end or 0) - wait.start, 3) for piece in pieces for wait in waits(piece)]
    assert waited == [192.955, 71.996, 2695.554, 39.436]


def test_tools_in_parallel_leave_every_call_on_the_path() -> None:
    (piece,), _ = imported(PARALLEL)
    assert (length(piece), len(calls(piece)), len(tools(piece))) == (311.377, 28, 118)
    assert total(piece) == (1751428, 1651968, 14600, 4293)
    assert dissect(piece.spans).n == 28
    assert round((calls(piece)[0].first_visible or 0) - piece.spans[0].start, 3) == 6.644


def test_a_day_long_session() -> None:
    pieces, skips = imported(LONG)
    assert not skips
    assert len(pieces) == 33
    assert [piece.timing for piece in pieces] == ["messages"] * 33
    counts = [len([call for call in calls(piece) if call.usage.input_tokens]) for piece in pieces]
    assert counts[:10] == [10, 1, 1, 5, 4, 5, 1, 4, 7, 67]
    assert sum(counts) == 286
    assert sum(len(calls(piece)) for piece in pieces) == 287  # one for the compaction
    assert sum(tool.name == "execute_tool web_search" for piece in pieces for tool in tools(piece)) == 7
    assert sum(len(tools(piece)) for piece in pieces) == 365 + 7
    (compacted,) = [piece for piece in pieces if any("compacted" in remark for remark in piece.remarks)]
    lost = next(
        chat for chat in chats(compacted) if isinstance(chat.work, ModelCall) and not chat.work.usage.input_tokens
    )
    assert round((lost.end or 0) - lost.start, 3) == 49.779  # 09:50:59.099 to 09:51:48.878
    assert (length(pieces[9]), total(pieces[9])) == (979.514, (7529865, 7408896, 18861, 6414))


def test_a_session_that_broke_off() -> None:
    (piece,), _ = imported(ABORTED)
    assert (length(piece), total(piece)) == (10.127, (34469, 3456, 431, 264))
    (tool,) = tools(piece)
    assert (tool.name, at(tool, piece)) == ("execute_tool exec_command", (10.127, None))


def q(values: list[float], share: float) -> float:
    """A quantile by linear interpolation."""
    ordered = sorted(values)
    rank = share * (len(ordered) - 1)
    low, high = ordered[int(rank)], ordered[min(int(rank) + 1, len(ordered) - 1)]
    return low + (high - low) * (rank - int(rank))


def test_where_the_time_of_forty_real_turns_went() -> None:
    pieces, _ = imported(FIVE, PARALLEL, LONG, ABORTED)
    seconds = [length(piece) or 0.0 for piece in pieces]
    assert (len(pieces), round(sum(seconds) / 60, 1)) == (40, 359.4)
    counts = [float(len([call for call in calls(piece) if call.usage.input_tokens])) for piece in pieces]
    assert (median(counts), max(counts)) == (5.5, 67)
    assert round(q(counts, 0.95)) == 28
    visible = [
        min(call.first_visible for call in calls(piece) if call.first_visible) - piece.spans[0].start
        for piece in pieces
    ]
    assert (round(q(visible, 0.5), 1), round(q(visible, 0.95), 1)) == (20.5, 63.9)
    spent = [dissect(piece.spans).phases for piece in pieces]
    on_path = {phase: sum(one.get(phase, 0.0) for one in spent) / sum(seconds) for phase in Phase}
    # From the last input of each call to its count of tokens, by hand: 29.8 % (searches of the provider's included).
    assert on_path[Phase.MODEL] + on_path[Phase.TOOL] == pytest.approx(1.0, abs=0.005)
    assert on_path[Phase.MODEL] == pytest.approx(0.298, abs=0.01)
    naive = sum(ends(tool) for piece in pieces for tool in tools(piece)) / sum(seconds)
    assert naive == pytest.approx(0.88, abs=0.01)
    assert naive > on_path[Phase.TOOL] + 0.15


def ends(span: Span) -> float:
    return 0.0 if span.end is None else span.end - span.start


def test_separated_records_as_tracelab_publishes_them() -> None:
    pieces, skips = read(Codex(), document(sample("traces/tracelab/codex_trace.json").read_bytes()))
    assert not skips
    assert [length(piece) for piece in pieces] == [24.047, 7.153, 5.164]
    assert [len(calls(piece)) for piece in pieces] == [5, 2, 2]
    assert [tool.error for tool in tools(pieces[0])] == [None, "tool_error", None, None, None, None, None]
    assert total(pieces[0]) == (9324 + 9917 + 10058 + 10152 + 10472, 6912 + 9600 + 9856 + 3456 + 10240, 1124, 347)


def test_legacy_counts_by_turn() -> None:
    pieces, skips = imported("codex_050_legacy.jsonl", "codex_051_usage.jsonl")
    assert not skips
    assert [piece.timing for piece in pieces] == ["none"] * 4
    assert [call.usage for piece in pieces for call in calls(piece)] == [
        Usage(input_tokens=1420, output_tokens=910),
        Usage(),
        Usage(input_tokens=1420, output_tokens=910, cache_read=380),
        Usage(input_tokens=1420, output_tokens=610, cache_read=1040),  # the sum so far, less that of the turn before
    ]
    assert all("by turns, not by calls" in "".join(piece.remarks) for piece in pieces)


def test_counts_without_messages() -> None:
    (piece,), _ = imported("ccusage_codex_alpha.jsonl")
    assert piece.timing == "none"
    assert [(call.model, call.usage) for call in calls(piece)] == [
        ("gpt-5.2-codex", Usage(input_tokens=1000, output_tokens=125, cache_read=250, reasoning=75)),
        ("gpt-5.3-codex", Usage(input_tokens=2500, output_tokens=300, cache_read=500, reasoning=200)),
    ]


def test_messages_without_frames() -> None:
    pieces, skips = imported("agent-sessions_codex_large.jsonl")
    assert not skips
    assert [piece.title for piece in pieces] == ["Start", "Step 1", "Step 2", "Step 3", "Step 4", "Step 5"]
    first = pieces[0]
    assert [at(span, first) for span in first.spans[1:]] == [(0, 2.8), (2.8, 3.8), (3.8, 4.8)]
    assert calls(first)[0].usage == Usage(input_tokens=12091, output_tokens=182, cache_read=10880, reasoning=128)
    assert calls(first)[1].usage == Usage()


def test_schema_drift() -> None:
    (piece,), skips = imported("agent-sessions_codex_schema_drift.jsonl")
    assert not skips
    assert (piece.title, [span.name for span in piece.spans[1:]]) == (
        "Translate 'hello' to Spanish",
        ["chat unknown", "execute_tool translate", "chat unknown"],
    )
    assert [at(span, piece) for span in piece.spans[1:]] == [(0, 1), (1, 1), (1, 2)]


def test_a_file_whose_times_were_trimmed() -> None:
    pieces, skips = imported("agent-sessions_codex_small.jsonl")
    assert reasons(skips) == {"a line that is not JSON, or not a line of a rollout": 92}
    first = pieces[0]
    assert (first.title, first.spans[0].error) == ("List the files", "interrupted")
    assert {tool.name.split()[1] for tool in tools(first)} == {
        "shell",
        "tool_search",
        "web_search",
        "example_tool",
        "apply_patch",
    }
    second = pieces[1]
    assert [(piece.timing, piece.extent) for piece in (first, second)] == [("durations", 0.01), ("durations", 1.2)]
    assert [at(tool, first)[1] for tool in tools(first) if tool.name == "execute_tool example_tool"] == [0.004]
    assert [at(tool, first)[1] for tool in tools(first) if tool.name != "execute_tool example_tool"] == [None] * 5
    assert (calls(second)[0].first_token, at(second.spans[0], second)) == (0.3, (0, 1.2))
    (counted_call,) = [call for call in calls(first) if call.usage.input_tokens]
    assert counted_call.usage == Usage(
        input_tokens=16341, output_tokens=81, cache_read=3584, cache_write=0, reasoning=63
    )


def test_no_damage_to_real_files_raises() -> None:
    files = [path for path in sorted(real("").glob("*.jsonl")) if path.stat().st_size < 200_000]
    files.append(sample("traces/tracelab/codex_trace.json"))
    assert_unharmed(Codex, [path.read_bytes() for path in files], 40)
