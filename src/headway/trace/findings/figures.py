"""Figures as the sentences of findings have them."""

from collections.abc import Iterable, Mapping, Sequence

_ROUNDING = 1e-9
_LEAST_MS = 0.05
MOST = 3
"""Names in a sentence; what is more is counted."""


def seconds(value: float) -> str:
    """Three figures and the unit; milliseconds below a second, with a decimal below 10 of them; only 0 reads as 0."""
    if value >= 100:  # noqa: PLR2004 - three figures
        return f"{value:,.0f} s"
    if value >= 10:  # noqa: PLR2004 - three figures
        return f"{value:.1f} s"
    if value >= 1:
        return f"{value:.2f} s"
    ms = value * 1000
    if 0 < ms < _LEAST_MS:
        return "under 0.1 ms"
    return f"{ms:.1f} ms" if 0 < ms < 10 else f"{ms:.0f} ms"  # noqa: PLR2004 - two figures


def share(part: float, whole: float) -> str:
    """``part`` of ``whole`` in per cent; nothing that is not 0 or all, but for rounding of floats, reads as that."""
    if not whole:
        return "0 %"
    per_cent = 100 * part / whole
    if 0 < per_cent < 1:
        return "under 1 %"
    rounded = f"{per_cent:.0f} %"
    return "over 99 %" if rounded == "100 %" and part < whole * (1 - _ROUNDING) else rounded


def times(ratio: float) -> str:
    """How many times as much."""
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"  # noqa: PLR2004 - two figures


def plural(number: int, noun: str) -> str:
    """``1 call``, ``2 calls``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def ranked(amounts: Mapping[str, float]) -> str:
    """Names with their seconds, the largest first: ``search 4.20 s, read 1.10 s and 2 more 310 ms``."""
    order = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    return _joined([f"{name} {seconds(value)}" for name, value in order[:MOST]], [value for _, value in order[MOST:]])


def named(names: Iterable[str]) -> str:
    """Names, each once in order of appearance, with how often where that is more than once."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    shown = [name if count == 1 else f"{name} ({count:,} times)" for name, count in list(counts.items())[:MOST]]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _joined(shown: Sequence[str], rest: Sequence[float]) -> str:
    return ", ".join(shown) + (f" and {len(rest):,} more {seconds(sum(rest))}" if rest else "")
