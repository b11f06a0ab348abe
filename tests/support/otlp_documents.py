"""OTLP documents in tests: spans out of a few words."""

import json

SECOND = 1_000_000_000
AT = 1_790_000_000 * SECOND
"""Nanoseconds: when everything starts in these documents."""
TRACE = "5b8efff798038103d269b633813fc60c"


def value(plain: object) -> dict[str, object]:
    """A plain value as OTLP's JSON writes it."""
    match plain:
        case bool():
            return {"boolValue": plain}
        case int():
            return {"intValue": str(plain)}
        case float():
            return {"doubleValue": plain}
        case list():
            return {"arrayValue": {"values": [value(one) for one in plain]}}  # type: ignore[misc] - JSON
        case dict():
            return {"kvlistValue": {"values": attributes(plain)}}  # type: ignore[misc] - JSON
        case _:
            return {"stringValue": str(plain)}


def attributes(plain: dict[str, object]) -> list[dict[str, object]]:
    """Attributes as OTLP's JSON writes them."""
    return [{"key": key, "value": value(one)} for key, one in plain.items()]


def event(name: str, at: float, **plain: object) -> dict[str, object]:
    """An event ``at`` seconds after `AT`; dots in names are double underscores."""
    return {
        "name": name,
        "timeUnixNano": str(AT + int(at * SECOND)),
        "attributes": attributes({key.replace("__", "."): one for key, one in plain.items()}),
    }


def span(  # noqa: PLR0913 - a span has these
    own: int,
    name: str,
    start: float,
    end: float | None,
    plain: dict[str, object] | None = None,
    *,
    parent: int | None = None,
    kind: int = 1,
    status: int = 0,
    events: list[dict[str, object]] | None = None,
) -> dict[str, object]:
    """One span; times are seconds after `AT`."""
    made: dict[str, object] = {
        "traceId": TRACE,
        "spanId": f"{own:016x}",
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(AT + round(start * SECOND)),
        "attributes": attributes(plain or {}),
        "status": {"code": status} if status else {},
    }
    if end is not None:
        made["endTimeUnixNano"] = str(AT + round(end * SECOND))
    if parent is not None:
        made["parentSpanId"] = f"{parent:016x}"
    if events:
        made["events"] = events
    return made


def message(*spans: dict[str, object], scope: str = "test", resource: dict[str, object] | None = None) -> bytes:
    """One export request on one line."""
    group = {
        "resource": {"attributes": attributes(resource or {})},
        "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}],
    }
    return json.dumps({"resourceSpans": [group]}).encode()
