"""Why a request is turned away before any engine sees it."""

from collections.abc import Iterable, Sequence
from typing import Final

from headway.core.config import Limits
from headway.core.fleet import ReplicaId
from headway.gateway.connection import Breakdown
from headway.gateway.fleet import LiveFleet, ReplicaHealth
from headway.gateway.front import Request
from headway.gateway.hosts import is_at_home, is_foreign
from headway.gateway.responses import Failure, failure
from headway.policy.route import RouteDecision
from headway.wire.dialect import Dialect

LEFT_EARLY: Final = failure("client_gone", 499, "The client left before its request was complete.")
"""For the record only: there is nobody left to read it."""

_RETRY_AFTER: Final = 2
"""Seconds that a client should wait for a replica to come up: it is noticed about that often."""
_SHOWN_BYTES: Final = 100
_NAMED: Final = 3
"""Replicas whose state is told; of all the others there is /health."""


def no_replica(reason: str, replicas: Sequence[ReplicaHealth]) -> Failure:
    """There is no replica to send a call to now; ``reason`` is the routing policy's."""
    states = [f"{replica.id}: {replica.reason}" for replica in replicas if not replica.healthy]
    told = f" ({'; '.join(states[:_NAMED])})" if states else ""
    message = f"{reason}{told}. Try again in {_RETRY_AFTER} s; /health tells the state of all replicas."
    return failure("no_replica", 503, message, (b"retry-after", b"%d" % _RETRY_AFTER))


def not_spoken(model: str, dialect: Dialect, deaf: Iterable[ReplicaId]) -> Failure:
    """Those who serve the model cannot be asked in the caller's dialect, nor can it be translated for them."""
    path = f"/v1{dialect.path.decode()}"
    names = ", ".join(sorted(deaf)[:_NAMED])
    message = f"No replica that serves {model[:_SHOWN_BYTES]!r} now can be asked at {path}: {names} cannot."
    message += f" If one speaks {dialect.name}, say so with `speaks` in the configuration."
    return failure("dialect_not_served", 404, message)


def no_answer(decision: RouteDecision, model: str, dialect: Dialect, fleet: LiveFleet) -> Failure:
    """Nobody was found to answer a call for ``model`` from callers of ``dialect``."""
    reason = f"{decision.receipt.reason[:1].upper()}{decision.receipt.reason[1:]}"
    deaf = fleet.deaf_to(dialect)
    if decision.refusal == "excluded" and deaf:
        return not_spoken(model, dialect, deaf)
    if decision.refusal == "unknown_model":
        return failure("unknown_model", 404, f"{reason}. Use one of: {', '.join(fleet.models())}.")
    return no_replica(reason, fleet.health())


def broke_off(replica: ReplicaId, breakdown: Breakdown) -> Failure:
    """An exchange with an engine broke off."""
    status = 504 if breakdown.error in {"upstream_timeout", "upstream_stalled"} else 502
    message = f"Replica {replica!r} {breakdown.detail}. Try again; if it persists, look at its log."
    return failure(breakdown.error, status, message)


def unserved(replica: ReplicaId, status: int) -> Failure:
    """An engine could not serve; for the record, since another model is asked."""
    return failure(f"http_{status}", 502, f"Replica {replica!r} answered with status {status}. Try again in a moment.")


def too_late(seconds: float) -> Failure:
    """The call's own deadline has passed."""
    message = f"The answer was not complete within the {seconds:.3g} s that x-headway-deadline allowed, so the call was"
    message += " ended. Allow it more time, or ask for less."
    return failure("deadline_exceeded", 504, message, (b"x-should-retry", b"false"))


def header_problem(version: str, fields: dict[bytes, bytes], limits: Limits) -> Failure | None:
    """What is wrong with a header that the parser could read; ``None``: nothing.

    The parser itself refuses what request smuggling is made of: a length beside chunks, two lengths, folded lines.
    """
    if version not in {"1.0", "1.1"}:
        return failure("bad_request", 505, f"HTTP/{version} is not served. Use HTTP/1.1.")
    coding = fields.get(b"transfer-encoding")
    if coding is not None and (coding.lower() != b"chunked" or version == "1.0"):
        return failure("bad_request", 400, "This transfer-encoding is not served. Send `chunked` over HTTP/1.1.")
    length = fields.get(b"content-length")
    if length is not None and int(length) > limits.body_bytes:
        return body_too_long(int(length), limits)
    return None


def header_size_problem(request: Request, limits: Limits) -> Failure | None:
    """Whether the target and the headers are longer than allowed; ``None``: they are not."""
    size = len(request.path) + sum(len(name) + len(value) for name, value in request.headers)
    return header_too_long(limits) if size > limits.header_bytes else None


def stranger_problem(fields: dict[bytes, bytes], names: frozenset[str]) -> Failure | None:
    """Whether a page of somebody else's may have sent this to a gateway that serves its own machine alone."""
    host = fields.get(b"host", b"")
    if not is_at_home(host, names):
        return _stranger("by the name", host)
    origin = fields.get(b"origin")
    if origin is not None and is_foreign(origin, names):
        return _stranger("from pages of", origin)
    return None


def _stranger(how: str, who: bytes) -> Failure:
    name = who[:_SHOWN_BYTES].decode("ascii", "replace")
    message = f"This gateway serves its own machine alone and is not called {how} {name}"
    return failure("not_allowed", 403, f"{message}. Use http://127.0.0.1 and its port, or start it with --allow-host.")


def not_http(error: Exception) -> Failure:
    """The bytes are no request."""
    return failure("bad_request", 400, f"The request is not valid HTTP/1.1: {error}.")


def header_too_long(limits: Limits) -> Failure:
    """More header than is read."""
    message = f"The request's header is longer than {limits.header_bytes} bytes. Send less in it, or have the gateway's"
    message += " limit header_bytes raised."
    return failure("header_too_large", 431, message)


def body_too_long(size: int, limits: Limits) -> Failure:
    """More body than is read; ``size`` is what has come or was announced."""
    message = f"The request's body of {size} bytes or more is longer than the limit of {limits.body_bytes}."
    return failure("body_too_large", 413, f"{message} Shorten the messages, or have the gateway's --body-bytes raised.")


def too_slow(part: str) -> Failure:
    """The header or the body was not there in time."""
    return failure("request_timeout", 408, f"The request's {part} did not arrive in time. Send it in one go.")


def too_many_connections(limits: Limits) -> Failure:
    """One connection more than are served."""
    message = f"The gateway has {limits.connections} connections, which is its limit."
    return failure("too_many_connections", 503, f"{message} Try again later, or close connections that are idle.")
