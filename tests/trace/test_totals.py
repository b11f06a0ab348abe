from msgspec import structs
from tasks import call

from headway.core.money import Price
from headway.core.span import UNKNOWN_MODEL, ModelCall, Receipt
from headway.core.usage import Usage
from headway.trace.anatomy import dissect


def unknown_of(*usages: Usage) -> list[str]:
    spans = [call(str(i), i, i + 1, usage=usage) for i, usage in enumerate(usages)]
    return [note for note in dissect(spans).unknowns if "tokens are unknown" in note]


def test_a_sum_of_which_only_a_0_is_known_is_unknown_and_no_lower_bound() -> None:
    assert unknown_of(Usage(input_tokens=1, output_tokens=1, cache_read=0), Usage()) == [
        "Input and output tokens are unknown for 1 of 2 calls: their sums are lower bounds.",
        "Cached tokens are unknown for 1 of 2 calls, and so is their sum.",
    ]


def test_counts_that_are_missing_alike_are_told_together() -> None:
    assert unknown_of(Usage(input_tokens=1, output_tokens=1, cache_read=1), Usage()) == [
        "Input, output and cached tokens are unknown for 1 of 2 calls: their sums are lower bounds."
    ]
    assert unknown_of(Usage(output_tokens=1)) == [
        "Input and cached tokens are unknown for 1 of 1 call, and so are their sums."
    ]


def test_those_that_are_missing_apart_are_told_apart() -> None:
    assert unknown_of(Usage(input_tokens=1, output_tokens=1), Usage(input_tokens=1)) == [
        "Output tokens are unknown for 1 of 2 calls: their sum is a lower bound.",
        "Cached tokens are unknown for 2 of 2 calls, and so is their sum.",
    ]


def test_a_cost_of_which_only_the_cache_s_writes_are_unknown_is_a_lower_bound() -> None:
    # 2,000 x 3 + 8,000 x 0.3 + 500 x 15 micro-USD; writing to the cache costs more than that
    price = Price(input=3_000_000, output=15_000_000, cache_read=300_000, cache_write=3_750_000)
    spans = [call("a", 0, 1, usage=Usage(input_tokens=10_000, output_tokens=500, cache_read=8_000))]
    found = dissect(spans, prices=lambda _call, _at: price)
    assert found.cost is None
    assert (found.spent.cost.least, found.spent.cost.partial) == (15_900, True)
    assert "Cost is a lower bound: token counts that it needs are missing for 1 of 1 call." in found.unknowns


def test_without_a_price_there_is_no_lower_bound_either() -> None:
    found = dissect([call("a", 0, 1, usage=Usage(input_tokens=10, output_tokens=5))], prices=lambda _call, _at: None)
    assert found.spent.cost.least is None
    assert "Cost is unknown: no price is known for m." in found.unknowns


def test_a_model_that_the_record_does_not_name_is_told_as_such() -> None:
    named, unnamed = call("a", 0, 1), call("b", 1, 2)
    assert isinstance(unnamed.work, ModelCall)
    unnamed = structs.replace(unnamed, work=structs.replace(unnamed.work, model=UNKNOWN_MODEL))
    notes = dissect([named, unnamed], prices=lambda _call, _at: None).unknowns
    assert "Cost is unknown: no price is known for m." in notes
    assert "Cost is unknown: which model answered is not on record for 1 of 2 calls." in notes


def test_where_the_gateway_asked_for_them_the_engine_does_not_report_them() -> None:
    made = call("a", 0, 3, marks=(0, 1, 3))
    assert isinstance(made.work, ModelCall)
    receipt = Receipt(policy="least-loaded", winner="r0", reason="idle")
    seen = structs.replace(made, work=structs.replace(made.work, route=receipt))
    (note,) = [note for note in dissect([seen]).unknowns if note.startswith("Streamed without")]
    assert note.startswith("Streamed without token counts: 1 of 1 call. The gateway asked the engine for them")
    assert "include_usage" not in note


def test_a_call_that_reached_no_engine_has_no_model_time_to_be_split() -> None:
    assert not any("unsplit" in note for note in dissect([call("a", 0, 1, attempts=0)]).unknowns)
    assert any("unsplit" in note for note in dissect([call("a", 0, 1)]).unknowns)
