import pytest
from hypothesis import given
from msgspec import structs
from savings import LOOP, levers, priced, seconds, unpriced, usage
from tasks import call, forests, tool

from headway.core.money import cost_at_least
from headway.core.span import ModelCall, Span
from headway.core.usage import Usage
from headway.trace.levers import rank
from headway.trace.study import study


def test_all_levers_of_a_small_loop() -> None:
    assert seconds(LOOP) == {
        "one iteration fewer": 4.0,  # of a with t, 5 s, and b with u, 3 s
        "half the output": 2.0,  # (1 + 1 + 2) / 2
        "tools twice as fast": 1.75,  # (3 + .5) / 2
        # b: 1100 of its 1400 tokens were known, so .3/1.4 of its 1 s stays; c computed 1000, of which 500 are new
        "full prefix-cache hits": round(1 - 300 / 1400 + 0.5, 9),
        "no hop": 1.0,  # .25 + .5 + .25
    }


def test_they_are_ranked_by_what_they_save() -> None:
    saved = [lever.seconds for lever in rank(LOOP, prices=priced)]
    assert saved == sorted(saved, reverse=True)
    assert levers(LOOP)["one iteration fewer"].share == pytest.approx(4 / 11.25)


def test_what_each_would_save_in_tokens_and_money() -> None:
    found = levers(LOOP)
    # b is dropped: 1400 x 1 + 100 x 2 micro-USD
    assert (found["one iteration fewer"].tokens, found["one iteration fewer"].cost) == (1300, 1400)
    # 50 + 50 + 100 tokens at 2
    assert (found["half the output"].tokens, found["half the output"].cost) == (200, 400)
    # 1100 + 500 tokens at 1 - 0.1
    assert (found["full prefix-cache hits"].tokens, found["full prefix-cache hits"].cost) == (1600, 1440)
    assert (found["no hop"].tokens, found["no hop"].cost) == (0, 0)


def test_what_is_unknown_stays_unknown() -> None:
    found = {lever.name: lever for lever in rank(LOOP, prices=unpriced)}
    assert (found["one iteration fewer"].tokens, found["one iteration fewer"].cost) == (1300, None)
    assert found["full prefix-cache hits"].cost is None
    assert found["half the output"].cost is None
    bare = [
        structs.replace(one, work=structs.replace(one.work, usage=Usage())) if isinstance(one.work, ModelCall) else one
        for one in LOOP
    ]
    assert {lever.name: lever.tokens for lever in rank(bare, prices=priced)} == {
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


@given(forests)
def test_no_lever_makes_a_task_longer_or_shorter_than_nothing(spans: list[Span]) -> None:
    e2e = study(spans).e2e
    usages = [span.work.usage for span in spans if isinstance(span.work, ModelCall)]
    there = sum((usage.input_tokens or 0) + (usage.output_tokens or 0) for usage in usages)
    paid = sum(cost_at_least(usage, priced(ModelCall(model="m"), 0)) + 1 for usage in usages)
    for lever in rank(spans, prices=priced):
        assert 0 < lever.seconds <= e2e
        assert lever.share == lever.seconds / e2e
        assert 0 <= (lever.tokens or 0) <= there
        assert lever.cost is None or lever.cost <= paid
