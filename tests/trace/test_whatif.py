import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tasks import call, step, tool

from headway.core.errors import BadInputError
from headway.core.money import MicroUsd, Price
from headway.core.span import ErrorType, ModelCall, Span
from headway.core.usage import Usage
from headway.trace.prices import charge
from headway.trace.whatif import Outcome, what_if
from headway.trace.whatif_text import Model, Tool, parse


def prices(_call: ModelCall, _at: float) -> Price:
    """A micro-USD per input token, ten per output token, a tenth for what is cached."""
    return Price(input=1_000_000, output=10_000_000, cache_read=100_000)


def three_turns() -> list[Span]:
    """Three turns: 1 s of prefill, 1 of decode; after the first two, two tools of 2 s each, one after the other.

    E2E = 3 x 2 + 2 x 4 = 14. Each prompt holds the one before it, its answer and 100 tokens of results; nothing cached.
    """
    spans = [step("task", 0, 14, agent="helper")]
    for turn, at in enumerate((0, 6, 12)):
        usage = Usage(input_tokens=1000 + 200 * turn, output_tokens=100, cache_read=0)
        asks = () if turn == 2 else (f"a{turn}", f"b{turn}")
        spans.append(call(f"c{turn}", at, at + 2, "task", marks=(at, at + 1, at + 2), asks=asks, usage=usage))
        for place, name in enumerate(asks):
            start = at + 2 + 2 * place
            spans.append(tool(name, start, start + 2, "task", by=f"c{turn}", call_id=name))
    return spans


def asked(text: str) -> Outcome:
    return what_if(three_turns(), parse(text), prices=prices)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("iterations -1", 8.0),  # 2 s of call and 4 of tools gone
        ("iterations -2", 2.0),
        ("tools parallel", 10.0),  # 4 s of tools become 2, twice
        ("tpot 0.5x", 12.5),
        ("tpot 2x", 17.0),
        ("prefill 0x", 11.0),
        ("tools 0.5x", 10.0),
        ("tool:look 0.5x", 10.0),
        ("tool:look 0.5 s", 8.0),  # four uses of 2 s
        ("model:m 0.5x", 11.0),
        ("model 0.5x", 11.0),
        ("tpot 0.5x, output 0.5x", 11.75),  # a quarter of three seconds is left
        ("tools parallel, tools 0.5x", 8.0),
        ("iterations -1, tools parallel, tpot 0.5x", 5.0),  # 2 x (1 + .5) + 2
        ("hop 0x", 14.0),
        # of 1200 and 1400 computed, 1100 and 1300 were known: a twelfth and a fourteenth of the second is left
        ("cache 100%", 12 + 100 / 1200 + 100 / 1400),
        ("cache 50%", 14 - (1100 / 1200 + 1300 / 1400) / 2),
    ],
)
def test_the_path_is_recomputed_with_all_changes(text: str, after: float) -> None:
    outcome = asked(text)
    assert outcome.before == 14.0
    assert outcome.after == pytest.approx(after)


def test_tokens_and_money_are_of_the_calls_that_change() -> None:
    assert (asked("iterations -1").tokens, asked("iterations -1").cost) == (1200, 2100)  # of c0 and c1
    cached = asked("cache 100%")
    assert (cached.tokens, cached.cost) == (2400, 2160)  # nine tenths of a micro-USD each
    half = asked("output 0.5x")
    assert (half.tokens, half.cost) == (150, 1500)
    assert (asked("tpot 0.5x").tokens, asked("tpot 0.5x").cost) == (0, 0)
    dearer = asked("output 2x")
    assert (dearer.tokens, dearer.cost) == (-300, -3000)


def two_calls() -> list[Span]:
    """65 tokens read and 10 written in 1 + 1 s; then a prompt of these 75 and 5 more, of which nothing was cached."""
    first = Usage(input_tokens=65, output_tokens=10, cache_read=0)
    second = Usage(input_tokens=80, output_tokens=20, cache_read=0)
    return [
        step("task", 0, 5, agent="helper"),
        call("c", 0, 2, "task", marks=(0, 1, 2), asks=("t",), usage=first),
        tool("t", 2, 3, "task", by="c", call_id="t"),
        call("d", 3, 5, "task", marks=(3, 4, 5), usage=second),
    ]


def test_what_is_not_done_any_more_is_not_saved_a_second_time() -> None:
    def of(text: str) -> Outcome:
        return what_if(two_calls(), parse(text), prices=prices)

    assert of("iterations -1").tokens == 75
    assert of("cache 100%").tokens == 75
    both = of("iterations -1, cache 100%")
    # the answer reads for itself what nobody had read before it: 2 s are left, and 75 tokens are saved once
    assert (both.tokens, both.cost, both.after) == (75, 65 + 100, 2.0)
    # of 10 and 20 written, half is not: with the first call gone, 10 of the second's
    assert of("iterations -1, output 0.5x").tokens == 75 + 10
    assert of("iterations -1, output 0x, cache 100%").tokens == 75 + 20


