import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasks import call, step, tool

from headway.core.errors import BadInputError
from headway.core.money import Price
from headway.core.span import ModelCall, Span
from headway.core.usage import Usage
from headway.trace.whatif import Outcome, parse, what_if


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


def test_what_cannot_be_done_is_told() -> None:
    assert "Only 2 of 9" in asked("iterations -9").notes[0]
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
    assert both.after == 1  # one of them can be told
    assert asked("ttft 2x").after == 17.0  # there is prefill, and no queue that would be hidden in it
    no_calls = what_if([tool("t", 0, 2)], parse("ttft 0x"), prices=prices)
    assert (no_calls.after, no_calls.notes) == (2, ("queue and prefill do not occur in this task.",))


@pytest.mark.parametrize(
    "text", ["", "iterations 3", "cache 120%", "tools", "tpot", "warp 9x", "tool: 0.5x", "tool:x fast"]
)
def test_what_is_no_change_is_told(text: str) -> None:
    with pytest.raises(BadInputError, match=r"no change|no time"):
        parse(text)


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
