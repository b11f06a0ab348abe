"""Clocks that disagree: spans of another host, brought back inside what started them."""

from collections.abc import Sequence

from msgspec import structs

from headway.core.span import ModelCall, Span
from headway.core.task import SpanId

JITTER = 0.001
"""Seconds outside of its parent that prove nothing about a clock."""
MOST = 3600.0
"""Seconds; clocks that differ by more are not mended, for then the times are likely of something else."""


def skewed(spans: Sequence[Span], parent: Sequence[int], notes: list[str]) -> dict[SpanId, float]:
    """By how many seconds to move which spans; only times of different hosts are ever compared.

    What one host did for one span of another is moved as one, so that its own order stays: if it lies outside that
    span although it is no longer, to its middle. What it started on the same host moves with it. Work that nobody
    waited for, or that never ended, proves nothing and stays.

    Args:
        spans: the task's spans, each id once.
        parent: index of each span's parent, -1 where it has none; free of circles.
        notes: where to say what was moved, and what was left.
    """
    if len({span.host for span in spans} - {None}) <= 1:
        return {}
    children: dict[int, list[int]] = {}
    for i, above in enumerate(parent):
        children.setdefault(above, []).append(i)
    shift = [0.0] * len(spans)
    beyond = 0
    todo = [*children.get(-1, [])]
    for above in todo:
        guests: dict[str, list[int]] = {}
        for i in children.get(above, ()):
            host = spans[i].host
            if host is None or host == spans[above].host:
                shift[i] = shift[above]
            else:
                guests.setdefault(host, []).append(i)
        for group in guests.values():
            apart = _apart(spans[above], shift[above], [spans[i] for i in group])
            beyond += abs(apart) > MOST
            for i in group:
                shift[i] = apart if abs(apart) <= MOST else 0.0
        todo += children.get(above, ())
    moved = {span.id: seconds for span, seconds in zip(spans, shift, strict=True) if seconds}
    if moved:
        most = max(map(abs, moved.values()))
        notes.append(
            f"Clocks of different hosts disagree by up to {most:.3f} s: {len(moved):,} spans that lay outside of what"
            " started them, or were started by such, were moved to its middle. How long they waited there is unknown."
        )
    if beyond:
        notes.append(f"Clocks of different hosts disagree by more than {MOST:,.0f} s: left as recorded.")
    return moved


def _apart(holder: Span, shift: float, guests: Sequence[Span]) -> float:
    """Seconds from the middle of what a host did for ``holder`` to the middle of ``holder``; 0 where it fits as is."""
    ends = [span.end for span in guests if span.end is not None and span.awaited]
    if holder.end is None or len(ends) < len(guests):
        return 0.0
    since, until = holder.start + shift, holder.end + shift
    first, last = min(span.start for span in guests), max(ends)
    outside = first < since - JITTER or last > until + JITTER
    if not outside or last - first > until - since:
        return 0.0
    return (since + until - first - last) / 2


def shifted(span: Span, seconds: float) -> Span:
    """The span as if its clock had been ahead by so much, marks and all."""
    if not seconds:
        return span
    work = span.work
    if type(work) is ModelCall:
        work = structs.replace(
            work,
            sent=_plus(work.sent, seconds),
            first_token=_plus(work.first_token, seconds),
            first_visible=_plus(work.first_visible, seconds),
            last_token=_plus(work.last_token, seconds),
        )
    return structs.replace(span, start=span.start + seconds, end=_plus(span.end, seconds), work=work)


def _plus(when: float | None, seconds: float) -> float | None:
    return None if when is None else when + seconds