def test_of_iterations_thinned_out_as_many_read_again_as_have_one_before_them() -> None:
    # c0 and c1 are half left, 1200 / 2 + 1300 / 2 tokens gone; c1 (half) reads 1100 again, c2 1300 where c1 is left
    both = asked("iterations -1, cache 100%")
    assert both.tokens == (1100 + 1300) / 2 + 1100 / 2 + 1300 / 2
    # c0 and c1 take 3 of their 6 s each; of c1's second of reading a twelfth is left, of c2's what stays uncached
    assert both.after == pytest.approx(3 + (6 - 1100 / 1200) / 2 + 2 - 1300 / 1400 / 2)


def test_an_answer_that_broke_off_would_have_done_so_however_short() -> None:
    *others, last = two_calls()
    outcome = what_if([*others, structs.replace(last, error=ErrorType("upstream_closed"))], parse("output 0x"))
    assert (outcome.tokens, outcome.after) == (10, 4.0)


def test_money_saved_is_unknown_where_the_cost_on_record_is_not_by_price() -> None:
    def costing(span: Span, cost: int) -> Span:
        assert isinstance(span.work, ModelCall)
        return structs.replace(span, work=structs.replace(span.work, cost=MicroUsd(cost)))

    first, called, used, last = two_calls()
    spans = [first, costing(called, 100), used, costing(last, 30)]  # by price 165 and 280
    half = what_if(spans, parse("output 0.5x"), prices=prices)
    assert (half.tokens, half.cost, half.cost_least) == (15, None, None)
    assert half.notes == (
        (
            "What fewer tokens of 2 calls would save in money is unknown: their cost is on record, and no known price"
            " comes to it."
        ),
    )
    assert what_if(spans, parse("iterations -1"), prices=prices).cost == 100
    both = what_if(spans, parse("iterations -1, output 0.5x"), prices=prices)
    assert (both.cost, both.cost_least) == (None, 100)


_counts = st.integers(0, 1000)


@st.composite
def loops(draw: st.DrawFn) -> list[Span]:
    """Calls one after another, each asking for a tool of a second but the last; all their tokens are known."""
    spans, at, size = list[Span](), 0.0, draw(st.integers(1, 5))
    for number in range(size):
        read = draw(_counts)
        usage = Usage(input_tokens=read, output_tokens=draw(_counts), cache_read=draw(st.integers(0, read)))
        asks = (f"t{number}",) if number < size - 1 else ()
        made = call(f"c{number}", at, at + 2, "task", marks=(at, at + 1, at + 2), asks=asks, usage=usage)
        assert isinstance(made.work, ModelCall)
        cost = draw(st.none() | st.sampled_from([MicroUsd(0), MicroUsd(1), MicroUsd(500)]))
        spans.append(structs.replace(made, work=structs.replace(made.work, cost=cost)))
        if asks:
            spans.append(tool(asks[0], at + 2, at + 3, "task", by=f"c{number}", call_id=asks[0]))
        at += 3
    return [step("task", 0, at - 1, agent="helper"), *spans]


_less = st.one_of(
    st.integers(0, 6).map("iterations -{}".format),
    st.integers(0, 100).map("cache {}%".format),
    st.integers(0, 100).map(lambda per_cent: f"output {per_cent / 100}x"),
    st.sampled_from(["tools parallel", "tpot 0.5x", "prefill 0.25x", "model:m 0.5x", "tool:look 0.1s", "hop 0x"]),
)


@given(loops(), st.lists(_less, min_size=1, max_size=4, unique_by=lambda text: text.partition(" ")[0]))
def test_changes_together_save_no_more_than_there_is_nor_than_each_and_no_less_than_any(
    spans: list[Span], texts: list[str]
) -> None:
    def of(text: str) -> Outcome:
        return what_if(spans, parse(text), prices=prices)

    calls = [span.work for span in spans if isinstance(span.work, ModelCall)]
    there = sum((one.usage.input_tokens or 0) + (one.usage.output_tokens or 0) for one in calls)
    paid = sum(charge(one, prices(one, 0)) or 0 for one in calls)
    together, alone = of(", ".join(texts)), [of(text) for text in texts]
    assert together.after is not None
    assert 0 <= together.after <= together.before
    assert together.tokens is not None
    assert 0 <= together.tokens <= there
    tokens = [one.tokens or 0 for one in alone]
    assert max(tokens) <= together.tokens <= sum(tokens) + len(tokens)  # each is rounded down
    least = 0 if together.cost_least is None else together.cost_least
    assert 0 <= least <= paid
    again = of(", ".join(reversed(texts)))
    assert (again.tokens, again.cost, again.after) == (together.tokens, together.cost, together.after)


_STAYS = "No iteration could go: the answer stays, and so do a sub-agent's calls."


