"""One span as OpenTelemetry records it, whatever it travelled in: decoded, not interpreted."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

Kind = Literal["internal", "server", "client", "producer", "consumer"]

TRACE_DIGITS, SPAN_DIGITS = 32, 16
"""Hex digits of ids of W3C trace context."""
_HEX: Final = re.compile("[0-9a-f]*")
_NO_ATTRIBUTES: Final[Mapping[str, object]] = {}


class RawEvent(Struct, frozen=True, gc=False):
    """Something that happened during a span."""

    name: str
    time: float | None
    """Epoch seconds."""
    attributes: Mapping[str, object] = _NO_ATTRIBUTES


class RawSpan(Struct, kw_only=True, gc=False):
    """One span as recorded, its values decoded but not interpreted."""

    trace: str
    id: str
    parent: str | None = None
    name: str
    start: float
    """Epoch seconds."""
    end: float | None = None
    """``None``: never ended."""
    attributes: Mapping[str, object] = _NO_ATTRIBUTES
    """Plain values: str, bool, int, float, lists and dicts of them. Numbers may be strings, structures JSON."""
    kind: Kind | None = None
    scope: str = ""
    """Name of the instrumentation scope."""
    failed: bool | None = None
    """Status: ``True`` ERROR, ``False`` OK, ``None`` UNSET, which says nothing."""
    events: Sequence[RawEvent] = ()
    resource: Mapping[str, object] = _NO_ATTRIBUTES
    """Attributes of what produced it: the service, the host."""
    awaited: bool = True
    """False where the record says that the parent did not wait for it."""


def sound(spans: Sequence[RawSpan]) -> bool:
    """Whether all ids in the spans are as W3C trace context has them: lower-case hex of their lengths, not all zeros.

    Nearly always they are, and asked of many at once it costs a quarter of what it does of one after the other.
    """
    ids = {span.id for span in spans}
    ids.update([span.parent for span in spans if span.parent is not None])
    return _sound({span.trace for span in spans}, TRACE_DIGITS) and _sound(ids, SPAN_DIGITS)


def _sound(ids: set[str], digits: int) -> bool:
    return set(map(len, ids)) == {digits} and _HEX.fullmatch("".join(ids)) is not None and "0" * digits not in ids
