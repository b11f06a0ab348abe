"""The head of the request that an engine gets: the agent's own, but for what each connection decides for itself."""

from typing import Final

from headway.gateway.front import Request
from headway.gateway.journal import CallRecord
from headway.gateway.pool import Pool
from headway.gateway.responses import HOP_BY_HOP, connection_bound
from headway.gateway.trace_context import is_sound, passed_on

# Answers are asked for uncompressed: compressed ones could not be looked into.
_NOT_SENT: Final = HOP_BY_HOP | {b"host", b"expect", b"accept-encoding", b"traceparent"}
_NOT_SENT_WITH_KEY: Final = _NOT_SENT | {b"authorization"}


def request_head(request: Request, pool: Pool, record: CallRecord, body_bytes: int) -> bytes:
    """The head that goes to a replica of ``pool``, for that much body; its own key takes the place of the caller's."""
    key = pool.authorization
    dropped = connection_bound(request.fields, _NOT_SENT if key is None else _NOT_SENT_WITH_KEY)
    theirs = request.fields.get(b"traceparent")
    if b"tracestate" in request.fields and not is_sound(theirs):
        dropped |= {b"tracestate"}
    lines = [name + b": " + value for name, value in request.headers if name not in dropped]
    if key is not None:
        lines.append(b"authorization: " + key)
    context = passed_on(theirs, record.task, record.span, known=record.identity is not None)
    if context is not None:
        lines.append(b"traceparent: " + context)
    lines.append(b"accept-encoding: identity\r\ncontent-length: %d\r\n\r\n" % body_bytes)
    return pool.chat_line + b"\r\n".join(lines)
