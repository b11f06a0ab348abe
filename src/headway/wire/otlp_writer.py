"""OTLP as JSON, written: spans to the messages that `headway.wire.otlp` reads."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final, cast

import msgspec

from headway.wire.otel import RawSpan
from headway.wire.otlp import KINDS

_WORDS: Final = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
"""What JSON has no numbers for, as protobuf's JSON writes it."""


def to_json(spans: Sequence[RawSpan]) -> bytes:
    """One message that holds the spans, as `from_json` reads it."""
    groups: list[dict[str, object]] = []
    held: list[dict[str, object]] = []
    last: tuple[Mapping[str, object], str] | None = None
    for span in spans:
        if last is None or last != (span.resource, span.scope):
            last, held = (span.resource, span.scope), []
            scoped = [{"scope": {"name": span.scope}, "spans": held}]
            groups.append({"resource": {"attributes": _attributes(span.resource)}, "scopeSpans": scoped})
        held.append(_written(span))
    return msgspec.json.encode({"resourceSpans": groups})


def _written(span: RawSpan) -> dict[str, object]:
    written: dict[str, object] = {
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": KINDS.index(span.kind),
        "startTimeUnixNano": nanoseconds(span.start),
        "attributes": _attributes(span.attributes),
    }
    if span.parent is not None:
        written["parentSpanId"] = span.parent
    if span.end is not None:
        written["endTimeUnixNano"] = nanoseconds(span.end)
    if span.failed is not None:
        written["status"] = {"code": 2 if span.failed else 1}
    if span.events:
        written["events"] = [
            {"name": one.name, "timeUnixNano": nanoseconds(one.time or 0.0), "attributes": _attributes(one.attributes)}
            for one in span.events
        ]
    return written


def _attributes(plain: Mapping[str, object]) -> list[dict[str, object]]:
    return [{"key": key, "value": _any_value(value)} for key, value in plain.items()]


def _any_value(plain: object) -> dict[str, object]:
    match plain:
        case None:
            form, held = "", None
        case bool():
            form, held = "boolValue", plain
        case int():
            form, held = "intValue", str(plain)
        case float():
            form, held = "doubleValue", plain if isfinite(plain) else _WORDS[str(plain)]
        case list():
            form, held = "arrayValue", {"values": [_any_value(one) for one in cast("list[object]", plain)]}
        case dict():
            form, held = "kvlistValue", {"values": _attributes(cast("dict[str, object]", plain))}
        case _:
            form, held = "stringValue", str(plain)
    return {form: held} if form else {}


def nanoseconds(seconds: float) -> str:
    """Epoch nanoseconds as OTLP's JSON writes them; `headway.wire.otlp.seconds` gives back the very same float."""
    whole = int(seconds)
    return str(whole * 1_000_000_000 + round((seconds - whole) * 1_000_000_000))
