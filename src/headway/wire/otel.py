"""One span as OpenTelemetry records it, whatever it travelled in: decoded, not interpreted."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

Kind = Literal["internal", "server", "client", "producer", "consumer"]

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
