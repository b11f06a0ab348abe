"""What a what-if predicts from one half of a set, against what the other half shows where the change came by itself."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import mean, median

from msgspec import Struct

from headway.trace.levers.case import Case
from headway.trace.stats import Line, fit
from headway.trace.whatif import what_if
from headway.trace.whatif_text import Iterations, Tool, WhatIf
from rig.evidence import Evidence, Read, Timed
from rig.holdout import Error, Value, errors, first_half, off

BANDS = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64))
FEWER = (1, 2, 4, 8)
AT = (0.5, 0.95)
CALLS = 100
"""Calls of a model in each half below which no line is tested."""
TASKS = 20
"""Tasks with about as many iterations that use a tool, below which its time is not tested."""
NOTABLE = 1.0
"""Seconds."""
OURS = "prediction"

Predictor = Callable[[Timed], float]


class Cell(Struct, frozen=True, kw_only=True):
    """One comparison of distributions."""

    what: str
    of: tuple[int, int]
    """Tasks (or calls) that predict, and that show."""
    errors: dict[tuple[str, float], Error]
    """By predictor and quantile; those that the cell is too small for are not in it."""


class Replays:
    """Outcomes of what-ifs, each worked out once: splits differ only in which are put together."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, WhatIf], float] = {}

    def __call__(self, task: Timed, change: WhatIf) -> float:
        """Seconds that the task would take; where that cannot be told, no saving is claimed, so what it took."""
        key = (id(task), change)
        if key not in self._known:
            case: Case = task.case
            after = what_if(case.study, [change]).after
            self._known[key] = task.e2e if after is None else after
        return self._known[key]


def halves(evidence: Evidence, seed: int) -> tuple[list[Timed], list[Timed]]:
    """The tasks that predict, and those that show."""
    sides: tuple[list[Timed], list[Timed]] = ([], [])
    for task in evidence.tasks:
        sides[not first_half(task.session, seed)].append(task)
    return sides


def iterations(evidence: Evidence, seed: int, replays: Replays) -> Iterator[Cell]:
    """Tasks of n + k iterations with k taken out, against tasks that had n."""
    first, second = halves(evidence, seed)
    for k in FEWER:
        for low, high in BANDS:
            base = [task for task in first if low <= task.n - k <= high]
            shown = [task for task in second if low <= task.n <= high]
            yield _cell(
                f"N {_band(low, high)}, {k} fewer",
                base,
                shown,
                {
                    OURS: lambda task, k=k: replays(task, Iterations(k)),
                    "E2E x n / (n + k)": lambda task, k=k: task.e2e * (task.n - k) / task.n,
                    "as it was": lambda task: task.e2e,
                },
                k,
            )


