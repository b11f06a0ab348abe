from collections.abc import Sequence

import pytest
from hypothesis import given
from msgspec import structs
from tasks import call, forests, span, step, tool

from headway.core.money import Price
from headway.core.span import ErrorType, ModelCall, Retrieval, Span
from headway.core.usage import EngineTimings, Usage
from headway.trace.levers import Lever, rank
from headway.trace.study import study

ONE_USD = 1_000_000


def priced(_call: ModelCall, _at: float) -> Price:
    return Price(input=1 * ONE_USD, output=2 * ONE_USD, cache_read=ONE_USD // 10)


def unpriced(_call: ModelCall, _at: float) -> None:
    return None


def levers(spans: Sequence[Span]) -> dict[str, Lever]:
    return {lever.name: lever for lever in rank(spans, prices=priced)}


def seconds(spans: Sequence[Span]) -> dict[str, float]:
    return {name: round(lever.seconds, 9) for name, lever in levers(spans).items()}


def usage(read: int, wrote: int, cached: int = 0) -> Usage:
    return Usage(input_tokens=read, output_tokens=wrote, cache_read=cached)


#      hop prefill decode        hop  prefill decode       hop prefill decode
# a 0 -- .25 -- 1 -- 2 | t 2-5 | 5 - 5.5 -- 6.5 -- 7.5 | u 7.5-8 | 8 - 8.25 -- 9.25 -- 11.25
LOOP = [
    call("a", 0, 2, marks=(0.25, 1, 2), asks=("1",), usage=usage(1000, 100)),
    tool("t", 2, 5, by="a", inferred=True),
    call("b", 5, 7.5, marks=(5.5, 6.5, 7.5), asks=("2",), usage=usage(1400, 100)),
    tool("u", 7.5, 8, by="b", inferred=True),
    call("c", 8, 11.25, marks=(8.25, 9.25, 11.25), usage=usage(2000, 201, cached=1000)),
]


def test_all_levers_of_a_small_loop() -> None:
    assert seconds(LOOP) == {
        # all before c, 8 s, but c computes its 2000 tokens at .75 + 1 + 1 s for 1000 + 1400 + 1000, not in 1 s
        "answer in one call": round(8 - (2000 * 2.75 / 3400 - 1), 9),
        "one iteration fewer": 3.0,  # of a with t, 5 s, and b with u, 3 s: the lower median
        "half the output": 2.0,  # (1 + 1 + 2) / 2
        "tools twice as fast": 1.75,  # (3 + .5) / 2
        # b: 1100 of its 1400 tokens were known, so .3/1.4 of its 1 s stays; c computed 1000, of which 500 are new
        "full prefix-cache hits": round(1 - 300 / 1400 + 0.5, 9),
        "no hop": 1.0,  # .25 + .5 + .25
    }


def test_they_are_ranked_by_what_they_save() -> None:
    saved = [lever.seconds for lever in rank(LOOP, prices=priced)]
    assert saved == sorted(saved, reverse=True)
    assert levers(LOOP)["answer in one call"].share == pytest.approx((9 - 2000 * 2.75 / 3400) / 11.25)


def test_what_each_would_save_in_tokens_and_money() -> None:
    found = levers(LOOP)
    # b is dropped: 1400 x 1 + 100 x 2 micro-USD
    assert (found["one iteration fewer"].tokens, found["one iteration fewer"].cost) == (1500, 1600)
    # and a too: 1000 x 1 + 100 x 2, but c computes 1000 tokens that it took from the cache, at .9 more
    assert (found["answer in one call"].tokens, found["answer in one call"].cost) == (2600, 1900)
    # 50 + 50 + 100 tokens at 2
    assert (found["half the output"].tokens, found["half the output"].cost) == (200, 400)
    # 1100 + 500 tokens at 1 - 0.1
    assert (found["full prefix-cache hits"].tokens, found["full prefix-cache hits"].cost) == (1600, 1440)
    assert (found["no hop"].tokens, found["no hop"].cost) == (0, 0)


def test_what_is_unknown_stays_unknown() -> None:
    found = {lever.name: lever for lever in rank(LOOP, prices=unpriced)}
    assert (found["one iteration fewer"].tokens, found["one iteration fewer"].cost) == (1500, None)
    assert found["full prefix-cache hits"].cost is None
    assert found["half the output"].cost is None
    bare = [
        structs.replace(one, work=structs.replace(one.work, usage=Usage())) if isinstance(one.work, ModelCall) else one
        for one in LOOP
    ]
    assert {lever.name: lever.tokens for lever in rank(bare, prices=priced)} == {
        "answer in one call": None,
        "one iteration fewer": None,
        "half the output": None,
        "tools twice as fast": 0,
        "no hop": 0,
    }


def test_every_lever_says_what_it_assumes_its_rule_and_how() -> None:
    for lever in rank(LOOP, prices=priced):
        assert lever.assumes.endswith(".")
        assert lever.rule.endswith(".")
        assert lever.how.endswith(".")


@pytest.mark.parametrize("spans", [[], [tool("t", 0, 0)]])
def test_nothing_to_save_on_nothing(spans: list[Span]) -> None:
    assert rank(spans) == ()


def test_a_task_of_one_call_has_no_loop_to_shorten() -> None:
    assert seconds([call("a", 0, 2, marks=(0.25, 1, 2), usage=usage(10, 10))]) == {
        "half the output": 0.5,
        "no hop": 0.25,
    }


def test_a_call_that_could_not_be_split_saves_nothing_by_guess() -> None:
    assert seconds([call("a", 0, 2, usage=usage(10, 10))]) == {}


def test_half_of_a_long_loop() -> None:
    # calls of 1, 2, 3, 4 and the answer of 5 s: one of median length is 2 s, the two of middle length 2 + 3
    starts = (0, 1, 3, 6, 10)
    spans = [call(str(i), start, start + i + 1) for i, start in enumerate(starts)]
    assert seconds(spans) == {"answer in one call": 10, "2 iterations fewer": 5, "one iteration fewer": 2}


def test_an_iteration_goes_with_all_its_tools() -> None:
    # t and u both ran for a: without it neither is waited for
    spans = [call("a", 0, 1, asks=("1", "2")), tool("t", 1, 5, by="a"), tool("u", 1, 3, by="a"), call("b", 5, 6)]
    assert seconds(spans)["one iteration fewer"] == 5


def test_a_sub_agents_calls_stay_when_an_iteration_goes() -> None:
    spans = [call("a", 0, 1, asks=("1",)), tool("t", 1, 5, by="a"), call("sub", 1, 5, "t"), call("b", 5, 6)]
    assert seconds(spans)["one iteration fewer"] == 1


def test_nor_does_the_time_of_the_tool_around_them_go() -> None:
    spans = [call("a", 0, 1, asks=("1",)), tool("t", 1, 6, by="a"), call("sub", 2, 5, "t"), call("b", 6, 7)]
    assert seconds(spans)["one iteration fewer"] == 1


def test_one_call_keeps_what_was_retrieved() -> None:
    spans = [
        step("root", 0, 9),
        call("plan", 0, 3, "root"),
        span("r", 3, 5, Retrieval(), "root"),
        call("b", 5, 9, "root"),
    ]
    assert seconds(spans)["answer in one call"] == 3


def test_one_call_keeps_what_came_before_the_first() -> None:
    spans = [step("root", 0, 9), call("plan", 2, 5, "root"), call("b", 5, 9, "root")]
    assert seconds(spans)["answer in one call"] == 3


def test_a_loop_that_does_not_end_with_an_answer_cannot_be_one_call() -> None:
    spans = [call("a", 0, 2), call("b", 2, 4, asks=("1",))]
    assert "answer in one call" not in seconds(spans)
    failed = structs.replace(call("b", 2, 4), error=ErrorType("timeout"))
    assert "answer in one call" not in seconds([call("a", 0, 2), failed])


# --- tools in parallel


def test_timed_tools_of_one_response_take_the_longest_of_them() -> None:
    # t 1-3, u 3.5-7, v 7-8 in turn; at once they take 3.5
    spans = [call("a", 0, 1, asks=("1", "2", "3")), tool("t", 1, 3, by="a"), tool("u", 3.5, 7, by="a")]
    spans += [tool("v", 7, 8, by="a"), call("b", 8, 9)]
    assert seconds(spans)["tools in parallel"] == 3.5
    assert "equally long" not in levers(spans)["tools in parallel"].assumes


def test_tools_are_matched_to_their_response_by_the_call_id_of_the_latest_that_issued_it() -> None:
    # the engine uses ids again: t and u are of a, v and w of b
    spans = [call("a", 0, 1, asks=("1", "2")), tool("t", 1, 2, call_id="1"), tool("u", 2, 3, call_id="2")]
    spans += [
        call("b", 3, 4, asks=("1", "2")),
        tool("v", 4, 6, call_id="1"),
        tool("w", 6, 9, call_id="2"),
        call("c", 9, 10),
    ]
    assert seconds(spans)["tools in parallel"] == 1 + 2


def test_tools_of_different_responses_depend_on_each_other() -> None:
    spans = [
        call("a", 0, 1, asks=("1",)),
        tool("t", 1, 2, by="a"),
        call("b", 2, 3, asks=("2",)),
        tool("u", 3, 4, by="b"),
    ]
    assert "tools in parallel" not in seconds(spans)


def test_tools_that_ran_at_once_already_save_nothing() -> None:
    spans = [call("a", 0, 1, asks=("1", "2")), tool("t", 1, 3, by="a"), tool("u", 1, 2, by="a"), call("b", 3, 4)]
    assert "tools in parallel" not in seconds(spans)


def test_an_inferred_gap_is_split_evenly_between_its_tools_and_says_so() -> None:
    spans = [
        call("a", 0, 1, asks=("1", "2", "3")),
        *(tool(name, 1, 7, by="a", inferred=True) for name in "tuv"),
        call("b", 7, 8),
    ]
    assert seconds(spans)["tools in parallel"] == 4
    assert "one after another, equally long" in levers(spans)["tools in parallel"].assumes


def test_sub_agents_opened_by_one_response_can_run_at_once() -> None:
    # t with s: 4 s, u with v: 2 s
    spans = [call("a", 0, 1, asks=("1", "2")), tool("t", 1, 5, by="a"), call("s", 1, 5, "t")]
    spans += [tool("u", 5, 7, by="a"), call("v", 5, 7, "u"), call("b", 7, 8)]
    assert seconds(spans)["tools in parallel"] == 2


def test_a_tool_off_the_path_saves_nothing_by_being_faster() -> None:
    spans = [call("a", 0, 1), tool("slow", 1, 5), tool("quick", 1, 3), call("b", 5, 6)]
    assert seconds(spans)["tools twice as fast"] == 2  # slow takes 2 then, as quick would still be waited for: 1
    assert (
        seconds([call("a", 0, 1), tool("quick", 1, 3), call("sub", 1, 5), call("b", 5, 6)]).get("tools twice as fast")
        is None
    )


def test_no_queue() -> None:
    # sent at 0, first token at 2, of which the engine prefilled .5
    engine = EngineTimings(prefill_tokens=5, prefill_seconds=0.5, decode_tokens=5, decode_seconds=1)
    assert seconds([call("a", 0, 3, marks=(0, 2, 3), engine=engine)])["no queue"] == 1.5


def test_failed_calls_cost_their_time() -> None:
    failed = structs.replace(call("a", 0, 2, usage=usage(100, 10)), error=ErrorType("upstream_closed"))
    found = levers([failed, call("b", 2.5, 4)])["no failed calls"]
    assert (found.seconds, found.tokens, found.cost) == (2, 110, 120)


def test_a_lever_says_of_how_many_calls_it_could_not_tell() -> None:
    unknown = call("d", 12, 13, marks=(12, 12.5, 13))
    assert "Token counts are unknown for 1 more:" in levers([*LOOP, unknown])["full prefix-cache hits"].assumes


@given(forests)
def test_no_lever_makes_a_task_longer_or_shorter_than_nothing(spans: list[Span]) -> None:
    e2e = study(spans).e2e
    for lever in rank(spans, prices=priced):
        assert 0 < lever.seconds <= e2e
        assert lever.share == lever.seconds / e2e
        assert lever.tokens is None or lever.tokens >= 0
        assert lever.cost is None or lever.cost >= 0
