"""How far a trace can be trusted: what of it is measured, what is derived, what is unknown."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct, structs

from headway.core.span import HumanWait, ModelCall, Span, Step, ToolUse
from headway.core.spent import Sum
from headway.trace.sources.source import Timing
from headway.trace.tree import once

Quality = Literal["measured", "derived", "unknown"]
Subject = Literal["times", "ttft", "tools", "tokens", "cache", "cost", "retries", "prompts"]

_TIMES: Final[dict[Timing, tuple[Quality, str]]] = {
    "spans": ("measured", "start and end of each span, by whoever did the work"),
    "messages": ("derived", "from the times of messages: a span runs from one to the next"),
    "durations": ("derived", "from durations alone, laid one after the other: waits between are not in them"),
    "none": ("unknown", "nothing in the record tells how long anything took, so nothing is said about seconds"),
}

_OWN: Final = "the record's own total of the task; of no call is its part known"


class Aspect(Struct, frozen=True, kw_only=True):
    """One thing that an analysis may want to know."""

    subject: Subject
    quality: Quality
    """``unknown`` where not one of the spans that it is about says it."""
    known: int
    """Of how many spans it is known..."""
    of: int
    """...out of how many that it is about; both 0 where it is about the trace as a whole."""
    how: str
    """A sentence without a full stop: by whom it was measured, from what it was derived, why it is unknown."""

    @property
    def whole(self) -> bool:
        """Known of every span that it is about, and of at least one."""
        return self.quality != "unknown" and self.known == self.of


class Verdict(Struct, frozen=True, kw_only=True):
    """The quality of one task's record. No analysis may use what it calls unknown."""

    source: str
    """Title of the format."""
    timing: Timing
    aspects: tuple[Aspect, ...]
    remarks: tuple[str, ...]
    """What else must be known to trust the numbers; plain sentences."""
    extent: float | None = None
    """Seconds from the first moment to the last on record, where not of each thing it is told how long it took."""

    def about(self, subject: Subject) -> Aspect:
        """What is known about one subject."""
        return next(aspect for aspect in self.aspects if aspect.subject == subject)

    @property
    def timed(self) -> bool:
        """Whether it is known when things happened, so that there is an E2E, a path and phases."""
        return self.timing in {"spans", "messages"}


def told_by_price(aspects: Sequence[Aspect], cost: Sum) -> tuple[Aspect, ...]:
    """The aspects, once prices were looked up: of how many calls the cost is known in full.

    Args:
        aspects: what the record alone says; tokens are known, but not whether a price is, nor what it needs of them.
        cost: of all calls.
    """
    return tuple(_priced(aspect, cost) if aspect.subject == "cost" else aspect for aspect in aspects)


def _priced(aspect: Aspect, cost: Sum) -> Aspect:
    known = min(aspect.known, cost.known)
    if known == aspect.known:
        return aspect
    if known:
        return structs.replace(aspect, known=known)
    how = "a price, or a token count that it needs, is not known"
    return structs.replace(aspect, known=0, quality="unknown", how=how)


def judge(
    spans: Sequence[Span], source: str, timing: Timing, remarks: Iterable[str] = (), *, extent: float | None = None
) -> Verdict:
    """The verdict on one task's spans, by what they say and do not say. What was recorded twice counts once.

    Args:
        spans: all spans of the task.
        source: title of the format they came from.
        timing: where the source's times come from; none where no work has an end.
        remarks: what the importer has to say.
        extent: seconds from the first moment to the last, where the spans were robbed of their times.
    """
    told = [*remarks, *[remark for span in spans if span.remarks for remark in span.remarks]]
    spans = once(spans, told)
    calls = [span.work for span in spans if type(span.work) is ModelCall]
    tools = [span.work for span in spans if type(span.work) is ToolUse]
    if _endless(spans) or (timing == "messages" and _timeless(spans)):
        timing, extent = "none", _extent(spans)
    own = next((span.work for span in spans if type(span.work) is Step and span.parent is None), Step())
    quality, how = _TIMES[timing]
    watched = timing in {"spans", "durations"}
    return Verdict(
        source=source,
        timing=timing,
        aspects=(
            Aspect(subject="times", quality=quality, known=0, of=0, how=how),
            _ttft(calls),
            _tools([watched and not tool.inferred for tool in tools], timing),
            _tokens(calls, own),
            _aspect(
                "cache",
                [call.usage.cache_read is not None or call.usage.input_tokens == 0 for call in calls],
                "reported by the engine",
                "the record does not say what was cached",
            ),
            _cost(calls, own),
            _aspect("retries", [call.attempts is not None for call in calls], "counted", "may contain hidden retries"),
            _aspect("prompts", [call.prompt is not None for call in calls], "kept, by digest", "not in the record"),
        ),
        remarks=tuple(dict.fromkeys(told)),
        extent=extent or None,
    )


