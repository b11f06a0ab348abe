from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasks import call, forests, step, tool

from headway.core.span import Span
from headway.trace.anatomy import dissect
from headway.trace.contract import Contraction, contract
from headway.trace.graph import Graph, graph_of, replay, slacks
from headway.trace.study import study
from headway.trace.tree import ROOT_ID, grow


def graph(spans: list[Span]) -> tuple[dict[str, int], Graph, Contraction]:
    tree = grow(spans)
    held = contract(tree)
    return {one.id: i for i, one in enumerate(tree.spans)}, graph_of(held), held


def stretched(graph: Graph, node: int, seconds: float) -> float:
    tail = list(graph.tail)
    tail[node] += seconds
    return replay(graph, graph.gap, tail)


# a 0-1, then quick 1-2 and slow 1-4 at once, then after half a second b 4.5-6
FORK = [call("a", 0, 1), tool("quick", 1, 2), tool("slow", 1, 4), call("b", 4.5, 6)]


def test_a_span_waits_for_all_that_ended_before_it_and_keeps_its_gap() -> None:
    at, found, _ = graph(FORK)
    assert (found.gap[at["b"]], found.tail[at["slow"]]) == (0.5, 3)
    assert found.before[at["b"]] == at["slow"]
    tail = list(found.tail)
    tail[at["slow"]] = 0.5  # now quick, 1 s long, is what b waits for: 1 + 1 + 0.5 + 1.5
    assert replay(found, found.gap, tail) == 4


def test_a_tool_that_began_while_its_answer_still_came_waits_for_that_answer() -> None:
    # the call writes from 0 to 4; the tool that it asks for begins at 3 and ends at 6
    spans = [call("a", 0, 4), tool("t", 3, 6, by="a"), tool("other", 3, 5), call("b", 6.5, 7)]
    at, found, _ = graph(spans)
    assert (found.before[at["t"]], found.gap[at["t"]]) == (at["a"], -1)
    assert (found.before[at["other"]], found.gap[at["other"]]) == (0, 3)  # nobody says who asked for it
    assert replay(found, found.gap, found.tail) == 7
    assert stretched(found, at["a"], 2) == 9  # the tool begins that much later
    path = dissect(spans).path
    assert [(segment.span, segment.start, segment.end) for segment in path] == [
        ("a", 0, 3),
        ("t", 3, 6),
        (ROOT_ID, 6, 6.5),
        ("b", 6.5, 7),
    ]


def test_a_tool_that_was_done_before_its_answer_was_whole_is_hidden_behind_it() -> None:
    at, found, _ = graph([call("a", 0, 4), tool("t", 2, 3, by="a"), call("b", 4, 5)])
    assert (found.before[at["b"]], replay(found, found.gap, found.tail)) == (at["a"], 5)


def test_what_is_on_the_path_has_no_slack_and_what_is_off_it_its_distance() -> None:
    at, found, held = graph(FORK)
    slack = slacks(found, held)
    assert {name: slack[i] for name, i in at.items() if name in {"a", "quick", "slow", "b"}} == {
        "a": 0,
        "quick": 2,
        "slow": 0,
        "b": 0,
    }


def test_stretching_within_the_slack_moves_nothing_and_beyond_it_the_end() -> None:
    at, found, _ = graph(FORK)
    assert stretched(found, at["quick"], 2) == 6
    assert stretched(found, at["quick"], 2.25) == 6.25


def test_slack_inside_a_holder_is_its_own_and_its_holders() -> None:
    # quick holds x, which ends half a second before it; quick itself could take 2 s longer
    at, found, held = graph([*FORK, tool("x", 1, 1.5, "quick")])
    assert slacks(found, held)[at["x"]] == 2
    at, found, held = graph([*FORK, tool("x", 1, 1.5, "quick"), tool("y", 1, 2, "quick")])
    assert slacks(found, held)[at["x"]] == 2.5


def test_a_span_that_belongs_to_no_replay_has_endless_slack() -> None:
    at, found, held = graph([step("root", 0, 3), tool("late", 4, 5, "root"), tool("t", 0, 3, "root")])
    assert slacks(found, held)[at["late"]] == inf


@given(forests)
def test_a_replay_without_a_change_gives_e2e_again(spans: list[Span]) -> None:
    _, found, held = graph(spans)
    assert abs(replay(found, found.gap, found.tail) - held.hi[0]) <= 1e-9


@given(forests)
def test_slack_is_exactly_what_the_replay_can_bear(spans: list[Span]) -> None:
    case = study(spans)
    slack = slacks(case.graph, case.held)
    assert all(slack[stretch.owner] <= 1e-9 for stretch in case.walked)
    for node in case.held.nodes:
        assert abs(stretched(case.graph, node, 0.9 * slack[node]) - case.e2e) <= 1e-9
        assert abs(stretched(case.graph, node, slack[node] + 0.5) - (case.e2e + 0.5)) <= 1e-9


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(1, 8)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(0, 3)), max_size=5),
)
def test_with_early_tools_the_replay_gives_what_was_recorded_and_the_path_tiles_it(
    answers: list[tuple[int, int]], asked: list[tuple[int, int, int]]
) -> None:
    spans = [call(f"c{i}", start, start + length) for i, (start, length) in enumerate(answers)]
    spans += [tool(f"t{i}", start, start + length, by=f"c{by}") for i, (start, length, by) in enumerate(asked)]
    case = study(spans)
    assert replay(case.graph, case.graph.gap, case.graph.tail) == pytest.approx(case.e2e)
    path = dissect(case).path
    assert path[0].start == 0
    assert path[-1].end == case.e2e
    assert all(before.end == after.start for before, after in pairwise(path))
    assert all(slack >= 0 for slack in slacks(case.graph, case.held))