def test_what_cannot_be_done_is_told() -> None:
    assert asked("iterations -9").notes[0].startswith("Only 2 of 9 iterations could go: ")
    lone = what_if([call("c", 0, 1)], parse("iterations -1"))
    assert (lone.notes, lone.alike) == ((_STAYS,), (_STAYS,))
    assert asked("tool:other 0.5x").notes == ("tool:other does not occur in this task.",)
    assert asked("model:gpt 0.5x").after == 14.0
    assert "queue does not occur" in asked("queue 0x").notes[0]
    blind = what_if([call("c", 0, 1), call("d", 1, 2)], parse("cache 100%"), prices=prices)
    assert blind.notes == (
        "What 1 call read, or took from a cache, is not recorded: what a better cache would save on them is unknown.",
    )
    assert (blind.after, blind.tokens, blind.tokens_least, blind.cost, blind.cost_least) == (None,) * 5


def test_phases_that_were_not_timed_apart_leave_what_comes_of_them_unknown() -> None:
    unsplit = [call("c", 0, 1), call("d", 1, 2)]
    for text, named in (
        ("ttft 0.5x", "queue and prefill were"),
        ("prefill 0x", "prefill was"),
        ("tpot 2x", "decode was"),
    ):
        outcome = what_if(unsplit, parse(text), prices=prices)
        assert (outcome.before, outcome.after) == (2, None)
        assert outcome.notes == (f"{named} not timed apart in this task: what that would save is unknown.",)
    both = what_if(unsplit, parse("model 0.5x, queue 0x"), prices=prices)
    assert (both.after, both.partly) == (1, True)  # one of them can be told
    assert not what_if(unsplit, parse("model 0.5x"), prices=prices).partly
    assert not what_if(unsplit, parse("queue 0x"), prices=prices).partly  # nothing of it can
    lone = what_if(unsplit[:1], parse("cache 100%, model 0.5x"), prices=prices)
    assert (lone.after, lone.partly) == (0.5, False)  # where nothing is read again, that takes no time
    known = [
        call(f"c{i}", i, i + 1, usage=Usage(input_tokens=10 + 9 * i, output_tokens=1, cache_read=0)) for i in (0, 1)
    ]
    assert what_if(known, parse("cache 100%"), prices=prices).after is None  # how long the reading took is not
    assert asked("ttft 2x").after == 17.0  # there is prefill, and no queue that would be hidden in it
    no_calls = what_if([tool("t", 0, 2)], parse("ttft 0x"), prices=prices)
    assert (no_calls.after, no_calls.notes) == (2, ("queue and prefill do not occur in this task.",))


@pytest.mark.parametrize(
    "text",
    [
        *("", "iterations 3", "cache 120%", "tools", "tpot", "warp 9x", "tool: 0.5x", "tool:x fast", "model:m 3 s"),
        *("tool:x 1s, tool:x 2s", f"iterations -{'9' * 5000}", f"output {'9' * 400}x"),
    ],
)
def test_what_is_no_change_is_told(text: str) -> None:
    with pytest.raises(BadInputError, match=r"no change|no time|several lengths"):
        parse(text)


def test_a_name_may_have_spaces() -> None:
    assert parse("tool:web search 0.5x, tool:web search 0.4 s, model:my model 2x") == (
        Tool("web search", 0.5, None),
        Tool("web search", None, 0.4),
        Model("my model", 2.0),
    )


@given(st.floats(0, 1), st.integers(0, 3), st.booleans())
def test_less_of_anything_never_takes_longer(factor: float, fewer: int, parallel: bool) -> None:
    texts = [f"tpot {factor:.4f}x", f"prefill {factor:.4f}x", f"tools {factor:.4f}x", f"iterations -{fewer}"]
    outcome = asked(", ".join(texts + ["tools parallel"] * parallel))
    assert outcome.after is not None
    assert 0 <= outcome.after <= 14.0 + 1e-9


def test_writing_of_which_no_first_token_was_timed_is_taken_from_how_calls_rise_with_their_output() -> None:
    # 1 s and 20 ms for each token: 1,500 tokens are 30 of the 35 s
    spans, start = list[Span](), 0.0
    for number, tokens in enumerate((100, 200, 300, 400, 500)):
        usage = Usage(input_tokens=1000, output_tokens=tokens)
        spans.append(call(str(number), start, start + 1 + 0.02 * tokens, usage=usage))
        start += 1 + 0.02 * tokens
    for said in ("output 0.5x", "tpot 0.5x"):
        found = what_if(spans, parse(said), prices=prices)
        assert (found.before, found.after) == (pytest.approx(35), pytest.approx(20))
        assert any("how calls' time rises with their output" in note for note in found.notes)
    both = what_if(spans, parse("tpot 0.5x, model:m 0.5x"), prices=prices)
    assert both.after == pytest.approx(10)
    few = what_if(spans[:4], parse("tpot 0.5x"), prices=prices)
    assert few.after is None
    assert any("was not timed apart" in note for note in few.notes)
