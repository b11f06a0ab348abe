"""How urgent a call is, by its own headers: lane, priority, deadline. They are read once and kept with its record.

A header that cannot be read counts as absent, and a note in the call's receipt says so: no call fails for it.
"""

import re
from typing import Final

from headway.core.access import Caller
from headway.gateway.journal import CallRecord

LANE: Final = b"x-headway-lane"
PRIORITY: Final = b"x-headway-priority"
DEADLINE: Final = b"x-headway-deadline"
"""Seconds that the task may still take, not a time of day: no clocks have to agree."""
_NAMES: Final = frozenset({LANE, PRIORITY, DEADLINE})
_LEVEL: Final = re.compile(rb"[+-]?\d{1,2}")
_SECONDS: Final = re.compile(rb"-?\d{1,9}(?:\.\d{1,9})?")
_LEVELS: Final = 10
_SHOWN: Final = 40


def read_urgency(
    record: CallRecord, fields: dict[bytes, bytes], now: float, caller: Caller | None, batch: frozenset[str]
) -> None:
    """Note lane, priority and deadline of a call that came at ``now``.

    Args:
        record: where they are kept.
        fields: the request's headers by lower-case name.
        now: epoch seconds.
        caller: whose call it is, where there are keys.
        batch: tenants and keys, by id, whose calls are batch whatever they say.
    """
    held = caller is not None and (caller.tenant.id in batch or caller.key.id in batch)
    if held:
        record.lane = "batch"
    if _NAMES.isdisjoint(fields):
        return
    lane, level, left = fields.get(LANE), fields.get(PRIORITY), fields.get(DEADLINE)
    if lane == b"batch":
        record.lane = "batch"
    elif lane == b"interactive":
        if held:
            _unread(record, LANE, lane, "more than the operator allows: this caller's calls are batch")
    elif lane is not None:
        _unread(record, LANE, lane, "neither interactive nor batch")
    if level is not None:
        if _LEVEL.fullmatch(level):
            record.priority = max(-_LEVELS, min(_LEVELS, int(level)))
        else:
            _unread(record, PRIORITY, level, f"no whole number from -{_LEVELS} to {_LEVELS}")
    if left is not None:
        if _SECONDS.fullmatch(left):
            record.deadline = now + max(float(left), 0.0)  # what is past is not more so
        else:
            _unread(record, DEADLINE, left, "no number of seconds")


def _unread(record: CallRecord, name: bytes, value: bytes, what: str) -> None:
    shown = value[:_SHOWN].decode("ascii", "replace")
    record.notes += (f"{name.decode()} was not heeded: {shown!r} is {what}.",)
