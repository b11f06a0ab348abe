import pytest
from msgspec import structs
from tasks import T0, call, human, span, step, tool

from headway.core.span import ModelCall
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.contract import Contraction, contract
from headway.trace.phases import Phase
from headway.trace.tree import ROOT_ID, Tree, grow


def held(tree: Tree, result: Contraction) -> dict[str, str]:
    """Each node and what holds it."""
    return {tree.spans[i].id: tree.spans[result.holder[i]].id for i in result.nodes[1:]}


def names(tree: Tree, indices: list[int]) -> list[str]:
    return [tree.spans[i].id for i in indices]


def test_work_and_agents_stay_and_wrappers_are_spliced_out() -> None:
    tree = grow(
        [
            step("root", 0, 9),
            step("cycle", 0, 9, "root"),
            call("a", 0, 2, "cycle"),
            step("helper", 3, 8, "cycle", agent="helper"),
            call("b", 4, 7, "helper"),
        ]
    )
    assert held(tree, contract(tree)) == {"a": "root", "helper": "root", "b": "helper"}


def test_a_long_poll_waiter_is_spliced_out() -> None:
    # It ends last, so a walk by the last to finish would find nothing else on the path.
    tree = grow(
        [step("root", 0, 4), step("dequeue", 0.005, 3.998, "root", agent="queue"), call("a", 0.02, 2.5, "root")]
    )
    assert held(tree, contract(tree)) == {"a": "root"}


def test_a_call_inside_a_call_is_one_call_with_what_each_knows() -> None:
    inner = call("inner", 0.02, 2.89, "outer", usage=Usage(output_tokens=80), attempts=None)
    outer = call("outer", 0.01, 2.9, "root", marks=(0.01, 0.8, 2.8), usage=Usage(input_tokens=1000, output_tokens=80))
    tree = grow([step("root", 0, 3), outer, inner])
    result = contract(tree)
    assert held(tree, result) == {"inner": "root"}
    assert names(tree, result.calls) == ["inner"]
    (kept,) = (tree.spans[i].work for i in result.calls)
    assert isinstance(kept, ModelCall)
    assert (kept.usage.input_tokens, kept.usage.output_tokens, kept.first_token) == (1000, 80, T0 + 0.8)
    assert kept.attempts == 1
    assert result.notes == ["1 model call was recorded with another inside: the inner one is counted, once."]


def test_what_an_outer_call_knows_passes_through_several_wrappers() -> None:
    tree = grow(
        [
            call("outer", 0, 9, marks=(0, 3, 9)),
            step("between", 0, 9, "outer"),
            call("middle", 1, 8, "between", usage=Usage(input_tokens=7)),
            call("inner", 2, 7, "middle"),
        ]
    )
    result = contract(tree)
    assert names(tree, result.calls) == ["inner"]
    work = tree.spans[result.calls[0]].work
    assert isinstance(work, ModelCall)
    assert (work.first_token, work.usage.input_tokens) == (T0 + 3, 7)


def test_among_several_inner_calls_nobody_is_told_the_outer_ones_tokens() -> None:
    tree = grow(
        [call("outer", 0, 9, usage=Usage(output_tokens=80)), call("try", 0, 4, "outer"), call("again", 5, 9, "outer")]
    )
    result = contract(tree)
    assert names(tree, result.calls) == ["try", "again"]
    counts = [work.usage.output_tokens for i in result.calls if isinstance(work := tree.spans[i].work, ModelCall)]
    assert counts == [None, None]


def test_a_sub_agents_call_inside_a_tool_is_no_wrapper() -> None:
    tree = grow([call("a", 0, 9), tool("t", 1, 8, "a"), call("b", 2, 7, "t")])
    result = contract(tree)
    assert held(tree, result) == {"t": "a", "b": "t"}
    assert names(tree, result.calls) == ["a", "b"]


def test_a_tool_recorded_under_the_call_that_asked_for_it_stands_beside_it() -> None:
    tree = grow([step("root", 0, 9), call("a", 0, 2, "root"), tool("t", 2, 5, "a"), call("b", 5, 9, "a")])
    result = contract(tree)
    assert held(tree, result) == {"a": "root", "t": "root", "b": "root"}
    assert names(tree, result.calls) == ["a", "b"]


