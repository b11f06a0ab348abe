"""Numbers and names as people read them; what is unknown says so."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import floor

from headway.core.money import MicroUsd
from headway.core.span import Span, ToolUse
from headway.core.spent import Spent, Sum
from headway.core.task import TaskId
from headway.trace.waterfall import Bar

UNKNOWN = "unknown"
_SHORT = 8
_TRACE_ID = 32
EARLIEST = 10**9
"""Epoch seconds of September 2001: no agent is older, and no record is so long."""


def apportion(values: Sequence[float], total: int) -> list[int]:
    """Round ``values`` to integers that sum to ``total``: largest remainder first, and nothing stays 0 that is 0.

    Args:
        values: not negative; their sum is within 1 of ``total`` for a fair result, and positive unless that is 0.
        total: what the integers shall sum to.

    Raises:
        ValueError: there is something to hand out, and no value above 0 to give it to.
    """
    units = [floor(value) for value in values]
    receivers = sorted((i for i, value in enumerate(values) if value > 0), key=lambda i: (units[i] - values[i], i))
    missing = total - sum(units)
    if missing and not receivers:
        raise ValueError(f"{total} cannot be shared among {len(values)} values that are all 0")
    for turn in range(max(missing, 0)):
        units[receivers[turn % len(receivers)]] += 1
    for _ in range(max(-missing, 0)):
        units[max(receivers, key=lambda i: units[i])] -= 1
    return units


def decimals_for(e2e: float) -> int:
    """How many decimals of a second to print for a task of ``e2e`` seconds: three to five figures in all."""
    short, long = (0.1, 0.01, 0.001), (10.0, 100.0)
    return 3 - sum(e2e >= bound for bound in long) + sum(0 < e2e < bound for bound in short)


def fixed(units: int, decimals: int) -> str:
    """``units`` of 10^-``decimals`` in digits: ``fixed(5230, 2)`` is ``52.30``."""
    return f"{units / 10**decimals:,.{decimals}f}"


def seconds(value: float | None, decimals: int) -> str:
    """Seconds with their unit."""
    return UNKNOWN if value is None else f"{bare(value, decimals)} s"


def bare(value: float, decimals: int) -> str:
    """Seconds without their unit; nothing but 0 reads as 0."""
    least = 10**-decimals
    return f"< {least:.{decimals}f}" if 0 < value < least / 2 else f"{value:,.{decimals}f}"


def per_cent(share: float | None) -> str:
    """A share of 1 in per cent, to a tenth."""
    return UNKNOWN if share is None else f"{share * 100:.1f} %"


def milliseconds(value: float | None) -> str:
    """Seconds as milliseconds, three figures, without the unit."""
    if value is None:
        return UNKNOWN
    ms = value * 1000
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 10 else f"{ms:.2f}"  # noqa: PLR2004 - three figures


def pace(value: float | None, *, to_end: bool) -> str:
    """TPOT in milliseconds, three figures; marked where it is the most that it can have been."""
    return f"≤ {milliseconds(value)}" if to_end else milliseconds(value)


def count(value: int | None) -> str:
    """A whole number."""
    return UNKNOWN if value is None else f"{value:,}"


def money(value: MicroUsd | None) -> str:
    """US dollars, half of the last digit rounded up; exact below a cent, so that nothing but 0 reads as 0."""
    if value is None:
        return UNKNOWN
    if not value:
        return "$0"
    size = abs(value)
    decimals = 2 if size >= 1_000_000 else 4 if size >= 10_000 else 6  # noqa: PLR2004 - a dollar, a cent
    unit = 10 ** (6 - decimals)
    return f"{'-' if value < 0 else ''}${fixed((size + unit // 2) // unit, decimals)}"


def counted(one: Sum, *, short: bool = False) -> str:
    """A sum of counts; with ``at least`` where some of its parts are unknown, or a sign where there is little room."""
    return _bounded(one, count(one.least), short=short)


def paid(one: Sum, *, short: bool = False) -> str:
    """A sum of micro-USD, likewise."""
    return _bounded(one, money(None if one.least is None else MicroUsd(one.least)), short=short)


def _bounded(one: Sum, text: str, *, short: bool) -> str:
    if not one.partial:
        return text
    return bound(text) if short else f"at least {text}"


def told(one: Sum, noun: str = "call") -> str:
    """How many parts of a lower bound are known in full; empty where all are or nothing is."""
    if not one.partial:
        return ""
    if not one.known:
        return f"no {noun} reports all of it"
    return f"{one.known:,} of {plural(one.of, noun)} {'reports' if one.known == 1 else 'report'} it"


def cached(share: float | None, spent: Spent) -> str:
    """Which share of a task's input tokens came from a cache."""
    return "none" if spent.input_tokens.exact == 0 else per_cent(share)


