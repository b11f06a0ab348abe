"""Ids of traces and spans as products write them, to ids that W3C trace context allows."""

import re
from typing import Final

from headway.core.task import SpanId, TaskId
from headway.trace.sources.digests import span_id, task_id

_TRACE: Final = re.compile(r"(?:trace_)?([0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12})\Z")
_SPAN: Final = re.compile(r"[0-9a-f]{16}\Z")


def task_of(source: str, trace: str) -> TaskId:
    """The trace's own id where it is one of 128 bits, written as hex digits or as a UUID; else one made of it."""
    found = _TRACE.match(trace.lower())
    return TaskId(found[1].replace("-", "")) if found else task_id(source, trace)


def span_of(source: str, task: TaskId, span: str) -> SpanId:
    """The span's own id where it has 16 hex digits; else one made of it, the same wherever it is named in its task."""
    return SpanId(span.lower()) if _SPAN.match(span.lower()) else span_id(source, task, span)
