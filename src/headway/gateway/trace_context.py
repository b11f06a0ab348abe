"""W3C Trace Context towards the engine: the caller's trace goes on, with this call's own span as the parent.

What the caller decided stays: its trace, its flags (sampled or not), its ``tracestate``. A context that the standard
calls invalid is not passed on but begun anew, under the task's own id, without its ``tracestate``.
"""

import re
from typing import Final

from headway.core.task import SpanId, TaskId

_CONTEXT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_TRACE_ID: Final = re.compile("[0-9a-f]{32}")
_VERSION_0, _FORBIDDEN = b"00", b"ff"
_KNOWN_FLAGS: Final = 0x03
"""Sampled, and that the trace's id is random; a version that we do not know may mean anything by the others."""
_NO_TRACE, _NO_SPAN = b"0" * 32, b"0" * 16


def passed_on(theirs: bytes | None, task: TaskId, span: SpanId, *, known: bool) -> bytes | None:
    """The ``traceparent`` for the engine; ``None``: it gets none, and so no ``tracestate`` either.

    Args:
        theirs: the caller's, if it sent one.
        task: the call's, whose id is a trace's where Headway chose it.
        span: the call's.
        known: the call was assigned to a task and its span is recorded; else the caller's own span stays the parent.
    """
    trace_and_flags = None if theirs is None else _read(theirs)
    if trace_and_flags is not None:
        trace, flags = trace_and_flags
        return b"00-%b-%b-%b" % (trace, span.encode(), flags) if known else theirs
    if known and _TRACE_ID.fullmatch(task):
        return f"00-{task}-{span}-01".encode()
    return None


def is_sound(theirs: bytes | None) -> bool:
    """Whether a caller's context can be gone on with."""
    return theirs is not None and _read(theirs) is not None


def _read(context: bytes) -> tuple[bytes, bytes] | None:
    """Trace and flags, as version 00 has them; ``None`` where they are not to be believed."""
    match = _CONTEXT.fullmatch(context)
    if match is None:
        return None
    version, trace, parent, flags, rest = match.groups()
    if version == _FORBIDDEN or trace == _NO_TRACE or parent == _NO_SPAN:
        return None
    if version != _VERSION_0:
        return trace, b"%02x" % (int(flags, 16) & _KNOWN_FLAGS)
    return None if rest is not None else (trace, flags)
