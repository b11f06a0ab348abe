"""Records into typed values: a field that is not of its type costs that field alone, and is counted by its name."""

from collections.abc import Collection, Mapping
from typing import Final, TypeVar

import msgspec

from headway.trace.sources.document import Record
from headway.trace.sources.skips import Skips
from headway.wire.salvage import salvage

Value = TypeVar("Value")

TOO_DEEP: Final = "a record that is nested too deeply to be read"
WRONG: Final = "a field of the wrong type, left out: {}"
NO_TIME: Final = "a time that is none, left unknown: {}"
_NOTHING: Final[Mapping[str, str]] = {}


def decode(
    decoder: msgspec.json.Decoder[Value],
    record: Record,
    skips: Skips,
    why: str,
    *,
    needed: Collection[str] = (),
    spoils: Mapping[str, str] = _NOTHING,
) -> Value | None:
    """What a record holds, without those of its fields that are not of their type; ``None`` where nothing is left.

    Args:
        decoder: of the record's type; what must not be missing has no default there.
        record: the record, or a part of one.
        skips: where what was left out is counted.
        why: the reason where nothing is left.
        needed: fields that may be absent, but without which the record means nothing if they are there and wrong.
        spoils: by a field's name, that of the one beside it which means nothing without it: a count that is a part of
            what the other is summed up to.
    """
    try:
        found, left_out = salvage(decoder, record.data, spoils)
    except RecursionError:
        skips.add(TOO_DEEP, record.where)
        return None
    except msgspec.MsgspecError:
        skips.add(why, record.where)
        return None
    if any(field in needed for field in left_out):
        skips.add(why, record.where)
        return None
    for field in left_out:
        skips.add(WRONG.format(field), record.where)
    return found


def convert(kind: type[Value], value: object, where: str, skips: Skips, why: str) -> Value | None:
    """The same of what JSON was already decoded to."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return decode(msgspec.json.Decoder(kind), Record(msgspec.json.encode(value), where), skips, why)
    except RecursionError:
        skips.add(TOO_DEEP, where)
        return None
