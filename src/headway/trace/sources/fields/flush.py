"""Traces whose spans were all closed together when they were exported, so that no end in them means anything."""

from collections.abc import Sequence

from msgspec import structs

from headway.core.span import Span
from headway.trace.flush import ended_by_flush


def flushed(spans: Sequence[Span]) -> bool:
    """Whether a flush ended the spans without children, as `ended_by_flush` tells."""
    parents = {span.parent for span in spans}
    leaves = [(span.start, span.end) for span in spans if span.id not in parents and span.end is not None]
    return ended_by_flush(leaves, max((span.end for span in spans if span.end is not None), default=0.0))


def without_times(spans: Sequence[Span]) -> tuple[tuple[Span, ...], str, float]:
    """The spans in the order of their starts, with no times; what to say of it; and the seconds that are known.

    They lie between the first start and the last end.
    """
    first = min((span.start for span in spans), default=0.0)
    last = max((span.start if span.end is None else span.end for span in spans), default=0.0)
    ordered = sorted(spans, key=lambda span: span.start)
    remark = (
        "All spans end in the moment that the trace was exported, so none of their durations can be told: only that"
        f" {last - first:.3f} s lie between the first start and the last end."
    )
    return tuple([structs.replace(span, start=0.0, end=0.0) for span in ordered]), remark, last - first
