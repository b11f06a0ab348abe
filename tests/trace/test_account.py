"""What is said of a task whose record keeps no times: nothing about seconds, nor about how they are known."""

import pytest
from tasks import call, span, step

from headway.core.money import Price
from headway.core.span import Step, ToolUse
from headway.core.task import SpanId
from headway.core.usage import Usage
from headway.trace.account import account_of
from headway.trace.sources.source import Timing
from headway.trace.sources.verdict import judge

SPANS = (
    span("run", 0, 0, Step(agent="a")),
    call("ask", 0, 0, "run", asks=("ls",)),
    span("ls", 0, 0, ToolUse(name="ls", issued_by=SpanId("ask"), inferred=True), "run"),
    call("answer", 0, 0, "run"),
)


@pytest.mark.parametrize(
    ("timing", "missing"), [("none", "how long anything took"), ("durations", "when things happened")]
)
def test_a_record_without_times_is_not_said_to_have_any(timing: Timing, missing: str) -> None:
    account = account_of(SPANS, judge(SPANS, "made", timing))
    untrue = ("model time", "gap between", "Task TTFT")
    assert not [note for note in account.anatomy.unknowns if any(word in note for word in untrue)]
    assert account.anatomy.task_ttft is None
    (found,) = [one for one in account.findings if one.name == "no-times"]
    assert found.title == f"This record (made) does not say {missing}, so nothing is said of seconds."


def test_one_with_times_says_how_they_are_known() -> None:
    account = account_of(SPANS, judge(SPANS, "made", "spans"))
    assert any("unsplit" in note for note in account.anatomy.unknowns)
    assert any("gap between" in note for note in account.anatomy.unknowns)


def test_of_how_many_calls_the_cost_is_known_is_one_number() -> None:
    """Two calls tell their tokens, one of them what of these came from a cache, which has a price of its own."""
    price = Price(input=1_000_000, output=2_000_000, cache_read=100_000)
    told, silent = Usage(input_tokens=100, output_tokens=10, cache_read=50), Usage(input_tokens=100, output_tokens=10)
    for usages, quality, known in (((told, silent), "derived", 1), ((silent, silent), "unknown", 0)):
        spans = [step("r", 0, 2), *(call(f"c{i}", i, i + 1, "r", usage=usage) for i, usage in enumerate(usages))]
        account = account_of(spans, judge(spans, "made", "spans"), prices=lambda _call, _at: price)
        cost = account.verdict.about("cost")
        assert (cost.quality, cost.known, cost.of) == (quality, known, 2)
        assert account.anatomy.spent.cost.known == known
