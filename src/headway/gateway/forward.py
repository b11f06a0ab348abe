"""The head of the request that an engine gets: the agent's own, but for what each connection decides for itself."""

import re
from typing import Final

from headway.gateway.front import Request
from headway.gateway.journal import CallRecord
from headway.gateway.pool import Pool
from headway.gateway.responses import HOP_BY_HOP, connection_bound

# Answers are asked for uncompressed: compressed ones could not be looked into.
_NOT_SENT: Final = HOP_BY_HOP | {b"host", b"expect", b"accept-encoding", b"traceparent"}
_NOT_SENT_WITH_KEY: Final = _NOT_SENT | {b"authorization"}
_TRACE_ID: Final = re.compile("[0-9a-f]{32}")
_PARTS: Final = 4
"""Of a ``traceparent``: version, trace, parent, flags."""


def request_head(request: Request, pool: Pool, record: CallRecord, body_bytes: int) -> bytes:
    """The head that goes to a replica of ``pool``, for that much body; its own key takes the place of the caller's."""
    key = pool.authorization
    dropped = connection_bound(request.fields, _NOT_SENT if key is None else _NOT_SENT_WITH_KEY)
    lines = [name + b": " + value for name, value in request.headers if name not in dropped]
    if key is not None:
        lines.append(b"authorization: " + key)
    lines += _traceparent(request.fields.get(b"traceparent"), record)
    lines.append(b"accept-encoding: identity\r\ncontent-length: %d\r\n\r\n" % body_bytes)
    return pool.chat_line + b"\r\n".join(lines)


def _traceparent(theirs: bytes | None, record: CallRecord) -> tuple[bytes, ...]:
    """The trace context with this call's span as the parent, so that an engine's own spans hang below it."""
    if theirs is not None:
        parts = theirs.split(b"-")
        if record.identity is not None and len(parts) >= _PARTS:
            parts[2] = record.span.encode()
        return (b"traceparent: " + b"-".join(parts),)
    if record.identity is not None and _TRACE_ID.fullmatch(record.task):
        return (f"traceparent: 00-{record.task}-{record.span}-01".encode(),)
    return ()
