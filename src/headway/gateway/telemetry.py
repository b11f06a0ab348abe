"""POST /v1/traces: takes the spans that instrumented agents export, so that they stand beside the gateway's own.

OTLP over HTTP, as protobuf or JSON, packed with gzip or not. Messages are read in a thread of their own, one at a time:
one may hold thousands of spans, and calls must not wait for that.
"""

import asyncio
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from msgspec import Struct, structs

from headway.core.config import Limits
from headway.core.errors import BadInputError
from headway.core.span import Span
from headway.core.task import SessionId, TaskId
from headway.gateway.exposition import family
from headway.gateway.front import Client, Request
from headway.gateway.responses import Failure, Headers, failure
from headway.gateway.unforeseen import Unforeseen
from headway.policy.headers import scoped
from headway.trace.record import Recorder
from headway.trace.sources.otel.inbox import NAMELESS, Inbox
from headway.wire.otlp import Batch, from_json
from headway.wire.otlp_answers import Encoding, refused, taken
from headway.wire.otlp_protobuf import ProtobufReader

UNPACKED: Final = 4
"""Times the limit on bodies that a packed one may have when it is unpacked."""
_FEWER: Final = f"Send fewer spans at a time; {UNPACKED} times the gateway's --body-bytes are taken."
WAITING: Final = 16
"""Messages that may be read or wait for it; exporters send the others again."""
_OK: Final = 200
_TYPES: Final[dict[bytes, Encoding]] = {b"application/x-protobuf": "protobuf", b"application/json": "json"}
_HEADERS: Final[dict[Encoding, Headers]] = {encoding: [(b"content-type", name)] for name, encoding in _TYPES.items()}
_PACKINGS: Final = frozenset({b"", b"identity", b"gzip"})
_GZIP: Final = 16 + zlib.MAX_WBITS
_NOTHING_KEPT: Final = failure(
    "nothing_recorded", 501, "This gateway records nothing, so it takes no spans. Start it with a store."
)
_BUSY: Final = failure("telemetry_busy", 503, "Too many messages wait to be read.", (b"retry-after", b"1"))


class _TooLargeError(Exception):
    """What was unpacked is more than may be."""


class _Read(Struct, frozen=True):
    """What one message held."""

    spans: list[Span]
    rejected: int
    why: str


