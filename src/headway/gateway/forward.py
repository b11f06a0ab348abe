"""The head of the request that an engine gets: the agent's own, but for what each connection decides for itself."""

from headway.core.task import TaskId
from headway.gateway.credentials import KEY_FIELDS, secret_of
from headway.gateway.front import Request
from headway.gateway.journal import CallRecord
from headway.gateway.responses import Headers, connection_bound
from headway.gateway.trace_context import is_sound, passed_on
from headway.gateway.urgency import DEADLINE
from headway.gateway.way import Way


def request_head(request: Request, way: Way, record: CallRecord, body_bytes: int, now: float) -> bytes:
    """The head that goes to a replica at ``now``, for that much body; its own key takes the place of the caller's."""
    dropped = connection_bound(request.fields, way.not_sent)
    theirs = request.fields.get(b"traceparent")
    if b"tracestate" in request.fields and not is_sound(theirs):
        dropped |= {b"tracestate"}
    lines = [name + b": " + value for name, value in request.headers if name not in dropped]
    if record.deadline is not None:
        lines = _with_deadline(lines, record.deadline, now)
    if way.own or way.translated:
        lines += [name + b": " + value for name, value in _ours(request, way, dropped)]
    context = passed_on(theirs, record.task, record.span, known=record.identity is not None)
    if context is not None:
        lines.append(b"traceparent: " + context)
    lines.append(b"accept-encoding: identity\r\ncontent-length: %d\r\n\r\n" % body_bytes)
    return way.line + b"\r\n".join(lines)


def _with_deadline(lines: list[bytes], deadline: float, now: float) -> list[bytes]:
    """What is left of the call's time in place of what was when it came, for an upstream that is a gateway like us."""
    name = DEADLINE + b": "
    return [line for line in lines if not line.startswith(name)] + [name + b"%.3f" % max(0.0, deadline - now)]


def answer_headers(headers: Headers, fields: dict[bytes, bytes], replica: tuple[bytes, bytes], task: TaskId) -> Headers:
    """The headers of an answer that the client gets: the engine's, who it was, and which task it counts for."""
    dropped = connection_bound(fields)
    passed = [header for header in headers if header[0] not in dropped]
    passed.append(replica)
    if task:
        passed.append((b"x-headway-task", task.encode("latin-1", "replace")))
    return passed


def _ours(request: Request, way: Way, dropped: frozenset[bytes]) -> Headers:
    """The replica's key or, where it has none and is asked in another dialect, the caller's as that dialect has it.

    What the caller says itself of what an API insists on, its version, stands.
    """
    headers = way.own
    if not headers:
        secret = secret_of(request.fields)
        headers = list(way.engine.key_header(secret or b""))
        if secret is None:
            headers = [header for header in headers if header[0] not in KEY_FIELDS]
    return [header for header in headers if header[0] in dropped or header[0] not in request.fields]
