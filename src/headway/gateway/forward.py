"""The head of the request that an engine gets: the agent's own, but for what each connection decides for itself."""

from typing import Final

from headway.gateway.front import Request
from headway.gateway.journal import CallRecord
from headway.gateway.pool import Pool
from headway.gateway.responses import HOP_BY_HOP, connection_bound

# Answers are asked for uncompressed: compressed ones could not be looked into.
_NOT_SENT: Final = HOP_BY_HOP | {b"host", b"expect", b"accept-encoding", b"traceparent"}
_NOT_SENT_WITH_KEY: Final = _NOT_SENT | {b"authorization"}
_TRACE_ID: Final = 32
_PARTS: Final = 4
"""Of a ``traceparent``: version, trace, parent, flags."""
_HEX: Final = frozenset("0123456789abcdef")


def request_head(request: Request, pool: Pool, record: CallRecord, body_bytes: int) -> bytes:
    """The head that goes to a replica of ``pool``, for that much body; its own key takes the place of the caller's."""
    key = pool.authorization
    dropped = connection_bound(request.fields, _NOT_SENT if key is None else _NOT_SENT_WITH_KEY)
    lines = [b"%b: %b\r\n" % header for header in request.headers if header[0] not in dropped]
    if key is not None:
        lines.append(b"authorization: %b\r\n" % key)
    return b"%b%b%baccept-encoding: identity\r\ncontent-length: %d\r\n\r\n" % (
        pool.chat_line,
        b"".join(lines),
        _traceparent(request.fields.get(b"traceparent"), record),
        body_bytes,
    )


def _traceparent(theirs: bytes | None, record: CallRecord) -> bytes:
    """The trace context with this call's span as the parent, so that an engine's own spans hang below it."""
    if theirs is not None:
        parts = theirs.split(b"-")
        if record.identity is not None and len(parts) >= _PARTS:
            parts[2] = record.span.encode()
        return b"traceparent: %b\r\n" % b"-".join(parts)
    task = record.task
    if record.identity is not None and len(task) == _TRACE_ID and _HEX.issuperset(task):
        return b"traceparent: 00-%b-%b-01\r\n" % (task.encode(), record.span.encode())
    return b""