class Telemetry:
    """The receiver.

    Args:
        recorder: takes the spans; ``None``: none are kept.
        limits: bounds on bodies.
        unforeseen: where faults of our own are told.
    """

    def __init__(self, recorder: Recorder | None, limits: Limits, unforeseen: Unforeseen) -> None:
        self._recorder = recorder
        self._limits = limits
        self._unforeseen = unforeseen
        self._inboxes: dict[str, Inbox] = {}
        """By tenant, so that what one sends is never put together with what another did."""
        self._readers: dict[Encoding, Callable[[bytes], Batch]] = {"json": from_json, "protobuf": ProtobufReader().read}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="headway-telemetry")
        self._exports: set[asyncio.Task[None]] = set()
        self.received = 0
        """Spans recorded since the start; one that a later message told more of counts again."""
        self.rejected = 0
        """What was sent as a span and was none."""

    def families(self) -> Iterator[str]:
        """For the page of metrics."""
        yield from family(
            "headway_telemetry_spans_total",
            "counter",
            "Spans that instrumented agents sent, by what became of them.",
            [({"outcome": "recorded"}, self.received), ({"outcome": "rejected"}, self.rejected)],
        )

    async def close(self) -> None:
        """Take no more; what was taken is recorded when this returns."""
        if self._exports:
            await asyncio.wait(self._exports)
        self._thread.shutdown()

    def take(self, request: Request, client: Client, tenant: str = "") -> None:
        """Answer one export of a tenant's; of nobody's in particular where there are no keys."""
        encoding = _TYPES.get(request.fields.get(b"content-type", b"").partition(b";")[0].strip().lower())
        if encoding is None:
            client.fail(_unreadable("content-type", request, "application/x-protobuf or application/json"))
        elif self._recorder is None:
            _fail(client, encoding, _NOTHING_KEPT)
        elif _packing(request) not in _PACKINGS:
            _fail(client, encoding, _unreadable("content-encoding", request, "gzip or none"))
        elif len(self._exports) >= WAITING:
            _fail(client, encoding, _BUSY)
        else:
            export = _Export(client, encoding)
            client.watch(export)
            task = asyncio.get_running_loop().create_task(self._answer(request, self._recorder, export, tenant))
            self._exports.add(task)
            task.add_done_callback(self._exports.discard)

    async def _answer(self, request: Request, recorder: Recorder, export: "_Export", tenant: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            read = await loop.run_in_executor(self._thread, self._read, request, export.encoding, tenant)
        except BadInputError as error:
            export.fail(failure("invalid_telemetry", 400, error))
        except _TooLargeError:
            export.fail(
                failure(
                    "telemetry_too_large", 413, f"Unpacked, the body is larger than {self._largest:,} bytes. {_FEWER}"
                )
            )
        except Exception as error:  # noqa: BLE001 - nobody looks at a task's exception, and the client would wait
            export.fail(self._unforeseen.met(error))
        else:
            for span in read.spans:
                recorder.record(span)
            self.received += len(read.spans)
            self.rejected += read.rejected
            export.respond(taken(export.encoding, read.rejected, read.why))

    @property
    def _largest(self) -> int:
        return self._limits.body_bytes * UNPACKED

    def _read(self, request: Request, encoding: Encoding, tenant: str) -> _Read:
        """In the thread.

        Raises:
            BadInputError: the body is no message.
            _TooLargeError: unpacked it is larger than may be.
        """
        data = request.body
        if _packing(request) == b"gzip":
            data = _unpacked(data, self._largest)
        batch = self._readers[encoding](data)
        found = self._inboxes.setdefault(tenant, Inbox()).take(batch.spans)
        reasons = [(one.reason, one.count) for one in batch.rejected]
        if found.rejected:
            reasons.append((NAMELESS, found.rejected))
        why = "; ".join(f"{reason}: {count}" for reason, count in reasons)
        return _Read(
            [owned(span, tenant) for span in found.spans] if tenant else found.spans,
            sum(count for _, count in reasons),
            why,
        )


def owned(span: Span, tenant: str) -> Span:
    """A tenant's span. The task's name becomes its own, as those that its calls declare do: it joins no other's."""
    session = None if span.session is None else SessionId(scoped(tenant, span.session))
    return structs.replace(span, task=TaskId(scoped(tenant, span.task)), session=session, tenant=tenant)


class _Export:
    """One client that waits for its answer; if it leaves, what it sent is taken all the same."""

    def __init__(self, client: Client, encoding: Encoding) -> None:
        self._client: Client | None = client
        self.encoding: Encoding = encoding

    def respond(self, body: bytes) -> None:
        """All, or nearly all, was taken."""
        client, self._client = self._client, None
        if client is not None:
            client.respond(_OK, body, _HEADERS[self.encoding])

    def fail(self, problem: Failure) -> None:
        """Nothing was."""
        client, self._client = self._client, None
        if client is not None:
            _fail(client, self.encoding, problem)

    def client_gone(self, error: str) -> None:
        """Nobody waits any more."""
        del error
        self._client = None

    def client_blocked(self) -> None:
        """The answer is short; nothing to hold back."""

    def client_ready(self) -> None:
        """As above."""

    def cancel(self, problem: Failure) -> None:
        """Answer with ``problem`` now."""
        self.fail(problem)


def _fail(client: Client, encoding: Encoding, problem: Failure) -> None:
    """A failure as OTLP words it."""
    client.respond(problem.status, refused(encoding, problem.message), [*_HEADERS[encoding], *problem.headers])


def _packing(request: Request) -> bytes:
    return request.fields.get(b"content-encoding", b"").strip().lower()


def _unreadable(header: str, request: Request, instead: str) -> Failure:
    told = request.fields.get(header.encode(), b"")[:60].decode("ascii", "replace") or "none"
    return failure("unsupported_telemetry", 415, f"The {header} is {told!r}. Send {instead}.")


def _unpacked(data: bytes, most: int) -> bytes:
    """The content of a gzip body, which may be of several members.

    Raises:
        BadInputError: it is none, or cut off.
        _TooLargeError: it is more than ``most`` bytes.
    """
    unpacked = bytearray()
    try:
        while data:
            member = zlib.decompressobj(_GZIP)
            unpacked += member.decompress(data, most + 1 - len(unpacked))
            if len(unpacked) > most:
                raise _TooLargeError
            if not member.eof:
                raise BadInputError("The gzip body is cut off.", fix="Send it whole.")
            data = member.unused_data
    except zlib.error as error:
        raise BadInputError(f"The body is not gzip: {error}.", fix="Send it packed as its header says.") from error
    return bytes(unpacked)
