"""OTLP as protobuf, which exporters send unless told otherwise: export requests and trace data to spans.

Read here and not by generated classes, so that no version of protobuf is forced on the agents that Headway is installed
beside. It takes as long as they do, for each value in them is an object to be asked for, while here an attribute that
was read before, as most were, is known by its bytes.
"""

from base64 import b64encode
from collections.abc import Iterator
from struct import Struct
from typing import Final

from headway.core.errors import BadInputError
from headway.wire.otel import RawEvent, RawSpan
from headway.wire.otlp import FAILED, KINDS, UNTIMED, Batch, Making, seconds
from headway.wire.protobuf import Value, broken, field, fields, varint

_REMEMBERED: Final = 20_000
"""Attributes kept, each of at most `_SHORT` bytes."""
_SHORT: Final = 256
_PREFIX: Final = 4
"""Bytes of a message's length, big-endian, before each message of a file of the collector."""
_DEEPEST: Final = 64
"""Levels of values inside values that are read."""
_TRACE_ID, _SPAN_ID = 16, 8
"""Bytes of ids."""
_KIND, _STATUS = 6, 15
"""Numbers of a span's fields."""
_HAS_LENGTH, _HAS_8_BYTES = 2, 1
"""Wire types."""
_ATTRIBUTE, _EVENT = 9 << 3 | _HAS_LENGTH, 11 << 3 | _HAS_LENGTH
"""The bytes that begin a span's attributes and events."""
_TWO_BYTES: Final = 128
"""Lengths from here on take more than one byte."""
_FIXED64, _DOUBLE = Struct("<Q"), Struct("<d")

_NAME, _VALUE, _TEXT = 1 << 3 | _HAS_LENGTH, 2 << 3 | _HAS_LENGTH, 1 << 3 | _HAS_LENGTH
"""The bytes that begin an attribute's name and value, and a value that is a text."""
_LEAST: Final = 6
"""Bytes of an attribute with a name and a text."""

Attribute = tuple[str, object]


class ProtobufReader:
    """Reads messages; what it remembers of one helps with the next."""

    def __init__(self) -> None:
        self._known: dict[bytes, Attribute] = {}

    def read(self, data: bytes) -> Batch:
        """The spans of one message. A span that is broken inside is rejected alone.

        Raises:
            BadInputError: not an OTLP message of traces.
        """
        made = Making()
        for number, group in fields(data):
            if number == 1:
                self._group(_bytes(group), made)
        return made.batch()

    def _group(self, data: bytes, made: Making) -> None:
        resource: dict[str, object] = {}
        scoped: list[bytes] = []
        for number, value in fields(data):
            if number == 1:
                resource = self._attributes(_bytes(value), 1)
            elif number in {2, 1000}:  # 1000: instrumentation_library_spans, until OTLP 0.19
                scoped.append(_bytes(value))
        for one in scoped:
            self._scope(one, resource, made)

    def _scope(self, data: bytes, resource: dict[str, object], made: Making) -> None:
        scope = ""
        spans: list[bytes] = []
        for number, value in fields(data):
            if number == 1:
                scope = next((_text(name) for key, name in fields(_bytes(value)) if key == 1), "")
            elif number == 2:  # noqa: PLR2004 - the numbers of fields are their names
                spans.append(_bytes(value))
        for one in spans:
            try:
                span = self._span(one)
            except (BadInputError, IndexError, RecursionError):
                made.reject("a span that is broken inside")
                continue
            if not span.start:
                made.reject(UNTIMED)
                continue
            span.scope, span.resource = scope, resource
            made.spans.append(span)

    def _span(self, data: bytes) -> RawSpan:
        known = self._known
        attributes: dict[str, object] = {}
        rest: dict[int, Value] = {}
        events: list[RawEvent] = []
        at, size = 0, len(data)
        while at < size:  # the commonest fields are read in place: a call for each costs more than all else here
            tag = data[at]
            if tag & 7 == _HAS_LENGTH and tag < _TWO_BYTES:
                length, at = data[at + 1], at + 2
                if length >= _TWO_BYTES:
                    length, at = varint(data, at - 1)
                raw = data[at : at + length]
                at += length
                if tag == _ATTRIBUTE:
                    name, value = known.get(raw) or self._attribute(raw)
                    attributes[name] = value
                elif tag == _EVENT:
                    events.append(self._event(raw))
                else:
                    rest[tag >> 3] = raw
            elif tag & 7 == _HAS_8_BYTES and tag < _TWO_BYTES:
                rest[tag >> 3] = data[at + 1 : at + 9]
                at += 9
            else:
                number, rest_value, at = field(data, at)
                rest[number] = rest_value
        if at != size:
            raise broken(at)
        return _made(rest, attributes, events)

    def _event(self, data: bytes) -> RawEvent:
        found = dict(fields(data))
        return RawEvent(
            name=_text(found.get(2, b"")), time=_time(found.get(1, b"")), attributes=self._attributes(data, 3)
        )

    def _attributes(self, data: bytes, field_number: int) -> dict[str, object]:
        found = (_bytes(value) for number, value in fields(data) if number == field_number)
        return dict(self._known.get(raw) or self._attribute(raw) for raw in found)

    def _attribute(self, data: bytes) -> Attribute:
        pair = _pair(data, 0)
        if len(data) <= _SHORT:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[data] = pair
        return pair


