"""What a record says of a task as a whole, where its calls say nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasks import call, span

from headway.core.money import MicroUsd
from headway.core.span import Span, Step, Work
from headway.core.spent import Spent, Sum
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.facts import facts_of
from headway.trace.own_totals import in_all, told_in_all
from headway.trace.sources.verdict import judge

RUN = Step(agent="a", used=Usage(input_tokens=1000, output_tokens=50), cost=MicroUsd(70))


def _task(*usages: Usage) -> list[Span]:
    return [span("run", 0, 9, RUN), *[call(str(i), i, i + 1, "run", usage=usage) for i, usage in enumerate(usages)]]


def test_the_records_own_total_stands_where_no_call_tells_its_part() -> None:
    spans = _task(Usage(), Usage())
    found = dissect(spans, prices=lambda _call, _at: None)
    assert (found.usage.input_tokens, found.usage.output_tokens, found.usage.cache_read) == (1000, 50, None)
    assert (found.spent.tokens.exact, found.cost, found.own_totals) == (1050, 70, ("tokens", "cost"))
    assert not [note for note in found.unknowns if note.startswith(("Input", "Output", "Cost"))]
    assert "Cached tokens are unknown for 2 of 2 calls, and so is their sum." in found.unknowns
    assert any(
        note.startswith("The record's own total for the whole task: tokens and cost.") for note in found.unknowns
    )


def test_a_row_of_a_set_has_them_and_its_models_have_not() -> None:
    spans = _task(Usage(), Usage())
    row = facts_of(spans, judge(spans, "made", "spans"), prices=lambda _call, _at: None)
    assert (row.spent.tokens.exact, row.spent.cost.exact) == (1050, 70)
    assert [model.spent.tokens.least for model in row.models.values()] == [None]


def test_the_verdict_says_whose_they_are() -> None:
    verdict = judge(_task(Usage()), "made", "spans")
    assert [(one.quality, one.known, one.of) for one in map(verdict.about, ("tokens", "cost"))] == [
        ("measured", 0, 1)
    ] * 2
    assert verdict.about("tokens").how.startswith("the record's own total")
    assert not verdict.about("tokens").whole


def test_what_all_calls_tell_is_not_overruled() -> None:
    found = dissect(_task(Usage(input_tokens=9, output_tokens=1)), prices=lambda _call, _at: None)
    assert (found.usage.input_tokens, found.spent.tokens.exact, found.own_totals) == (9, 10, ("cost",))


def test_a_total_of_less_than_is_known_already_is_not_used() -> None:
    found = dissect(_task(Usage(input_tokens=1500, output_tokens=1), Usage()), prices=lambda _call, _at: None)
    assert (found.spent.input_tokens.exact, found.spent.input_tokens.least) == (None, 1500)


@pytest.mark.parametrize("root", [Step(), Step(agent="a"), call("a", 0, 1).work])
def test_a_record_without_totals_says_no_more_than_its_calls(root: Work) -> None:
    calls = Spent(tokens=Sum(5, 1, 2))
    assert in_all(root, calls) is calls
    assert told_in_all(calls, calls) == ()


@given(st.integers(0, 99), st.integers(0, 3), st.none() | st.integers(0, 200))
def test_a_sum_never_shrinks(known_total: int, known: int, recorded: int | None) -> None:
    calls = Spent(input_tokens=Sum(known_total, known, 3))
    task = in_all(Step(used=Usage(input_tokens=recorded)), calls)
    assert task.input_tokens.total >= known_total
    assert task.input_tokens.of == 3
    if known == calls.input_tokens.of:
        assert task == calls