def tools(evidence: Evidence, seed: int, replays: Replays) -> Iterator[Cell]:
    """Tasks with slow uses of a tool, given its usual seconds, against tasks of as many iterations with usual uses.

    Slow is a mean use in the upper quarter of the first half's tasks with about as many iterations, usual one up to
    their median; what the slow ones are given is the median of the first half's usual ones. Tools are left out whose
    slow uses are less than `NOTABLE` slower: nothing could be seen of them.
    """
    first, second = halves(evidence, seed)
    for name in sorted({name for task in first for name in task.tools()}):
        for low, high in BANDS[1:]:
            uses, others = (_uses(side, name, low, high) for side in (first, second))
            if len(uses) < TASKS:
                continue
            seconds = sorted(uses.values())
            usual, slow = seconds[(len(seconds) - 1) // 2], seconds[3 * len(seconds) // 4]
            if slow - usual < NOTABLE:
                continue
            to = median(one for one in seconds if one <= usual)
            yield _cell(
                f"{name}, N {_band(low, high)}",
                [task for task in first if uses.get(id(task), 0.0) >= slow],
                [task for task in second if others.get(id(task), slow) <= usual],
                {
                    OURS: lambda task, name=name, to=to: replays(task, Tool(name, None, to)),
                    "as it was": lambda task: task.e2e,
                },
            )


def _band(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low}-{high}"


def _uses(side: Sequence[Timed], name: str, low: int, high: int) -> dict[int, float]:
    """Mean seconds of a use by the task, told by its identity."""
    inside = ((task, task.tools().get(name)) for task in side if low <= task.n <= high)
    return {id(task): mean(seconds) for task, seconds in inside if seconds}


def _cell(
    what: str, base: Sequence[Timed], shown: Sequence[Timed], predictors: dict[str, Predictor], fewer: int = 0
) -> Cell:
    """Predictions for the tasks of ``base`` beside what those of ``shown`` took.

    Each N (from 16 on, to an eighth) weighs as much on both sides, or two mixtures of N would be compared;
    an N that one side lacks is left out of both.
    """
    had, have = Counter(_about(task.n - fewer) for task in base), Counter(_about(task.n) for task in shown)
    used = [task for task in base if have[_about(task.n - fewer)]]
    actual = [
        Value(task.session, task.e2e, had[n] / have[n]) for task, n in ((one, _about(one.n)) for one in shown) if had[n]
    ]
    found: dict[tuple[str, float], Error] = {}
    for name, predict in predictors.items():
        predicted = [Value(task.session, predict(task)) for task in used]
        found |= {(name, q): one for q, one in errors(predicted, actual, AT).items()}
    return Cell(what=what, of=(len(used), len(actual)), errors=found)


def _about(n: int) -> tuple[int, int]:
    """N to four binary digits."""
    beyond = max(n.bit_length() - 4, 0)
    return beyond, n >> beyond


class Fitted(Struct, frozen=True, kw_only=True):
    """A model's line from one half, on the calls of the other."""

    model: str
    of: tuple[int, int]
    line: Line
    errors: dict[str, tuple[float, float]]
    """By predictor: median absolute relative error, and median error."""


def prefill(evidence: Evidence, seed: int) -> Iterator[Fitted]:
    """Seconds of a call by its computed tokens, call by call."""
    for model, (first, second) in _by_model(evidence.reads, seed).items():
        line = fit([(one.computed, one.seconds) for one in first])
        if line is None or min(len(first), len(second)) < CALLS:
            continue
        pairs = [(one.computed, one.seconds) for one in second]
        average, middle = mean(one.seconds for one in first), median(one.seconds for one in first)
        yield Fitted(
            model=model,
            of=(len(first), len(second)),
            line=line,
            errors={
                "line": off(pairs, lambda x, line=line: line.intercept + line.slope * x),
                "mean": off(pairs, lambda _, average=average: average),
                "median": off(pairs, lambda _, middle=middle: middle),
            },
        )


def context(evidence: Evidence, seed: int) -> Iterator[Cell]:
    """Calls that computed little with tokens added at the half's rate, as a budget's review does it, against others.

    The tokens are those that bring the first half's lower calls by tokens to its upper ones, at the median.
    """
    for model, (first, second) in _by_model(evidence.reads, seed).items():
        line = fit([(one.computed, one.seconds) for one in first])
        if line is None or min(len(first), len(second)) < CALLS:
            continue
        middle = median(one.computed for one in first)
        low = [one for one in first if one.computed < middle]
        high = [one for one in second if one.computed >= middle]
        if not low or not high:
            continue
        more = median(one.computed for one in first if one.computed >= middle) - median(one.computed for one in low)
        actual = [Value(one.session, one.seconds) for one in high]
        found: dict[tuple[str, float], Error] = {}
        for name, added in ((OURS, max(line.slope, 0.0) * more), ("as it was", 0.0)):
            predicted = [Value(one.session, one.seconds + added) for one in low]
            found |= {(name, q): one for q, one in errors(predicted, actual, AT).items()}
        yield Cell(what=f"{model}, +{more:,.0f} tokens", of=(len(low), len(high)), errors=found)


def _by_model(reads: Sequence[Read], seed: int) -> dict[str, tuple[list[Read], list[Read]]]:
    found: dict[str, tuple[list[Read], list[Read]]] = {}
    for one in reads:
        found.setdefault(one.model, ([], []))[not first_half(one.session, seed)].append(one)
    return found
