"""What is exported for Perfetto is read back as its viewer reads it: slices that nest, and a path that is tiled."""

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from msgspec.structs import replace
from tasks import T0, call, forests, human, step, tool

from headway.core.span import ErrorType, Span
from headway.core.usage import Usage
from headway.trace.anatomy import Anatomy, dissect
from headway.trace.export.perfetto import HEAD, PATH, TAIL, encoded, events

PHASES = {"hop", "retry", "queue", "prefill", "decode", "model", "tool", "retrieval", "human"}


def read_back(*tasks: Anatomy) -> list[dict[str, Any]]:
    found = [event for number, one in enumerate(tasks, 1) for event in encoded(events(one, number))]
    return json.loads(HEAD + b",\n".join(found) + TAIL)["traceEvents"]


def tracks(found: list[dict[str, Any]]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    by_track: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for event in found:
        if event["ph"] == "X":
            by_track[event["pid"], event["tid"]].append(event)
    return by_track


def names(found: list[dict[str, Any]]) -> dict[tuple[int, int], str]:
    return {(one["pid"], one["tid"]): one["args"]["name"] for one in found if one["name"] == "thread_name"}


def two_turns() -> list[Span]:
    """1 s hop, 2 s call (0.5 prefill, 1.5 decode), two tools at once for 1 and 3 s, 2 s call (1 prefill, 1 decode)."""
    return [
        step("root", 0, 8, agent="a"),
        call("c1", 1, 3, "root", marks=(1, 1.5, 3), asks=("x", "y"), usage=Usage(input_tokens=9, output_tokens=2)),
        tool("t1", 3, 4, "root", by="c1", call_id="x"),
        tool("t2", 3, 6, "root", by="c1", call_id="y"),
        call("c2", 6, 8, "root", marks=(6, 7, 8)),
    ]


def test_the_critical_path_is_a_track_of_its_own() -> None:
    found = read_back(dissect(two_turns()))
    path = tracks(found)[1, PATH]
    tiles = [(one["name"], one["ts"] - T0 * 1e6, one["dur"]) for one in path if one["name"] in PHASES]
    assert tiles == [
        ("hop", 0, 1_000_000),
        ("prefill", 1_000_000, 500_000),
        ("decode", 1_500_000, 1_500_000),
        ("tool", 3_000_000, 3_000_000),
        ("prefill", 6_000_000, 1_000_000),
        ("decode", 7_000_000, 1_000_000),
    ]
    assert [(one["name"], one["dur"]) for one in path if one["name"] not in PHASES] == [
        ("root", 1_000_000),
        ("c1", 2_000_000),
        ("t2", 3_000_000),
        ("c2", 2_000_000),
    ]


def test_tools_at_once_are_on_tracks_side_by_side_and_calls_hold_their_phases() -> None:
    found = read_back(dissect(two_turns()))
    by_name = {name: tracks(found)[track] for track, name in names(found).items()}
    assert list(by_name) == ["critical path", "agent", "model calls", "tools", "tools 2"]
    assert [one["name"] for one in by_name["tools"]] == ["t2"]  # of those that start at once, the longer comes first
    assert [one["name"] for one in by_name["tools 2"]] == ["t1"]
    assert [one["name"] for one in by_name["model calls"]] == ["c1", "prefill", "decode", "c2", "prefill", "decode"]
    first = by_name["model calls"][0]["args"]
    assert (first["input tokens"], first["output tokens"], first["cached"]) == (9, 2, "unknown")
    assert by_name["tools 2"][0]["args"]["slack, s"] == 2.0


def test_a_tool_that_works_inside_another_lies_in_it_and_what_merely_overlaps_does_not() -> None:
    spans = [
        step("root", 0, 10),
        tool("outer", 0, 8, "root"),
        tool("inner", 1, 2, "outer"),
        tool("other", 3, 4, "root"),
    ]
    found = read_back(dissect(spans))
    by_name = {name: [one["name"] for one in tracks(found)[track]] for track, name in names(found).items()}
    assert by_name["tools"] == ["outer", "inner"]
    assert by_name["tools 2"] == ["other"]


def test_errors_are_told_and_a_wait_before_the_task_has_no_slice() -> None:
    failed = replace(tool("t", 20, 21, "root"), error=ErrorType("timeout"))
    found = read_back(dissect([step("root", 10, 22), human("asleep", 0, 10), failed]))
    assert "asleep" not in {one["name"] for one in found}
    assert [one["args"]["error"] for one in found if one["name"] == "t" and "args" in one] == ["timeout"]


def test_each_task_is_a_process_with_its_title() -> None:
    found = [*events(dissect(two_turns()), 1, "why?"), *events(dissect(two_turns()), 2)]
    titles = {one.pid: one.args["name"] for one in found if one.name == "process_name"}
    assert titles == {1: f"task {'5' * 32}: why?", 2: f"task {'5' * 32}"}


@settings(max_examples=150, deadline=None)
@given(forests)
def test_slices_nest_and_tile_whatever_the_task(spans: list[Span]) -> None:
    anatomy = dissect(spans)
    found = read_back(anatomy)
    for track in tracks(found).values():
        assert_nested(track)
    tiles = [one for one in tracks(found).get((1, PATH), []) if one["name"] in PHASES]
    assert all(before["ts"] + before["dur"] == after["ts"] for before, after in pairwise(tiles))
    assert sum(one["dur"] for one in tiles) == round(anatomy.e2e * 1e6)
    assert set(tracks(found)) == set(names(found)) or not anatomy.path
    bars = sum(not bar.off_axis for bar in anatomy.bars)
    assert sum("span" in one.get("args", {}) for one in found) == bars, "each span is one slice"


def assert_nested(track: list[dict[str, Any]]) -> None:
    """As a viewer does it: in order of start, a slice lies in the one that is open or after it."""
    open_ends: list[int] = []
    for one in sorted(track, key=lambda one: one["ts"]):  # stable: of equals, the one written first is the outer
        while open_ends and open_ends[-1] <= one["ts"]:
            open_ends.pop()
        assert not open_ends or one["ts"] + one["dur"] <= open_ends[-1]
        open_ends.append(one["ts"] + one["dur"])