def _endless(spans: Sequence[Span]) -> bool:
    """Whether nothing is known to have taken any time, since what was at work has no end in the record."""
    at_work = [span for span in spans if type(span.work) is not HumanWait]
    unfinished = any(span.end is None for span in at_work)
    return unfinished and not any(span.end is not None and span.end > span.start for span in at_work)


def _extent(spans: Sequence[Span]) -> float:
    """Between what is known of when things were at work."""
    moments = [
        moment
        for span in spans
        if type(span.work) is not HumanWait
        for moment in (span.start, span.start if span.end is None else span.end)
    ]
    return max(moments) - min(moments)


def _timeless(spans: Sequence[Span]) -> bool:
    """Whether no call took any time though all have ended: then the messages' times are not those of the work."""
    ends = [(span.start, span.end) for span in spans if type(span.work) is ModelCall]
    return bool(ends) and all(end is not None and end <= start for start, end in ends)


def _aspect(subject: Subject, known: Sequence[bool], yes: str, no: str) -> Aspect:
    count = known.count(True)
    quality: Quality = "measured" if count else "unknown"
    return Aspect(subject=subject, quality=quality, known=count, of=len(known), how=yes if count else no)


def _tools(timed: Sequence[bool], timing: Timing) -> Aspect:
    if any(timed) or timing == "none" or not timed:
        return _aspect("tools", timed, "timed where it ran", "no times in the record")
    how = "the gap between answer and next request"
    return Aspect(subject="tools", quality="derived", known=len(timed), of=len(timed), how=how)


def _tokens(calls: Sequence[ModelCall], own: Step) -> Aspect:
    known = [_counted(call) for call in calls]
    if not any(known) and own.used is not None:
        return Aspect(subject="tokens", quality="measured", known=0, of=len(calls), how=_OWN)
    return _aspect("tokens", known, "reported by the engine", "no usage in the record")


def _cost(calls: Sequence[ModelCall], own: Step) -> Aspect:
    recorded = sum(call.cost is not None for call in calls)
    if not recorded and own.cost is not None:
        return Aspect(subject="cost", quality="measured", known=0, of=len(calls), how=_OWN)
    if recorded:
        return Aspect(subject="cost", quality="measured", known=recorded, of=len(calls), how="recorded")
    counted = sum(map(_counted, calls))
    how = "tokens times list price, where the list has one" if counted else "no usage in the record"
    quality: Quality = "derived" if counted else "unknown"
    return Aspect(subject="cost", quality=quality, known=counted, of=len(calls), how=how)


def _ttft(calls: Sequence[ModelCall]) -> Aspect:
    measured = sum(call.first_token is not None for call in calls)
    derived = sum(call.first_token is None and call.engine is not None for call in calls)
    if measured:
        quality, how = "measured", "when the first token of a stream arrived"
    elif derived:
        quality, how = "derived", "from the engine's own timings"
    else:
        quality, how = "unknown", "no first token in the record: model time stays unsplit"
    return Aspect(subject="ttft", quality=quality, known=measured + derived, of=len(calls), how=how)


def _counted(call: ModelCall) -> bool:
    return call.usage.input_tokens is not None and call.usage.output_tokens is not None
