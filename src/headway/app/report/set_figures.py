"""What every face shows of a set: its sentence, its table of spreads, its bins, the levers that are worth showing."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from headway.app.report.figures import (
    EARLIEST,
    UNKNOWN,
    amount,
    bare,
    bound,
    count,
    decimals_for,
    dollars,
    moment,
    plural,
    seconds,
)
from headway.app.report.legend import SIGNS
from headway.trace.phases import Phase
from headway.trace.set_study import LeverRow
from headway.trace.sets import SetAnatomy, Spread
from headway.trace.stats import Quantile

MOST_BINS = 10
"""Different N up to which each has its own bin."""
LEAST_SHARE = 0.01
"""Of E2E at p50 or p95: a lever that saves less is not shown."""
PERCENT = {0.5: "p50", 0.95: "p95", 0.99: "p99"}
AT_LEAST = ", at least"
"""How the name of a row ends whose values are lower bounds."""
Figure = Callable[[float], str]


class SpreadRow(Struct, frozen=True):
    """One figure of the table of spreads, and how to print it."""

    name: str
    spread: Spread | None
    """``None``: known of no task."""
    figure: Figure
    measured: str
    least: bool = False
    """Whether its values are lower bounds: then they have no intervals, whose upper ends would bound nothing."""

    @property
    def known(self) -> str:
        """Of how many tasks it is known."""
        return "none" if self.spread is None else f"{count(self.spread.known)} of {count(self.spread.of)}"

    @property
    def mean(self) -> str:
        """Of those of which it is known."""
        if self.spread is None:
            return UNKNOWN
        return bound(self.figure(self.spread.mean)) if self.least else self.figure(self.spread.mean)

    def at(self, one: Quantile) -> str:
        """One of its quantiles, with its interval where there is one."""
        return bound(self.figure(one.value)) if self.least else with_interval(one, self.figure)


def set_headline(made: SetAnatomy) -> str:
    """The sentence that answers "where does the time go?" for a set."""
    if made.e2e is None or not made.phases:
        return f"When things happened is not in this record: {plural(made.tasks, 'task')}{_tokens_each(made)}."
    p50, p95 = made.e2e.quantiles[:2]
    top = made.phases[0]
    decimals = decimals_for(p50.value)
    tail = max(made.phases, key=lambda row: row.tail - row.typical)
    more = "that" if tail is top else SIGNS[Phase(tail.name)].noun
    known = "" if made.timed == made.tasks else f"Of the {made.timed:,} of {plural(made.tasks, 'task')} with times: "
    few = "" if p95.supported else f" (of {plural(p95.n, 'task')}: too few to be sure)"
    return (
        f"{known}{seconds(p50.value, decimals)} at p50 and {seconds(p95.value, decimals)} at p95{few};"
        f" {top.share * 100:.0f} % of the time on the critical path is {SIGNS[Phase(top.name)].noun},"
        f" {'and' if tail is top else 'but'} the slowest tenth spends its extra time above all on {more}."
    )


def _tokens_each(made: SetAnatomy) -> str:
    least, exact = made.least.input_tokens, made.input_tokens
    if least is not None:
        return f", at least {amount(least.mean)} input tokens each on average"
    return "" if exact is None else f", {amount(exact.mean)} input tokens each on average"


def period(made: SetAnatomy) -> str | None:
    """From when to when its tasks started; ``None`` where that is not known by date."""
    if made.first is None or made.last is None or made.first < EARLIEST:
        return None
    return f"{moment(made.first)} to {moment(made.last)}"


def set_decimals(made: SetAnatomy) -> int:
    """Decimals of a second to print for a set."""
    return decimals_for(made.e2e.quantiles[0].value) if made.e2e else 2


def spread_rows(made: SetAnatomy, decimals: int) -> tuple[SpreadRow, ...]:
    """E2E, task TTFT, N, tokens and money."""
    in_seconds: Figure = lambda value: bare(value, decimals)  # noqa: E731 - one of three formats
    return (
        SpreadRow("E2E, s", made.e2e, in_seconds, "From a task's first request to its last output, people's time out."),
        SpreadRow(
            "task TTFT, s",
            made.task_ttft,
            in_seconds,
            "From the user's request to the first text that a user can see, where its time was recorded.",
        ),
        SpreadRow(
            "N", made.n, amount, "Model calls on the loop: on the critical path, or where there are no times, all."
        ),
        SpreadRow(
            "input tokens", made.input_tokens, amount, "Sum over all calls of a task, cache reads and writes included."
        ),
        *_bounded("input tokens", made.least.input_tokens, amount),
        SpreadRow("output tokens", made.output_tokens, amount, "Sum over all calls of a task."),
        *_bounded("output tokens", made.least.output_tokens, amount),
        SpreadRow(
            "recomputed tokens",
            made.recomputed,
            amount,
            "Input tokens that an earlier call of the same task had read and that did not come from a cache. Where some"
            " tasks do not tell, those of one call, where it can be but 0, do not count as known either.",
        ),
        SpreadRow("cost per task", made.cost, dollars, "As recorded, else tokens times list price or your own."),
        *_bounded("cost per task", made.least.cost, dollars),
        SpreadRow("cost per step", made.step_cost, dollars, "The same for each call on the loop."),
        SpreadRow(
            "cost of tool retries",
            made.retries_cost,
            dollars,
            "Model calls that asked again for a tool that had failed. Where some tasks do not tell, those without tools"
            " or without all costs and all tools' ends do not count as known either: they are known only if it is 0.",
        ),
    )


def _bounded(name: str, least: Spread | None, figure: Figure) -> tuple[SpreadRow, ...]:
    if least is None:
        return ()
    how = "Tasks of which some calls do not report it are in this row, with what their other calls come to."
    return (SpreadRow(f"{name}{AT_LEAST}", least, figure, how, least=True),)


def with_interval(one: Quantile, figure: Figure) -> str:
    """A quantile with its 95 % interval, where there are values enough for one."""
    if one.low is None or one.high is None:
        return figure(one.value)
    return f"{figure(one.value)} [{figure(one.low)}, {figure(one.high)}]"


def binned(histogram: Sequence[tuple[int, int]]) -> list[tuple[str, int]]:
    """One bin per N while there are few; else bins that double: 1, 2, 3-4, 5-8 ..."""
    if len(histogram) <= MOST_BINS:
        return [(str(n), tasks) for n, tasks in histogram]
    bins: dict[tuple[int, int], int] = {}
    for n, tasks in histogram:
        high = 1 << max(n - 1, 0).bit_length()
        bins[high // 2 + 1, high] = bins.get((high // 2 + 1, high), 0) + tasks
    return [(str(high) if low >= high else f"{low}-{high}", tasks) for (low, high), tasks in sorted(bins.items())]


def saves(row: LeverRow) -> bool:
    """Whether a lever saves enough of the set, at p50 or p95, to be shown."""
    return any(
        before.value - after.value >= before.value * LEAST_SHARE
        for before, after in zip(row.before, row.after, strict=True)
    )
