import pytest
from msgspec import structs
from savings import LOOP, levers, usage
from tasks import call

from headway.core.span import ErrorType, Span


def test_a_lever_says_of_how_many_calls_it_could_not_tell() -> None:
    unknown = call("d", 12, 13, marks=(12, 12.5, 13))
    assert (
        "What 1 more read, or took from a cache, is not recorded:"
        in levers([*LOOP, unknown])["full prefix-cache hits"].assumes
    )


def test_half_the_output_where_no_first_token_was_timed() -> None:
    # 1 s and 20 ms for each token: 1,500 tokens take 30 s, half of them 15
    spans, start = list[Span](), 0.0
    for number, tokens in enumerate((100, 200, 300, 400, 500)):
        spans.append(call(str(number), start, start + 1 + 0.02 * tokens, usage=usage(1000, tokens)))
        start += 1 + 0.02 * tokens
    found = levers(spans)["half the output"]
    assert found.seconds == pytest.approx(15)
    assert found.tokens == 750
    assert found.assumes.endswith("it is taken from how calls' time rises with their output.")
    assert "half the output" not in levers(spans[:4])


def test_half_of_an_answer_that_broke_off_saves_nothing() -> None:
    # a writes 2 s, b 4 s and breaks off: half of a's alone is saved
    whole = call("a", 0, 3, marks=(0, 1, 3), usage=usage(10, 40))
    cut = call("b", 3, 8, marks=(3, 4, 8), usage=usage(10, 100))
    cut = structs.replace(cut, error=ErrorType("upstream_closed"))
    lever = levers([whole, cut])["half the output"]
    assert (lever.seconds, lever.tokens) == (1, 20)
    assert "half the output" not in levers([cut])