def from_cache(spent: Spent) -> str:
    """Which share of the input tokens came from a cache, and of whose where not every call tells."""
    return f"{per_cent(spent.cached_share)}{f' of {whose}' if (whose := cache_tellers(spent)) else ''}"


def cache_tellers(spent: Spent) -> str:
    """Whose input tokens a cached share is of; empty where it is of those of all calls, or unknown."""
    of = spent.cache_told
    if of.exact is not None or spent.cached_share is None:
        return ""
    return f"the {of.total:,} tokens of calls that tell ({of.known:,} of {of.of:,})"


def at_least(exact: float | None, least: float | None, figure: Callable[[float], str], *, short: bool = False) -> str:
    """A figure that is known, or what it comes to at least where only that is."""
    if exact is not None:
        return figure(exact)
    if least is None:
        return UNKNOWN
    return bound(figure(least)) if short else f"at least {figure(least)}"


def amount(value: float) -> str:
    """A count, or a mean of counts: that has a decimal below 100; nothing but 0 reads as 0."""
    if value == int(value) or abs(value) >= 100:  # noqa: PLR2004 - three figures
        return f"{value:,.0f}"
    return "< 0.1" if 0 < value < 0.05 else f"{value:,.1f}"  # noqa: PLR2004 - would read as 0.0


def dollars(value: float) -> str:
    """Micro-USD, or a mean of them, half a one rounded up; nothing but 0 reads as 0."""
    return "< $0.000001" if 0 < value < 0.5 else money(MicroUsd(floor(value + 0.5)))  # noqa: PLR2004 - would read as $0


def bound(text: str) -> str:
    """A figure that is a lower bound, where there is little room."""
    return f"≥ {text}"


def plural(number: int, noun: str) -> str:
    """``1 call``, ``2 calls``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def moment(epoch: float) -> str:
    """Epoch seconds as local date and time; where they are too few to be a date, how far into the record they are."""
    if epoch < EARLIEST:
        return "date not recorded" if epoch < 1 else f"{epoch:,.0f} s into its record"
    return datetime.fromtimestamp(epoch, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def printable(text: str) -> str:
    """``text`` without what could steer a terminal or hide in a page: every such character becomes U+FFFD."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def label(span: Span) -> str:
    """What a row of the waterfall is called: the span's name, but a tool's and the task's shortened to what matters."""
    if isinstance(span.work, ToolUse):
        return printable(f"tool {span.work.name}")
    return "task" if span.name == f"task {span.task}" else printable(span.name)


def row_name(bar: Bar) -> str:
    """`label`, and where the row is on no axis: a person was waited for before there was a task."""
    return f"{label(bar.span)}, before the task" if bar.off_axis else label(bar.span)


def short_id(task: TaskId, others: Sequence[TaskId]) -> str:
    """The shortest beginning of ``task``, of 8 characters at least, that none of ``others`` shares.

    An id that the caller chose is words, not digits, and stays whole.
    """
    if len(task) != _TRACE_ID or not all(c in "0123456789abcdef" for c in task):
        return task
    length = _SHORT
    while length < len(task) and any(other != task and other.startswith(task[:length]) for other in others):
        length += 1
    return task[:length]
