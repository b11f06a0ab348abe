"""Traces out of Grafana Tempo: OTLP by another outermost name."""

from collections.abc import Iterator, Sequence
from typing import Final, cast

import msgspec
from msgspec import Raw, Struct

from headway.trace.sources.document import Document, Sample
from headway.trace.sources.otel.otlp import holds_groups, take
from headway.trace.sources.otel.traces import Traces
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.wire.otlp import from_json

_NAME: Final = "tempo"


class _Wrapped(Struct):
    """Tempo's API since version 2."""

    trace: Raw | msgspec.UnsetType = msgspec.UNSET


_WRAPPED: Final = msgspec.json.Decoder(_Wrapped)


class Tempo:
    """Importer of what Tempo's API and Grafana's export of a trace give."""

    name = _NAME
    title = "Grafana Tempo"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By OTLP's groups under Tempo's names for them."""
        return any(holds_groups(found, ("batches",)) or _is_wrapped(found) for found in sample.objects())

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One task for each trace."""
        traces = Traces(_NAME)
        for document in documents:
            for record in document.records(skips):
                take(from_json, _unwrapped(record.data), record.where, traces, skips)
        yield from traces.pieces()


def _is_wrapped(found: dict[str, object]) -> bool:
    inner = found.get("trace")
    return isinstance(inner, dict) and holds_groups(cast("dict[str, object]", inner), ("resourceSpans", "batches"))


def _unwrapped(data: bytes) -> bytes:
    try:
        inner = _WRAPPED.decode(data).trace
    except (msgspec.DecodeError, RecursionError):
        return data
    return data if isinstance(inner, msgspec.UnsetType) else bytes(inner)