def test_work_that_starts_after_its_holders_end_is_detached() -> None:
    tree = grow([step("root", 0, 3), tool("late", 4, 5, "root"), call("below", 4.1, 4.9, "late")])
    result = contract(tree)
    assert names(tree, result.detached) == ["late"]  # what hangs below is not listed again
    assert held(tree, result) == {}
    assert names(tree, result.calls) == ["below"]  # but it was made, and cost something
    assert result.notes == ["Not waited for by what started them: 1. Reported as detached, not in E2E."]


def test_an_async_child_that_outlives_its_parent_is_detached() -> None:
    # The parent ended at 3 without waiting for it; the call beside it is what it waited for.
    tree = grow(
        [
            step("root", 0, 3),
            call("a", 0.01, 2.9, "root"),
            step("memory", 2.8, 15, "root"),
            call("b", 2.81, 14.9, "memory"),
        ]
    )
    result = contract(tree)
    assert held(tree, result) == {"a": "root"}
    assert names(tree, result.detached) == ["b"]


def test_a_consumer_is_not_waited_for_by_its_producer_even_while_that_still_runs() -> None:
    consumer = structs.replace(step("consume", 1, 4, "root"), awaited=False)
    tree = grow([step("root", 0, 9), consumer, call("b", 2, 3, "consume"), tool("t", 5, 6, "root")])
    result = contract(tree)
    assert held(tree, result) == {"t": "root"}
    assert names(tree, result.detached) == ["b"]
    assert names(tree, result.calls) == ["b"]


def test_a_consumer_whose_producer_is_not_in_the_record_is_the_task() -> None:
    consumer = structs.replace(step("consume", 1, 4, "gone"), awaited=False)
    tree = grow([consumer, call("b", 2, 3, "consume"), tool("t", 5, 6)])
    assert held(tree, contract(tree)) == {"b": ROOT_ID, "t": ROOT_ID}
    assert contract(tree).detached == []


def test_a_child_that_ends_a_hundredth_after_its_parent_still_belongs_to_it() -> None:
    tree = grow([step("root", 0, 10), call("a", 1, 10.09, "root")])
    result = contract(tree)
    assert result.detached == []
    assert result.hi == [10, 10]
    assert result.notes == []


def test_a_child_that_starts_before_its_parent_counts_from_its_parents_start() -> None:
    tree = grow([step("root", 0, 10), step("agent", 4, 9, "root", agent="x"), call("a", 3, 8, "agent")])
    result = contract(tree)
    assert (result.lo, result.hi) == ([0, 4, 4], [10, 9, 8])
    assert result.notes == ["Started before what holds them: 1. Only the part inside is in E2E."]


def test_a_made_root_ends_with_the_last_work_that_was_waited_for() -> None:
    # The sub-agent's call outlives the tool that opened it: E2E ends with b, at 6.
    tree = grow([call("a", 0, 2), tool("t", 2, 4), call("sub", 3, 40, "t"), call("b", 4, 6)])
    result = contract(tree)
    assert names(tree, result.detached) == ["sub"]
    assert (result.hi[0], tree.end[0]) == (6, 6)


def test_people_hold_nothing_up() -> None:
    tree = grow([step("root", 0, 9), human("h", 1, 3, "root"), span("t", 4, 5, tool("x", 0, 0).work, "h")])
    assert held(tree, contract(tree)) == {"t": "root"}


@pytest.mark.parametrize("late", [0.0, 0.001, 0.002, 0.007, 0.2])
def test_an_inner_record_that_ends_after_its_caller_has_gone_on_is_cut_there(late: float) -> None:
    # the gateway closes its span a little after the agent has its answer and calls the tool
    spans = [
        step("task", 0, 3, agent="a"),
        call("own1", 0, 1, "task", asks=("t",)),
        call("gate1", 0.01, 1 + late, "own1", marks=(0.01, 0.5, 1.0)),
        tool("t", 1, 2, "task", by="own1", call_id="t"),
        call("own2", 2, 3, "task"),
        call("gate2", 2.01, 3, "own2", marks=(2.01, 2.5, 3.0)),
    ]
    anatomy = dissect(spans)
    assert anatomy.n == 2
    assert anatomy.phases[Phase.TOOL] == pytest.approx(1.0)
    assert anatomy.phases[Phase.HOP] == pytest.approx(0.02)
