import pytest
from hypothesis import given
from tasks import T0, TASK, call, forests, human, lost, step, tool

from headway.core.span import ModelCall, Span
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.contract import contract
from headway.trace.tree import ROOT_ID, Tree, grow


def rows(tree: Tree) -> list[tuple[str, int, float, float]]:
    return [
        (one.id, depth, round(start, 6), round(end, 6))
        for one, depth, start, end in zip(tree.spans, tree.depth, tree.start, tree.end, strict=True)
    ]


def test_parents_come_first_and_siblings_by_start() -> None:
    tree = grow([call("b", 3, 4, "root"), tool("in-a", 1, 2, "a"), step("root", 0, 5), step("a", 1, 2, "root")])
    assert rows(tree) == [("root", 0, 0, 5), ("a", 1, 1, 2), ("in-a", 2, 1, 2), ("b", 1, 3, 4)]
    assert tree.notes == []


def test_a_repeated_id_keeps_the_fullest_record() -> None:
    # First come, first kept would lose 10 of 12 tokens: partial records are written while a call streams.
    partial = call("a", 0, 1, usage=Usage(output_tokens=2))
    whole = call("a", 0, 1, usage=Usage(output_tokens=12))
    unfinished = call("a", 0, None, usage=Usage(output_tokens=90))
    tree = grow([partial, whole, unfinished])
    kept = tree.spans[0].work
    assert isinstance(kept, ModelCall)
    assert kept.usage.output_tokens == 12
    assert tree.notes == ["2 records repeated the id of another span: the fullest of each was kept."]


def test_spans_that_start_before_their_parents_come_after_them_all_the_same() -> None:
    tree = grow(
        [tool("leaf", 0.1, 1, "mid"), step("mid", 0.2, 2, "root"), step("root", 0.3, 3), call("b", 0.25, 1, "root")]
    )
    assert rows(tree) == [("root", 0, 0, 2.7), ("mid", 1, -0.1, 1.7), ("leaf", 2, -0.2, 0.7), ("b", 1, -0.05, 0.7)]


def test_spans_of_no_length_are_kept_where_they_are() -> None:
    tree = grow([step("root", 0, 3), call("a", 1, 1, "root"), tool("t", 1, 1, "root"), call("b", 3, 3, "root")])
    assert rows(tree)[1:] == [("a", 1, 1, 1), ("t", 1, 1, 1), ("b", 1, 3, 3)]
    assert tree.notes == []


def test_an_end_before_the_start_becomes_the_start() -> None:
    tree = grow([step("root", 0, 3), call("a", 1.0, 0.99, "root")])
    assert rows(tree)[1] == ("a", 1, 1, 1)
    assert tree.notes == ["1 span ended before the start and was given no length."]


def test_an_open_span_ends_with_its_last_descendant() -> None:
    tree = grow([step("root", 0, None), step("inner", 1, None, "root"), tool("t", 2, 7, "inner")])
    assert rows(tree) == [("root", 0, 0, 7), ("inner", 1, 1, 7), ("t", 2, 2, 7)]
    assert tree.notes == ["2 spans never ended: taken to end with the last thing known of each."]


def test_an_open_call_ends_with_its_last_mark() -> None:
    assert rows(grow([call("a", 0, None, marks=(0.1, 0.5, 0.9))])) == [("a", 0, 0, 0.9)]


def test_an_open_span_does_not_end_with_a_person() -> None:
    tree = grow([step("root", 0, None), tool("t", 1, 2, "root"), human("h", 2, 50, "root")])
    assert rows(tree)[0] == ("root", 0, 0, 2)


def test_a_circle_of_parents_is_opened_at_its_earliest_span() -> None:
    tree = grow([step("a", 1, 9, "c"), step("b", 2, 8, "a"), tool("c", 3, 4, "b")])
    assert rows(tree) == [("a", 0, 0, 8), ("b", 1, 1, 7), ("c", 2, 2, 3)]
    assert tree.notes == ["1 circle of parents opened at the earliest span."]


