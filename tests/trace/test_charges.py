import pytest
from msgspec import structs
from savings import LOOP, levers, priced, unpriced, usage
from tasks import call

from headway.core.money import MicroUsd, Price
from headway.core.span import ModelCall, Span
from headway.core.usage import Usage
from headway.trace.charges import of_parts
from headway.trace.findings import findings
from headway.trace.sources.verdict import judge
from headway.trace.totals import total
from headway.trace.tree import grow

BY_PRICE = 1200
"""Micro-USD of 1,000 tokens in at 1 and 100 out at 2."""


def made(cost: int | None, used: Usage | None = None) -> ModelCall:
    recorded = None if cost is None else MicroUsd(cost)
    return ModelCall(model="m", usage=used or usage(1000, 100), cost=recorded)


def costing(span: Span, cost: int) -> Span:
    assert isinstance(span.work, ModelCall)
    return structs.replace(span, work=structs.replace(span.work, cost=MicroUsd(cost)))


@pytest.mark.parametrize("cost", [None, BY_PRICE - 1, BY_PRICE, BY_PRICE + 1])
def test_a_price_holds_for_some_of_the_tokens_where_it_makes_the_cost_that_was_recorded(cost: int | None) -> None:
    one = made(cost)
    assert of_parts(priced)(one, 0) == priced(one, 0)


@pytest.mark.parametrize("cost", [1, BY_PRICE - 2, BY_PRICE + 2, 10 * BY_PRICE])
def test_how_another_cost_splits_over_the_tokens_is_unknown(cost: int) -> None:
    assert of_parts(priced)(made(cost), 0) is None


def test_a_cost_without_a_price_or_without_counts_to_hold_it_against_is_not_split_either() -> None:
    assert of_parts(unpriced)(made(BY_PRICE), 0) is None
    assert of_parts(priced)(made(BY_PRICE, Usage(input_tokens=1000)), 0) is None


def test_a_cost_shows_that_nothing_came_from_the_cache_where_the_record_does_not_say_so() -> None:
    untold = Usage(input_tokens=1000, output_tokens=100)
    assert of_parts(priced)(made(BY_PRICE, untold), 0) == priced(made(None), 0)
    assert of_parts(priced)(made(BY_PRICE - 90, untold), 0) is None  # a hundred tokens of it may have


def test_of_what_cost_nothing_no_part_cost_anything() -> None:
    assert of_parts(priced)(made(0), 0) == Price(input=0, output=0)
    assert of_parts(unpriced)(made(0), 0) == Price(input=0, output=0)


# by price the calls of the loop cost 1000 + 200, 1400 + 200 and 1000 + 1000 / 10 + 402 micro-USD
RECORDED = [costing(one, 900) if isinstance(one.work, ModelCall) else one for one in LOOP]
AS_LISTED = [costing(one, cost) if cost else one for one, cost in zip(LOOP, (1200, 0, 1600, 0, 1502), strict=True)]


def test_what_fewer_tokens_save_of_a_cost_that_is_not_by_price_is_unknown() -> None:
    found = levers(RECORDED)
    assert (found["half the output"].tokens, found["half the output"].cost) == (200, None)
    assert found["half the output"].cost_least is None
    assert found["full prefix-cache hits"].cost is None
    assert found["one iteration fewer"].cost == 900  # whole calls save what they cost
    listed = levers(AS_LISTED)
    assert {name: lever.cost for name, lever in listed.items()} == {
        name: lever.cost for name, lever in levers(LOOP).items()
    }


def test_the_account_says_why() -> None:
    tree = grow(RECORDED)
    calls = [i for i, span in enumerate(tree.spans) if isinstance(span.work, ModelCall)]
    assert (
        "What fewer tokens would save in money is unknown for 3 of 3 calls: their cost is on record, and no known price"
        " comes to it, so how it splits over the tokens is unknown."
    ) in total(tree, calls, priced).notes
    assert not any("fewer tokens" in note for note in total(grow(AS_LISTED), calls, priced).notes)


def test_findings_do_not_cost_more_than_what_was_paid() -> None:
    # 3,000 of 3,001 tokens written are reasoning: by price they cost 6,000 micro-USD, and the call cost 50 on record
    thought = call(
        "a", 0, 9, marks=(0, 1, 9), usage=Usage(input_tokens=10, output_tokens=3001, cache_read=0, reasoning=3000)
    )
    verdict = judge([thought], "made by hand", "spans")
    by_price = next(one for one in findings([thought], verdict, prices=priced) if one.name == "reasoning-dominates")
    recorded = next(
        one for one in findings([costing(thought, 50)], verdict, prices=priced) if one.name == "reasoning-dominates"
    )
    assert (by_price.cost, recorded.cost) == (6000, None)
