"""What a campaign comes to, in numbers. A failure has no time: percentiles with failures count it as never ending."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf, sqrt
from typing import Final

from msgspec import Struct

from headway.bench.campaign import Campaign
from headway.bench.slo import Slo, first_visible
from headway.bench.spans import HeardCall, HeardTask
from headway.trace.stats import Quantile, quantiles

_WANTED: Final = (0.5, 0.9, 0.95, 0.99)
_Z: Final = 1.959964
"""Standard deviations either side of a normal's mean that hold 95 % of it."""


class Spread(Struct, frozen=True, kw_only=True):
    """One figure over many tasks or calls, in seconds unless its unit says otherwise."""

    name: str
    of: str
    """``task``, ``call`` or ``gap``: what it was measured at."""
    how: str
    """The formula."""
    quantiles: tuple[Quantile, ...]
    """Of those that succeeded; empty: nothing was measured."""
    with_failures: tuple[float | None, ...]
    """The same ones where failures count as never ending, ``None``; empty: nothing failed."""


class Share(Struct, frozen=True, kw_only=True):
    """A proportion with its 95 % interval (Wilson 1927)."""

    good: int
    of: int
    low: float
    high: float


class Figures(Struct, frozen=True, kw_only=True):
    """All of them. ``None`` is unknown."""

    sessions: int
    tasks: int
    """Tasks that ended, after the warm-up."""
    failed: int
    unfinished: int
    """Tasks that were stopped by hand."""
    warm_up: int
    """Tasks left out as warm-up."""
    seconds: float
    """From the first task counted to the last one's end."""
    calls: int
    errors: dict[str, int]
    """Calls that failed, by what went wrong."""
    spreads: tuple[Spread, ...]
    n: float | None
    """Calls of a task, mean."""
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    tokens_told_by: int
    """Calls of which the engine told the tokens; the sums are theirs."""
    tasks_per_second: float
    calls_per_second: float
    output_per_second: float | None
    goodput: float | None
    """Tasks per second that kept all SLOs; unknown without SLOs."""
    attained: Share | None


def wilson(good: int, of: int) -> Share:
    """The share of ``good`` among ``of``, which is at least 1."""
    p, zz = good / of, _Z * _Z
    middle = (p + zz / (2 * of)) / (1 + zz / of)
    half = _Z * sqrt(p * (1 - p) / of + zz / (4 * of * of)) / (1 + zz / of)
    return Share(good=good, of=of, low=max(0.0, middle - half), high=min(1.0, middle + half))


def figures(campaign: Campaign, tasks: Sequence[HeardTask], slos: Sequence[Slo], warm_up: int) -> Figures:
    """The figures of ``campaign``.

    Args:
        campaign: what happened.
        tasks: its tasks, read.
        slos: what tasks are held to.
        warm_up: sessions, from the first, whose tasks do not count.
    """
    counted = [one for one in tasks if one.played.session >= warm_up]
    ended = [one for one in counted if one.played.ended is not None]
    calls = [call for one in ended for call in one.calls]
    seconds = _extent(ended)
    told = [one.heard.call.usage for one in calls if one.heard.call.usage.output_tokens is not None]
    good = sum(all(slo.kept(one) for slo in slos) for one in ended)
    output = _sum(usage.output_tokens for usage in told)
    return Figures(
        sessions=len(campaign.begun),
        tasks=len(ended),
        failed=sum(one.error is not None for one in ended),
        unfinished=len(counted) - len(ended),
        warm_up=len(tasks) - len(counted),
        seconds=seconds,
        calls=len(calls),
        errors=dict(Counter(str(one.heard.error) for one in calls if one.heard.error is not None).most_common()),
        spreads=tuple(_spreads(ended, calls)),
        n=len(calls) / len(ended) if ended else None,
        input_tokens=_sum(usage.input_tokens for usage in told),
        output_tokens=output,
        cached_tokens=_sum(usage.cache_read for usage in told),
        tokens_told_by=len(told),
        tasks_per_second=len(ended) / seconds if seconds else 0.0,
        calls_per_second=len(calls) / seconds if seconds else 0.0,
        output_per_second=output / seconds if seconds and output is not None else None,
        goodput=good / seconds if slos and seconds else None,
        attained=wilson(good, len(ended)) if slos and ended else None,
    )


def _extent(tasks: Sequence[HeardTask]) -> float:
    if not tasks:
        return 0.0
    return max(one.played.ended or 0.0 for one in tasks) - min(one.played.intended for one in tasks)


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum; unknown where one of them is, or there are none."""
    known = list(values)
    return None if not known or None in known else sum(value or 0 for value in known)


def _spreads(tasks: Sequence[HeardTask], calls: Sequence[HeardCall]) -> Iterable[Spread]:
    bad_tasks = sum(one.error is not None for one in tasks)
    bad_calls = sum(one.heard.error is not None for one in calls)
    good = [one for one in calls if one.heard.error is None]
    fine = [one for one in tasks if one.error is None]
    yield _spread("E2E", "task", "last step's end - intended begin", (one.e2e for one in fine), bad_tasks)
    how = "first text of the last call - intended begin"
    yield _spread("task TTFT", "task", how, (first_visible(one) for one in fine), bad_tasks)
    how = "first token - intended send"
    yield _spread("TTFT", "call", how, (_ttft(one, one.played.intended) for one in good), bad_calls)
    how = "first token - bytes handed to the socket"
    sent = (_ttft(one, one.played.received.sent) for one in good)
    yield _spread("TTFT from sent", "call", how, sent, bad_calls)
    how = "(last - first token) / tokens after the first chunk"
    yield _spread("token_time", "call", how, (one.heard.token_time for one in good), bad_calls)
    gaps = (gap for one in good for gap in one.heard.gaps)
    yield _spread("inter_chunk", "gap", "between reads that brought tokens", gaps, 0)
    how = "answer's end - intended send"
    yield _spread("call", "call", how, (one.played.received.ended - one.played.intended for one in good), bad_calls)
    how = "client turned to it - intended send"
    yield _spread("lag", "call", how, (one.played.received.asked - one.played.intended for one in calls), 0)


def _ttft(one: HeardCall, since: float | None) -> float | None:
    first = one.heard.call.first_token
    return None if first is None or since is None else first - since


def _spread(name: str, of: str, how: str, values: Iterable[float | None], failures: int) -> Spread:
    known = [value for value in values if value is not None]
    return Spread(
        name=name,
        of=of,
        how=how,
        quantiles=quantiles(known, _WANTED) if known else (),
        with_failures=_with_failures(known, failures) if failures else (),
    )


def _with_failures(known: list[float], failures: int) -> tuple[float | None, ...]:
    found = quantiles([*known, *[inf] * failures], _WANTED)
    return tuple(None if one.value == inf else one.value for one in found)