def test_its_own_parent() -> None:
    tree = grow([call("a", 0, 1, "a")])
    assert rows(tree) == [("a", 0, 0, 1)]
    assert tree.notes == ["1 circle of parents opened at the earliest span."]


def test_an_orphan_is_never_dropped() -> None:
    tree = grow([step("root", 0, 5), call("a", 1, 2, "root"), call("orphan", 2, 6, "gone")])
    assert rows(tree) == [(ROOT_ID, 0, 0, 6), ("root", 1, 0, 5), ("a", 2, 1, 2), ("orphan", 1, 2, 6)]
    assert "1 span named a parent that is not in the record and hung from the root." in tree.notes


def test_the_gateways_record_has_no_root_so_one_is_made_for_the_task() -> None:
    tree = grow([call("a", 1, 2), tool("t", 2, 3), call("b", 3, 4.5)])
    root = tree.spans[0]
    assert (root.id, root.name, root.task) == (ROOT_ID, f"task {TASK}", TASK)
    assert (root.start, root.end) == (T0 + 1, T0 + 4.5)
    assert rows(tree) == [(ROOT_ID, 0, 0, 3.5), ("a", 1, 0, 1), ("t", 1, 1, 2), ("b", 1, 2, 3.5)]
    assert tree.notes == [
        "No one span covers the whole task: it is taken to run from the first recorded start to the last end."
    ]


def test_one_call_alone_is_its_own_root() -> None:
    tree = grow([call("a", 0, 2)])
    assert rows(tree) == [("a", 0, 0, 2)]
    assert not tree.made_root


def test_no_spans_at_all() -> None:
    tree = grow([])
    assert rows(tree) == [(ROOT_ID, 0, 0, 0)]
    assert tree.spans[0].task == ""
    assert tree.notes == []


def test_a_person_between_the_tasks_is_outside_of_them() -> None:
    # the person typed for 60 s; then the call
    tree = grow([human("h", -60, 0), call("a", 0, 2)])
    assert (tree.origin, tree.human) == (T0, 0.0)
    assert rows(tree) == [("a", 0, 0, 2), ("h", 1, 0, 0)]
    assert tree.waited_before == 60


def test_of_several_waits_before_the_task_the_longest_counts_and_of_one_that_goes_on_the_part_before() -> None:
    tree = grow([human("h", -60, -50), human("i", -20, 1), step("root", 0, 4), call("a", 1, 2, "root")])
    assert tree.waited_before == 20
    assert (tree.human, tree.end[0]) == (1, 3)


def test_where_no_wait_before_the_task_was_recorded_it_is_unknown() -> None:
    assert grow([call("a", 0, 2)]).waited_before is None
    assert grow([step("root", 0, 9), human("h", 1, 2, "root")]).waited_before is None


def test_a_person_within_the_task_is_cut_out_of_its_axis() -> None:
    # root  0 ------------------------ 30
    # call  0-2   approval 2 -- 22   tool 22-30
    tree = grow([step("root", 0, 30), call("a", 0, 2, "root"), human("h", 2, 22, "root"), tool("t", 22, 30, "root")])
    assert tree.human == 20
    assert rows(tree) == [("root", 0, 0, 10), ("a", 1, 0, 2), ("h", 1, 2, 2), ("t", 1, 2, 10)]
    assert tree.axis(T0 + 12) == 2  # amid the wait
    assert "20.000 s of waiting for a person are left out of E2E." in tree.notes


def test_a_person_is_not_waited_for_while_work_goes_on() -> None:
    # the person answers from 1 to 10, but a call is at work until 4: only 4..10 is the person's
    tree = grow([step("root", 0, 12), human("h", 1, 10, "root"), call("a", 0, 4, "root")])
    assert tree.human == 6
    assert tree.end[0] == 6