def is_traces(head: bytes) -> bool:
    """Whether bytes begin as a message of traces does, surely: groups of spans down to one with ids of right sizes.

    Args:
        head: the first bytes of the message, or all of it.
    """
    try:
        span = _into(_into(_into(head, 1), 2), 2)
        return len(_into(span, 1)) == _TRACE_ID and len(_into(span, 2)) == _SPAN_ID
    except BadInputError:
        return False


def is_stream(head: bytes) -> bool:
    """Whether bytes begin as a file of the collector does: messages, each after its length."""
    return is_traces(head[_PREFIX : _PREFIX + int.from_bytes(head[:_PREFIX], "big")])


def messages(data: bytes) -> Iterator[bytes]:
    """The messages of a document: itself, or those of a file of the collector. The last may be cut off."""
    if not is_stream(data):
        yield data
        return
    at = 0
    while at < len(data):
        end = at + _PREFIX + int.from_bytes(data[at : at + _PREFIX], "big")
        yield data[at + _PREFIX : end]
        at = end


def _into(data: bytes, wanted: int) -> bytes:
    """The value of the first field with a number, or what there is of it.

    Raises:
        BadInputError: there is no such field before the end.
    """
    at = 0
    while at < len(data):
        tag, start = varint(data, at)
        if tag == wanted << 3 | 2:
            length, start = varint(data, start)
            return data[start : start + length]
        _, _, at = field(data, at)
    raise broken(at)


def _made(held: dict[int, Value], attributes: dict[str, object], events: list[RawEvent]) -> RawSpan:
    get = held.get
    kind, status = get(_KIND, 0), get(_STATUS, b"")
    code = dict(fields(_bytes(status))).get(3, 0) if status else 0
    return RawSpan(
        trace=_id(get(1, b"")),
        id=_id(get(2, b"")),
        parent=_id(get(4, b"")) or None,
        name=_text(get(5, b"")),
        start=_time(get(7, b"")) or 0.0,
        end=_time(get(8, b"")),
        attributes=attributes,
        kind=KINDS[kind] if isinstance(kind, int) and kind < len(KINDS) else None,
        failed=FAILED.get(code) if isinstance(code, int) else None,
        events=events or (),
    )


def _bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise BadInputError(
            "This protobuf is not OTLP: a number is where a message should be.", fix="Send OTLP traces."
        )
    return value


def _text(value: Value) -> str:
    return _bytes(value).decode(errors="replace")


def _id(value: Value) -> str:
    held = _bytes(value)
    return held.hex() if any(held) else ""


def _time(value: Value) -> float | None:
    held = _bytes(value)
    return seconds(_FIXED64.unpack(held)[0]) if len(held) == _FIXED64.size else None


def _value(data: bytes, depth: int) -> object:
    """A value as `headway.wire.otlp` reads the same out of JSON."""
    plain: object = None
    for number, held in fields(data):
        match number:
            case 1:
                plain = _text(held)
            case 2:
                plain = bool(held)
            case 3 if isinstance(held, int):
                plain = held - (1 << 64) if held >> 63 else held
            case 4 if len(_bytes(held)) == _DOUBLE.size:
                plain = _DOUBLE.unpack(_bytes(held))[0]
            case 5 if depth < _DEEPEST:
                plain = [_value(_bytes(one), depth + 1) for key, one in fields(_bytes(held)) if key == 1]
            case 6 if depth < _DEEPEST:
                plain = dict(_pair(_bytes(one), depth + 1) for key, one in fields(_bytes(held)) if key == 1)
            case 7:
                plain = b64encode(_bytes(held)).decode()
            case _:
                pass
    return plain


def _pair(data: bytes, depth: int) -> Attribute:
    # A short name, then a value that is a short text: nearly all that are not known already.
    length = len(data)
    if length > _LEAST and data[0] == _NAME and length < _TWO_BYTES:
        at = 2 + data[1]
        if at + 4 <= length and data[at] == _VALUE and data[at + 2] == _TEXT and data[at + 3] == length - at - 4:
            return data[2:at].decode(errors="replace"), data[at + 4 :].decode(errors="replace")
    name, value = "", None
    for number, held in fields(data):
        if number == 1:
            name = _text(held)
        elif number == 2:  # noqa: PLR2004 - the numbers of fields are their names
            value = _value(_bytes(held), depth)
    return name, value
