"""What Headway says while it runs, a line an event: for a person, or as JSON for a machine.

A line of JSON has ``time`` (UTC), ``level``, ``event`` (a short stable word), ``message`` and, where they are known,
``replica``, ``task`` and ``error``. An exception is told by its type and place, not by its message: that may quote what
somebody sent.
"""

import logging
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

LogFormat = Literal["text", "json"]

_OWN: Final = "headway."
_FACTS: Final = ("replica", "task", "error")
"""What a statement may tell beside its message, in ``extra``; `event` too."""


def formatter(form: LogFormat) -> logging.Formatter:
    """The formatter of one of the two forms."""
    if form == "json":
        return JsonLines()
    return logging.Formatter("%(asctime)s  %(levelname)-7s  %(message)s", datefmt="%H:%M:%S")


class JsonLines(logging.Formatter):
    """One line of JSON for each event."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        said: dict[str, object] = {"message": record.getMessage()}
        for fact in _FACTS:
            value = getattr(record, fact, None)
            if value is not None:
                said[fact] = value
        kind, _, trace = record.exc_info or (None, None, None)
        if kind is not None:
            said["error"] = kind.__name__
            said["where"] = [
                f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(trace)
            ]
        event = getattr(record, "event", None) or record.name.removeprefix(_OWN)
        return json_line(record.created, record.levelname.lower(), event, said)


def json_line(at: float, level: str, event: str, said: Mapping[str, object]) -> str:
    """One line.

    Args:
        at: epoch seconds.
        level: how much it matters: ``info``, ``warning``, ``error``.
        event: a short stable word.
        said: what else there is to say; a value that JSON has no form for is told as text.
    """
    when = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return msgspec.json.encode({"time": when, "level": level, "event": event, **said}, enc_hook=str).decode()
