from tasks import call, step

from headway.app.report.set_figures import binned, period, saves, set_headline, spread_rows, with_interval
from headway.core.usage import Usage
from headway.trace.facts import TaskFacts, facts_of
from headway.trace.set_study import LeverRow
from headway.trace.sets import SetAnatomy, anatomy_of
from headway.trace.sources.source import Timing
from headway.trace.sources.verdict import judge
from headway.trace.stats import Quantile, quantile


def sets(*lengths: float, timing: Timing = "spans") -> SetAnatomy:
    """A set of tasks of one call each, that long."""
    rows: list[TaskFacts] = []
    for length in lengths:
        spans = [step("r", 0, length), call("c", 0, length, "r", usage=Usage(input_tokens=10, output_tokens=5))]
        rows.append(facts_of(spans, judge(spans, "made", timing)))
    return anatomy_of(rows)


def at(value: float, q: float) -> Quantile:
    return Quantile(q=q, value=value, low=None, high=None, n=1)


def test_the_headline_says_when_the_tail_is_of_the_same_kind() -> None:
    assert set_headline(sets(2.0, 4.0)) == (
        "2.000 s at p50 and 4.000 s at p95 (of 2 tasks: too few to be sure); 100 % of the time on the critical path is"
        " model time that cannot be split, and the slowest tenth spends its extra time above all on that."
    )


def test_without_times_it_says_so() -> None:
    made = sets(2.0, 4.0, timing="none")
    assert set_headline(made) == (
        "When things happened is not in this record: 2 tasks, 10 input tokens each on average."
    )
    rows = {row.name: row.known for row in spread_rows(made, 2)}
    assert (rows["E2E, s"], rows["input tokens"]) == ("none", "2 of 2")


def test_of_how_many_tasks_times_are_known_is_said_of_all() -> None:
    rows = [
        facts_of(spans, judge(spans, "made", timing))
        for timing in ("spans", "none")
        for spans in [[step("r", 0, 2), call("c", 0, 2, "r")]]
    ]
    made = anatomy_of(rows)
    assert set_headline(made).startswith("Of the 1 of 2 tasks with times: 2.000 s at p50")
    assert next(row.known for row in spread_rows(made, 2) if row.name == "E2E, s") == "1 of 2"


def test_every_row_says_how_it_was_measured() -> None:
    assert all(row.measured.endswith(".") for row in spread_rows(sets(1.0), 2))


def test_an_interval_stands_where_there_is_one() -> None:
    assert with_interval(quantile([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.5), str) == "3.0 [1.0, 6.0]"
    assert with_interval(quantile([1.0, 2.0], 0.5), str) == "1.0"


def test_many_different_n_share_bins_that_double() -> None:
    assert binned([(1, 5), (7, 2)]) == [("1", 5), ("7", 2)]
    eleven = [(n, 1) for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17)]
    assert binned(eleven) == [("1", 1), ("2", 1), ("3-4", 2), ("5-8", 4), ("9-16", 2), ("17-32", 1)]


def test_a_lever_is_worth_showing_from_one_per_cent_at_either_quantile() -> None:
    def row(p50: float, p95: float) -> LeverRow:
        return LeverRow(
            lever=None,  # type: ignore[arg-type] - what it is does not matter here
            tasks=1,
            of=1,
            before=(at(100.0, 0.5), at(200.0, 0.95)),
            after=(at(p50, 0.5), at(p95, 0.95)),
            tokens=None,
            cost=None,
        )

    assert saves(row(99.0, 200.0))
    assert saves(row(100.0, 198.0))
    assert not saves(row(99.5, 199.0))


def test_a_period_is_of_dates_only() -> None:
    assert period(sets(1.0)) is not None
    assert period(sets(1.0, timing="none")) is None
