from collections.abc import Sequence
from itertools import pairwise
from math import fsum

import pytest
from hypothesis import given
from tasks import call, forests, step, tool

from headway.core.span import Span
from headway.trace.path import Phase, critical_path
from headway.trace.tree import grow


def walk(spans: Sequence[Span]) -> list[tuple[str, str, float, float]]:
    return [(one.span, one.phase.value, round(one.start, 6), round(one.end, 6)) for one in critical_path(grow(spans))]


def test_a_loop_of_two_calls_and_a_tool() -> None:
    #  hop | prefill | decode | tool | hop | model
    #  0   .1       .5        2      3     3.25   5
    spans = [step("root", 0, 5), call("a", 0, 2, "root", marks=(0.1, 0.5, 2))]
    spans += [tool("t", 2, 3, "root"), call("b", 3.25, 5, "root")]
    assert walk(spans) == [
        ("a", "hop", 0, 0.1),
        ("a", "prefill", 0.1, 0.5),
        ("a", "decode", 0.5, 2),
        ("t", "tool", 2, 3),
        ("root", "hop", 3, 3.25),
        ("b", "model", 3.25, 5),
    ]


def test_back_to_back_spans_are_not_skipped() -> None:
    spans = [step("root", 0, 3), tool("a", 0, 1, "root"), tool("b", 1, 2, "root"), tool("c", 2, 3, "root")]
    assert [one[0] for one in walk(spans)] == ["a", "b", "c"]


def test_spans_that_overlap_by_less_than_a_millisecond_follow_one_another() -> None:
    spans = [step("root", 0, 3), tool("a", 0, 1.0009, "root"), tool("b", 1, 3, "root")]
    assert walk(spans) == [("a", "tool", 0, 1), ("b", "tool", 1, 3)]


def test_spans_that_overlap_by_more_are_concurrent() -> None:
    # b cannot have waited for a, which was still at work
    spans = [step("root", 0, 3), tool("a", 0, 1.002, "root"), tool("b", 1, 3, "root")]
    assert walk(spans) == [("root", "hop", 0, 1), ("b", "tool", 1, 3)]


def test_of_parallel_tools_the_slower_is_on_the_path() -> None:
    spans = [call("a", 0, 1), tool("quick", 1, 2), tool("slow", 1, 4), call("b", 4, 5)]
    assert [one[0] for one in walk(spans)] == ["a", "slow", "b"]


def test_a_sub_agents_calls_are_on_the_path_inside_its_tool() -> None:
    spans = [call("a", 0, 1), tool("t", 1, 5), call("sub", 1.5, 4, "t"), call("b", 5, 6)]
    assert walk(spans) == [
        ("a", "model", 0, 1),
        ("t", "tool", 1, 1.5),
        ("sub", "model", 1.5, 4),
        ("t", "tool", 4, 5),
        ("b", "model", 5, 6),
    ]


def test_a_tool_inside_a_call_cuts_its_phases() -> None:
    # the engine runs a tool while it answers: decode goes on after it
    spans = [call("a", 0, 6, marks=(0, 1, 6)), tool("t", 2, 4, "a")]
    assert walk(spans) == [
        ("a", "prefill", 0, 1),
        ("a", "decode", 1, 2),
        ("t", "tool", 2, 4),
        ("a", "decode", 4, 6),
    ]


def test_a_detached_child_does_not_hide_what_was_waited_for() -> None:
    spans = [step("root", 0, 3), call("a", 0.5, 2.9, "root"), tool("async", 2.8, 15, "root")]
    assert walk(spans) == [("root", "hop", 0, 0.5), ("a", "model", 0.5, 2.9), ("root", "hop", 2.9, 3)]


def test_no_spans_and_no_length_have_no_segments() -> None:
    assert walk([]) == []
    assert walk([call("a", 1, 1)]) == []


def test_spans_that_a_flush_ended_are_not_split() -> None:
    # Four that started apart end with the root, whatever they did: half of eight are enough to mistrust the lot.
    spans = [step("root", 0, 9), call("a", 0, 4, "root", marks=(0, 1, 4)), call("b", 4, 8.999, "root")]
    spans += [tool(f"t{start}", start, 9, "root") for start in (5, 6, 7)]
    spans += [tool(f"u{start}", start, start + 0.5, "root") for start in (1, 2, 3)]
    assert Phase.PREFILL not in {one.phase for one in critical_path(grow(spans))}
    calmer = [*spans, tool("v", 3.5, 3.8, "root")]
    assert ("a", "decode", 1, 4) in walk(calmer)


def test_what_was_started_and_cut_off_together_was_ended_by_no_flush() -> None:
    spans = [step("root", 0, 9), call("a", 0, 4, "root", marks=(0, 1, 4))]
    spans += [tool(f"t{i}", 4, 9, "root") for i in range(6)]
    assert ("a", "decode", 1, 4) in walk(spans)


def test_spans_that_never_ended_are_no_flush() -> None:
    # Cut off when the recording stopped, at 9: they end there only because nothing later is known of them.
    spans = [step("root", 0, 9), call("a", 0, 4, "root", marks=(0, 1, 4)), tool("t", 4, 5, "root")]
    spans += [call(name, 8.999, None, "root") for name in "bcde"]
    assert ("a", "decode", 1, 4) in walk(spans)


@pytest.mark.parametrize("nested", [True, False])
def test_twenty_thousand_spans_deep_or_long(nested: bool) -> None:
    count = 20_000
    spans = [
        tool(f"{i}", i, 2 * count - i, f"{i - 1}" if i else None) if nested else tool(f"{i}", i, i + 1)
        for i in range(count)
    ]
    path = critical_path(grow(spans))
    assert len(path) == (2 * count - 1 if nested else count)
    assert path[-1].end == (2 * count if nested else count)


@given(forests)
def test_the_segments_tile_any_forest_to_the_last_bit(spans: list[Span]) -> None:
    tree = grow(spans)
    path = critical_path(tree)
    e2e = tree.end[0]
    assert all(one.end > one.start for one in path)
    assert all(one.end == other.start for one, other in pairwise(path))
    assert (path[0].start, path[-1].end) == (0, e2e) if path else e2e == 0
    assert abs(fsum(one.end - one.start for one in path) - e2e) <= 1e-9 * (len(path) + 1)
