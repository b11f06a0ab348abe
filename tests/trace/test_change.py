from tasks import call, step, tool

from headway.trace.change import Change, below, inner, shares_of
from headway.trace.phases import DECODE, HOP, PREFILL, TOOL
from headway.trace.study import study

# root 0-9: hop 0-1, a 1-4 (prefill 1-2, decode 2-4), hop 4-5, t 5-9
TASK = study([step("root", 0, 9), call("a", 1, 4, "root", marks=(1, 2, 4)), tool("t", 5, 9, "root")])


def test_each_gap_and_tail_is_shared_out_by_phase() -> None:
    found = {
        phase: [(one.node, one.is_gap, one.seconds) for one in shares] for phase, shares in shares_of(TASK).items()
    }
    assert found[HOP] == [(1, True, 1), (2, True, 1)]
    assert (found[PREFILL], found[DECODE], found[TOOL]) == ([(1, False, 1)], [(1, False, 2)], [(2, False, 4)])


def test_no_change_saves_nothing() -> None:
    assert Change(TASK).saving() == 0


def test_scaling_and_dropping() -> None:
    shares = shares_of(TASK)
    change = Change(TASK)
    change.scale(shares[TOOL], lambda _: 0.25)
    assert change.saving() == 3
    change.scale(shares[HOP], lambda _: 0.5)
    assert change.saving() == 4
    change.drop(1)
    assert change.saving() == 7.5


def test_a_span_that_overlapped_what_it_waited_for_keeps_overlapping() -> None:
    # b started 0.5 ms before a had ended: without its gap it still would
    case = study([tool("a", 0, 1), tool("b", 0.9995, 2)])
    change = Change(case)
    change.drop_gap(2)
    assert change.gap == case.graph.gap


def test_what_a_span_holds_at_any_depth() -> None:
    case = study([tool("t", 0, 9), tool("u", 1, 8, "t"), tool("v", 2, 3, "u"), tool("w", 4, 5, "u")])
    assert below(inner(case), 1) == [1, 2, 3]
    assert below(inner(case), 3) == [3]


def test_shortening_leaves_an_overlap_as_it_is() -> None:
    change = Change(TASK)
    change.shorten([1], [2], 0.5)  # the hop before a, 1 s, and the tool, 4 s
    assert change.saving() == 2.5
    close = study([call("a", 0, 4), tool("t", 3.9995, 6)])
    before = close.graph.gap[2]
    overlapping = Change(close)
    overlapping.shorten([2], [], 0.5)
    assert before < 0
    assert overlapping.gap[2] == before
