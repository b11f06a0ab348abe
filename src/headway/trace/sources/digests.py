"""Names for what must not be kept: texts by digest, spans and tasks by what identifies them in their source."""

import re
from hashlib import blake2b
from typing import Final

import msgspec

from headway.core.prompt import Part
from headway.core.task import SpanId, TaskId

_DIGIT: Final = re.compile(r"\d[\w:.+-]*")
_REACH: Final = (16, 48)
"""Characters before and after a digit within which what it belongs to lies."""
_VOLATILE: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"  # 2025-06-11T10:02:03.123Z
    r"|\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:\s?[AaPp]\.?[Mm]\b)?"  # 10:02:03, 9:15 am
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}"
    r"|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"  # a UUID
    r"|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{12,}\b"  # other hexadecimal ids, and epoch milliseconds
    r"|\b[a-z]+_(?=[A-Za-z0-9]*\d)[A-Za-z0-9]{8,}\b"  # call_9xk2…, toolu_01…
    r"|\b1[5-9]\d{8}\b"  # epoch seconds
)
_WEEKDAY: Final = re.compile(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b")


def digest(*pieces: str) -> str:
    """16 hex digits over the pieces; the boundaries between them count."""
    return blake2b("\0".join(pieces).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def part(role: str, text: str) -> Part:
    """A message without its text. A tool's result has no shape of its own: it is what it is."""
    exact = digest(role, text)
    masked = text if role == "tool" else _masked(text)
    return Part(role=role, chars=len(text), digest=exact, shape=exact if masked == text else digest(role, masked))


def _masked(text: str) -> str:
    """The text with each time and id replaced by one mark.

    Only the neighbourhood of digits is looked at closely: to look at every letter would take fifteen times as long.
    """
    before, after = _REACH
    pieces: list[str] = []
    done = at = 0
    while found := _DIGIT.search(text, at):
        start = found.start()
        volatile = _VOLATILE.search(text, max(done, start - before), start + after)
        if volatile is None:
            at = found.end()
            continue
        pieces += (text[done : volatile.start()], "\1")
        done = at = volatile.end()
    masked = "".join(pieces) + text[done:] if pieces else text
    return _WEEKDAY.sub("\1", masked) if "day" in masked else masked


def arguments_digest(arguments: object) -> str:
    """Of a tool's arguments: a JSON text, or what one decodes to; the order of keys and white space do not count."""
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            return digest(str(arguments))
    return digest(msgspec.json.encode(arguments, order="deterministic").decode())


def span_id(*pieces: str) -> SpanId:
    """A stable id for a span that has none in its source, from what identifies it there."""
    return SpanId(digest("span", *pieces))


def task_id(*pieces: str) -> TaskId:
    """A stable id for a task that has none in its source: 32 hex digits."""
    return TaskId(blake2b("\0".join(("task", *pieces)).encode(errors="surrogatepass"), digest_size=16).hexdigest())