def test_a_tool_that_asks_a_person_loses_that_time() -> None:
    tree = grow([step("root", 0, 10), tool("t", 1, 9, "root"), human("h", 2, 8, "t")])
    assert tree.human == 6
    assert rows(tree)[:2] == [("root", 0, 0, 4), ("t", 1, 1, 3)]


def test_two_waits_add_up_on_the_axis() -> None:
    tree = grow([step("root", 0, 10), human("h", 1, 3, "root"), human("i", 5, 8, "root"), tool("t", 9, 10, "root")])
    assert [tree.axis(T0 + when) for when in (1, 2, 4, 6, 10)] == [1, 1, 2, 3, 5]


def test_only_people() -> None:
    tree = grow([human("h", 0, 5), human("i", 6, 7)])
    assert tree.end[0] == 0


@given(forests)
def test_nothing_is_dropped_and_every_parent_comes_first(spans: list[Span]) -> None:
    tree = grow(spans)
    assert not lost(spans, tree.spans)
    assert {one.id for one in tree.spans} - {ROOT_ID} <= {one.id for one in spans}
    assert all(above < i for i, above in enumerate(tree.parent) if i)
    assert all(end >= start for start, end in zip(tree.start, tree.end, strict=True))
    assert tree.start[0] == 0


@pytest.mark.parametrize("depth", [20_000])
def test_a_chain_of_parents_deeper_than_any_recursion(depth: int) -> None:
    tree = grow([step(str(i), 0, 1, str(i - 1) if i else None) for i in range(depth)])
    assert tree.depth[-1] == depth - 1


def test_calls_that_followed_the_only_span_without_a_parent_do_not_lie_in_it() -> None:
    # As some recorders hang each turn of a conversation from the one before.
    tree = grow([call("a", 0, 1), call("b", 2, 3.5, "a"), call("c", 4, 5.5, "b")])
    assert tree.made_root
    assert (tree.spans[0].id, tree.end[0]) == (ROOT_ID, 5.5)
    assert [tree.spans[i].id for i in contract(tree).calls] == ["a", "b", "c"]
    assert contract(tree).detached == []
    assert dissect(tree.spans[1:]).n == 3


def test_a_call_that_holds_all_others_is_the_root() -> None:
    tree = grow([call("outer", 0, 3), call("inner", 0.5, 2.9995, "outer"), human("user", 3, 4)])
    assert not tree.made_root


def test_a_tool_seen_by_the_agent_and_inferred_by_the_gateway_is_one() -> None:
    spans = [
        step("task", 0, 6),
        call("c1", 0, 2, "task", asks=("id1",)),
        tool("own", 2.5, 4, "task", call_id="id1"),
        tool("guess", 2, 5, "task", by="c1", call_id="id1", inferred=True),
        call("sub", 3, 3.5, "guess"),
        call("c2", 5, 6, "task"),
    ]
    tree = grow(spans)
    assert [span.id for span in tree.spans] == ["task", "c1", "own", "sub", "c2"]
    assert tree.spans[tree.parent[3]].id == "own"
    assert any("recorded twice" in note for note in tree.notes)


def test_tools_that_share_a_reused_id_are_all_kept() -> None:
    spans = [
        step("task", 0, 6),
        tool("a", 0, 1, "task", call_id="call_0"),
        tool("b", 2, 3, "task", call_id="call_0"),
        tool("guess", 4, 5, "task", call_id="call_0", inferred=True),
    ]
    assert len(grow(spans).spans) == 4


def test_inferred_tools_that_share_an_id_are_not_taken_for_one_timed_tool() -> None:
    spans = [
        step("task", 0, 6),
        tool("own", 0, 1, "task", call_id="call_0"),
        tool("guess1", 0, 1, "task", call_id="call_0", inferred=True),
        tool("guess2", 4, 5, "task", call_id="call_0", inferred=True),
    ]
    assert len(grow(spans).spans) == 4
