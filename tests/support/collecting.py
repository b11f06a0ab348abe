"""A small OTLP/HTTP server for tests: scripted refusals first, then it takes what comes and keeps it."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from msgspec import Struct
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from headway.core.span import Span, Step
from headway.core.task import SpanId, TaskId

TASK = TaskId("5b8efff798038103d269b633813fc60c")


class Refusal(Struct, frozen=True):
    """What one request is answered instead of being taken."""

    status: int
    headers: dict[str, str] = {}


class Collector:
    """Listens on loopback; OpenTelemetry's own classes read what it gets.

    Args:
        refusals: for the first requests, one each; ``None`` cuts the connection after the message was taken.
        port: 0 is a free one.
    """

    def __init__(self, *refusals: Refusal | None, port: int = 0) -> None:
        self.refusals = list(refusals)
        self.rejects = 0
        """Spans of each message that it says it did not want."""
        self.heads: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.messages: list[ExportTraceServiceRequest] = []
        self._got = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector._answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def ids(self) -> list[str]:
        """Of all spans that were taken, in order; one that was taken twice stands twice."""
        return [
            span.span_id.hex()
            for message in self.messages
            for group in message.resource_spans
            for scoped in group.scope_spans
            for span in scoped.spans
        ]

    def wait(self, spans: int, seconds: float = 20) -> list[str]:
        """The ids, once there are so many."""
        with self._got:
            assert self._got.wait_for(lambda: len(self.ids()) >= spans, seconds), f"only {len(self.ids())} came"
        return self.ids()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["content-length"]))
        refusal = self.refusals.pop(0) if self.refusals else Refusal(200)
        with self._got:
            self.heads.append({name.lower(): value for name, value in handler.headers.items()})
            self.paths.append(handler.path)
            if refusal is None or refusal.status == 200:
                self.messages.append(ExportTraceServiceRequest.FromString(gzip.decompress(body)))
            self._got.notify_all()
        if refusal is None:
            handler.close_connection = True
            return
        answer = bytes([0x0A, 0x02, 0x08, self.rejects]) if self.rejects and refusal.status == 200 else b""
        handler.send_response(refusal.status)
        for name, value in refusal.headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)


def span(number: int, **fields: object) -> Span:
    """A step of one task that a span's id tells from others."""
    at = 1_790_000_000.0 + number
    named: dict[str, object] = {"name": "step", "start": at, "end": at + 1, **fields}
    return Span(task=TASK, id=SpanId(f"{number:016x}"), parent=None, work=Step(), **named)  # type: ignore[arg-type] - fields by name


def ids(*numbers: int) -> list[str]:
    """The ids of such spans."""
    return [f"{number:016x}" for number in numbers]
