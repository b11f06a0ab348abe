"""OpenTelemetry traces as OTLP: JSON and protobuf, single messages and files of many as the collector writes them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

from headway.core.errors import BadInputError
from headway.core.task import TaskId
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.fields.decoding import TOO_DEEP, WRONG
from headway.trace.sources.otel.traces import Traces
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.wire.otlp import Batch, from_json
from headway.wire.otlp_protobuf import ProtobufReader, is_stream, is_traces, messages

_NAME: Final = "otlp"


class Otlp:
    """Importer of OTLP as it is sent and as the collector and SDKs write it to files."""

    name = _NAME
    title = "OpenTelemetry (OTLP)"
    scattered = True

    def claims(self, sample: Sample) -> bool:
        """By the nesting of its groups: resource, scope, span; in protobuf also by the sizes of ids."""
        if sample.shape == "binary":
            return is_traces(sample.head) or is_stream(sample.head)
        return any(holds_groups(found, ("resourceSpans",)) for found in sample.objects())

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One task for each trace."""
        yield from self._traces(documents, skips).pieces()

    def scan(self, documents: Sequence[Document], skips: Skips) -> Iterator[tuple[TaskId, list[bytes]]]:
        """What the documents hold of each trace."""
        yield from self._traces(documents, skips).fragments()

    def join(self, task: TaskId, fragments: Sequence[bytes]) -> Piece:
        """One trace."""
        return Traces(_NAME).piece(task, fragments)

    @staticmethod
    def _traces(documents: Sequence[Document], skips: Skips) -> Traces:
        traces = Traces(_NAME)
        protobuf = ProtobufReader()
        for document in documents:
            for record in document.records(skips):
                if document.shape != "binary":
                    take(from_json, record.data, record.where, traces, skips)
                    continue
                for number, message in enumerate(messages(record.data), 1):
                    take(protobuf.read, message, f"{record.where}, message {number}", traces, skips)
        return traces


def holds_groups(found: dict[str, object], names: tuple[str, ...]) -> bool:
    """Whether a JSON object holds OTLP's groups of spans under one of the names."""
    for name in names:
        groups = found.get(name)
        if isinstance(groups, list):
            for group in cast("list[object]", groups):
                if isinstance(group, dict) and group.keys() & {"scopeSpans", "instrumentationLibrarySpans"}:
                    return True
    return False


def take(read: Callable[[bytes], Batch], data: bytes, where: str, traces: Traces, skips: Skips) -> None:
    """The spans of one message."""
    try:
        batch = read(data)
    except BadInputError as error:
        deep = isinstance(error.__cause__, RecursionError)
        skips.add(TOO_DEEP if deep else "a record that is broken or no OTLP message", where)
        return
    for rejected in batch.rejected:
        for _ in range(rejected.count):
            skips.add(rejected.reason, where)
    for field in batch.left_out:
        for _ in range(field.count):
            skips.add(WRONG.format(field.reason), where)
    traces.add(batch.spans, where, skips)
