"""A trace as a whole: what only its spans together tell."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, structs
from msgspec.structs import force_setattr

from headway.core.span import UNKNOWN_MODEL, ModelCall, Span, ToolUse
from headway.trace.sources.otel.conversation import waits_between
from headway.trace.sources.otel.issuers import find_issuers
from headway.trace.sources.otel.reading import Message, Nameless, OldCall, Reading, Sending, StreamEnd

_SAME: Final = 0.1
"""Seconds between two records of one moment that were written in different places of the code."""
_HIGHEST: Final = 16
"""Levels between a call and its engine's own span: a gateway or two, each with an HTTP client and a server."""
_UNITS: Final = (
    "Times of {} were written in another unit than the format's and read in the one that brings them to the others, or"
    " into this century."
)
_STREAMS: Final = "The end of a stream was taken from the record that was written when it had been read."
_TOOLS: Final = (
    "These conventions had no spans for tools: nameless spans that lie between calls and hold nothing were taken for"
    " tools."
)


class Whole(Struct, frozen=True):
    """One task."""

    spans: tuple[Span, ...]
    title: str | None
    remarks: tuple[str, ...]


def whole(readings: Sequence[Reading]) -> Whole:
    """The spans of one trace, each told what the others say of it.

    The spans are written to, which a copy of each would take a third longer than all else here: they must have been
    made for this and be known to nobody yet.
    """
    spans = [reading.span for reading in readings]
    _share_session(spans)
    remarks: list[str] = []
    if [True for reading in readings if reading.trait is not None]:
        index = {span.id: i for i, span in enumerate(spans)}
        above = [index.get(span.parent, -1) if span.parent is not None else -1 for span in spans]
        _part_queues(spans, readings, above)
        _count_attempts(spans, readings, above)
        remarks += _find_tools(spans, readings, above)
        remarks += _end_streams(spans, readings)
    if odd := sum([reading.rescaled for reading in readings]):
        remarks.append(_UNITS.format("1 span" if odd == 1 else f"{odd:,} spans"))
    _name_models(spans)
    remarks += find_issuers(spans)
    waits, told = waits_between(spans)
    spans += waits
    remarks += told
    first = min([one for one in readings if one.asked], key=lambda one: one.span.start, default=None)
    return Whole(tuple(spans), None if first is None else first.asked, tuple(remarks))


def _share_session(spans: list[Span]) -> None:
    """Where all spans that name a session name the same, it is everybody's."""
    named = {span.session for span in spans} - {None}
    if len(named) == 1:
        (session,) = named
        for span in spans:
            if span.session is None:
                force_setattr(span, "session", session)


def _name_models(spans: list[Span]) -> None:
    """A call that does not say its model, as an engine's or an SDK's own span, has that of the call around it."""
    unnamed = [i for i, span in enumerate(spans) if type(span.work) is ModelCall and span.work.model == UNKNOWN_MODEL]
    if not unnamed:
        return
    by_id = {span.id: span for span in spans}
    for i in unnamed:
        work, above = spans[i].work, spans[i].parent
        for _ in range(_HIGHEST):
            outer = by_id.get(above) if above is not None else None
            if outer is None:
                break
            if type(work) is ModelCall and type(outer.work) is ModelCall and outer.work.model != UNKNOWN_MODEL:
                name = f"chat {outer.work.model}"
                spans[i] = structs.replace(spans[i], name=name, work=structs.replace(work, model=outer.work.model))
                break
            above = outer.parent


def _part_queues(spans: list[Span], readings: Sequence[Reading], above: list[int]) -> None:
    """What takes a message from a queue is not waited for by what put it there."""
    for i, reading in enumerate(readings):
        if isinstance(reading.trait, Message) and not reading.trait.sent and above[i] >= 0:
            sender = readings[above[i]].trait
            if isinstance(sender, Message) and sender.sent:
                spans[i] = structs.replace(spans[i], awaited=False)


def _count_attempts(spans: list[Span], readings: Sequence[Reading], above: list[int]) -> None:
    """A call was sent as often as there are requests to a model under it."""
    sent: dict[int, list[int]] = {}
    for reading, holder in zip(readings, above, strict=True):
        if isinstance(reading.trait, Sending) and holder >= 0:
            sent.setdefault(holder, []).append(1 + (reading.trait.before or 0))
    for i, times in sent.items():
        work = spans[i].work
        if type(work) is ModelCall and work.attempts is None:
            spans[i] = structs.replace(spans[i], work=structs.replace(work, attempts=max(len(times), *times)))


def _find_tools(spans: list[Span], readings: Sequence[Reading], above: list[int]) -> Sequence[str]:
    """Where the conventions had no spans for tools: what was done beside calls, by itself."""
    beside = {
        (reading.trait.scope, holder)
        for reading, holder in zip(readings, above, strict=True)
        if isinstance(reading.trait, OldCall)
    }
    if not beside or any(type(span.work) is ToolUse for span in spans):
        return ()
    holders = set(above)
    calls = [span for span in spans if type(span.work) is ModelCall]
    found = [
        i
        for i, reading in enumerate(readings)
        if isinstance(reading.trait, Nameless) and i not in holders and (reading.trait.scope, above[i]) in beside
        if not any(_overlap(spans[i], call) for call in calls)
    ]
    for i in found:
        name = spans[i].name
        spans[i] = structs.replace(spans[i], name=f"execute_tool {name}", work=ToolUse(name=name))
    return (_TOOLS,) if found else ()


def _overlap(one: Span, other: Span) -> bool:
    """Whether both were at work at one time; what never ended is taken to have been at work ever since."""
    return (other.end is None or one.start < other.end) and (one.end is None or other.start < one.end)


def _end_streams(spans: list[Span], readings: Sequence[Reading]) -> Sequence[str]:
    """A call whose span ended when its stream began ends with the record of the stream's end, which is taken up."""
    taken: list[int] = []
    for i, reading in enumerate(readings):
        if isinstance(reading.trait, StreamEnd):
            record, began = reading.span, reading.span.start - reading.trait.seconds
            near = [
                (abs(span.end - began), k)
                for k, span in enumerate(spans)
                if type(span.work) is ModelCall and span.end is not None and span.parent == record.parent
                if k != i and abs(span.end - began) <= _SAME
            ]
            if near:
                _, k = min(near)
                spans[k] = _ended(spans[k], record)
                taken.append(i)
    for i in reversed(taken):
        del spans[i]
    return (_STREAMS,) if taken else ()


def _ended(call: Span, record: Span) -> Span:
    work = call.work
    if type(work) is not ModelCall:
        return call
    if type(record.work) is ModelCall:
        work = structs.replace(work, usage=record.work.usage, answer=record.work.answer or work.answer)
    return structs.replace(call, end=record.start, work=structs.replace(work, stream=True))
