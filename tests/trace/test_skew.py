from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tasks import T0, call, forests, lost, step, tool

from headway.core.span import ModelCall, Span
from headway.trace.anatomy import dissect
from headway.trace.tree import ROOT_ID, grow


def at(host: str, *spans: Span) -> list[Span]:
    return [structs.replace(one, host=host) for one in spans]


def placed(spans: Sequence[Span]) -> dict[str, tuple[float, float]]:
    tree = grow(spans)
    rows = zip(tree.spans, tree.start, tree.end, strict=True)
    return {one.id: (round(start, 6), round(end, 6)) for one, start, end in rows}


AGENT = at("h1", step("root", 0, 4), call("a", 0.1, 3.9, "root"))


def test_what_another_hosts_clock_puts_outside_its_parent_goes_to_its_middle_with_all_below_it() -> None:
    # h2 is 2 s behind: -1.9..1.8 is 3.7 s long, and fits into a's 3.8 with 0.05 s on either side
    engine = call("e", -1.85, 1.75, "post", marks=(-1.85, -1.05, 1.75))
    tree = grow([*AGENT, *at("h2", step("post", -1.9, 1.8, "a"), engine)])
    assert placed(tree.spans) == {"root": (0, 4), "a": (0.1, 3.9), "post": (0.15, 3.85), "e": (0.2, 3.8)}
    assert {tree.spans[i].id: round(seconds, 6) for i, seconds in tree.moved.items()} == {"post": 2.05, "e": 2.05}
    (moved,) = (one.work for one in tree.spans if one.id == "e")
    assert isinstance(moved, ModelCall)
    assert moved.first_token is not None
    assert round(moved.first_token - T0, 6) == 1
    (note,) = tree.notes
    assert note.startswith("Clocks of different hosts disagree by up to 2.050 s: 2 spans that lay outside")


def test_the_bar_tells_by_how_much_a_span_was_moved() -> None:
    bars = dissect([*AGENT, *at("h2", tool("t", 8, 10, "a"))]).bars
    assert [(bar.span.name, bar.moved) for bar in bars] == [("root", 0), ("a", 0), ("t", -7)]
    assert (bars[2].start, bars[2].end) == (1, 3)


def test_what_fits_as_it_is_stays() -> None:
    spans = [*AGENT, *at("h2", tool("t", 0.1, 1, "a"), tool("u", 2.9995, 3.9005, "a"))]
    assert placed(spans)["t"] == (0.1, 1)
    assert grow(spans).moved == {}


def test_what_is_longer_than_its_parent_is_no_matter_of_clocks() -> None:
    assert placed([*AGENT, *at("h2", tool("t", 1, 9, "a"))])["t"] == (1, 9)


def test_on_one_host_and_on_unknown_ones_no_clock_is_doubted() -> None:
    assert placed([*AGENT, *at("h1", tool("t", 8, 10, "root"))])["t"] == (8, 10)
    assert placed([*AGENT, tool("t", 8, 10, "root")])["t"] == (8, 10)
    assert placed([*AGENT, tool("t", 8, 10, "root"), *at("h2", tool("u", 1, 2, "root"))])["t"] == (8, 10)


def test_two_spans_of_one_host_keep_their_order() -> None:
    # each alone would go to the middle, on top of the other
    spans = [*AGENT, *at("h2", tool("t", 8, 9, "root"), tool("u", 9.5, 11, "root"))]
    assert (placed(spans)["t"], placed(spans)["u"]) == ((0.5, 1.5), (2, 3.5))


def test_a_call_back_to_the_first_host_is_judged_by_where_it_lands() -> None:
    # h1 calls h2, which is 10 s ahead and calls h1 again: that is right already
    spans = [*AGENT, *at("h2", tool("t", 11, 13, "a")), *at("h1", tool("back", 1.5, 2.5, "t"))]
    assert (placed(spans)["t"], placed(spans)["back"]) == ((1, 3), (1.5, 2.5))


def test_clocks_more_than_an_hour_apart_are_left_and_told() -> None:
    tree = grow([*AGENT, *at("h2", tool("t", 8000, 8001, "a"))])
    assert tree.moved == {}
    assert tree.notes == ["Clocks of different hosts disagree by more than 3,600 s: left as recorded."]
    assert placed(tree.spans)["t"] == (8000, 8001)


def test_work_that_nobody_awaits_or_that_never_ended_proves_nothing() -> None:
    consumer = structs.replace(tool("t", 8, 9, "root"), awaited=False)
    assert placed([*AGENT, *at("h2", consumer)])["t"] == (8, 9)
    assert placed([*AGENT, *at("h2", tool("t", 8, None, "root"))])["t"] == (8, 8)


@given(forests, st.lists(st.sampled_from(["h1", "h2", None]), min_size=14, max_size=14))
def test_nothing_is_dropped_and_every_raw_time_can_be_had_again(spans: list[Span], hosts: list[str | None]) -> None:
    spread = [structs.replace(one, host=host) for one, host in zip(spans, hosts, strict=False)]
    tree = grow(spread)
    assert not lost(spans, tree.spans)
    assert {one.id for one in tree.spans} - {ROOT_ID} <= {one.id for one in spans}
    for i, one in enumerate(tree.spans):
        raw = one.start - tree.moved.get(i, 0.0)
        assert one.id == ROOT_ID or any(abs(raw - other.start) < 1e-6 for other in spans if other.id == one.id)
