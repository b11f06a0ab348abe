"""Sub-agents that a gateway saw: their tools are known by one gap alone, in which each ended at some time."""

from hypothesis import given
from hypothesis import strategies as st
from tasks import call, tool

from headway.core.span import Span
from headway.trace.anatomy import dissect
from headway.trace.waterfall import Bar


def fan_out(*ends: float, plain: bool = False) -> list[Span]:
    """A call until 1 that asks for tools; the next call starts at 10. Each tool holds a sub-agent's call from 1 on."""
    asks = tuple(f"c{number}" for number in range(len(ends) + plain))
    spans = [call("ask", 0, 1, asks=asks), call("next", 10, 12)]
    spans += [tool(f"t{i}", 1, 10, by="ask", inferred=True) for i in range(len(asks))]
    return spans + [call(f"sub{i}", 1, end, f"t{i}") for i, end in enumerate(ends)]


def bars(spans: list[Span]) -> dict[str, Bar]:
    return {bar.span.id: bar for bar in dissect(spans).bars}


def test_a_sub_agent_that_ended_sooner_than_another_has_that_much_slack() -> None:
    # sub1 ends at 9 and its tool with the gap, 1 s later; so sub0, which ended at 4, could take 5 s longer
    found = bars(fan_out(4, 9))
    assert (found["sub0"].slack, found["sub1"].slack) == (5, 0)
    assert found["sub1"].on_path == 8
    assert found["sub0"].on_path == 0


def test_the_order_in_which_tools_were_recorded_changes_nothing() -> None:
    found = bars(fan_out(9, 4))
    assert (found["sub0"].slack, found["sub1"].slack) == (0, 5)
    assert found["sub0"].on_path == 8


def test_how_long_the_tools_themselves_took_is_unknown_and_so_is_their_slack() -> None:
    found = bars(fan_out(4, 9, plain=True))
    assert (found["t0"].slack, found["t2"].slack) == (None, None)
    assert found["t1"].slack == 0, "what the path leads through has none"
    assert found["sub0"].slack == 5


def test_of_tools_that_hold_nothing_one_is_on_the_path_and_of_the_others_nothing_is_known() -> None:
    tools = [tool(name, 1, 10, by="ask", inferred=True) for name in ("t", "u")]
    found = bars([call("ask", 0, 1, asks=("a", "b")), *tools, call("next", 10, 12)])
    assert sorted(bar.slack is None for bar in (found["t"], found["u"])) == [False, True]


def test_a_tool_alone_in_its_gap_is_known() -> None:
    found = bars(fan_out(4))
    assert (found["t0"].slack, found["sub0"].slack) == (0, 0)


def test_that_it_was_inferred_is_told() -> None:
    assert any("taken to have ended as long after it" in note for note in dissect(fan_out(4, 9)).unknowns)
    assert not any("taken to have ended as long after it" in note for note in dissect(fan_out(4)).unknowns)


@given(st.lists(st.floats(1.5, 9.5), min_size=2, max_size=5), st.booleans())
def test_the_last_has_none_and_every_other_as_much_as_it_was_sooner(ends: list[float], plain: bool) -> None:
    found = bars(fan_out(*ends, plain=plain))
    for i, end in enumerate(ends):
        slack = found[f"sub{i}"].slack
        assert slack is not None
        assert abs(slack - (max(ends) - end)) < 1e-6
