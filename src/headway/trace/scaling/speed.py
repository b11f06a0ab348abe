"""How fast a model is, from the records of its calls: time to first token, reading, writing, length of answers."""

from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Final

from msgspec import Struct, structs

from headway.core.span import ModelCall, Span
from headway.core.task import SpanId, TaskId
from headway.trace.scaling.curve import Point, Stretch, crowding, curve
from headway.trace.stats import Line
from headway.trace.stats import fit as line_through

_REACH: Final = 2.0
"""What is no line over a length holds up to so many times the longest that was measured."""
_CALM: Final = 16
_CALM_SHARE: Final = 0.25
"""Calls that speed is told by: the least crowded quarter, or 16 where that is more."""
_LINE: Final = 8
"""Calls, of fewer of which a line is a guess."""


class Speed(Struct, frozen=True, kw_only=True):
    """What calls of one model take while few others are under way. Seconds and tokens; ``None`` is unknown."""

    calls: int = 0
    """Whole, unfailed calls that it is known by."""
    first_token: float | None = None
    """Median time to first token."""
    longest: int | None = None
    """Most prompt tokens, not from a cache, of such a call."""
    longest_answer: int | None = None
    overhead: float | None = None
    """What of the time to first token does not depend on the prompt's length."""
    prefill: float | None = None
    """For each token of the prompt that is not in a cache."""
    token: float | None = None
    """Median time per output token: (last - first token) / (output tokens - 1)."""
    line: Line | None = None
    """Seconds of a whole call over its output tokens: for calls whose first token nobody timed."""
    whole: float | None = None
    """Median seconds of a whole call: where those did not differ enough for a line."""
    output_tokens: float | None = None
    """Mean length of an answer."""
    tokens_a_char: float | None = None
    """Prompt tokens for each character of the messages."""
    off: float | None = None
    """Median of |measured - told| / measured over such calls, told by `seconds`."""

    def seconds(self, input_tokens: float | None, output_tokens: float | None) -> float | None:
        """What a call takes while few others are under way.

        Args:
            input_tokens: that are not in a cache.
            output_tokens: of the answer.
        """
        if input_tokens is None or output_tokens is None:
            return None
        short = self.longest is not None and input_tokens <= _REACH * self.longest
        first = self.first_token if short else None
        if self.overhead is not None and self.prefill is not None:
            first = self.overhead + self.prefill * input_tokens
        if self.token is not None and first is not None:
            return first + self.token * max(0.0, output_tokens - 1)
        if short and self.line is not None:
            return max(0.0, self.line.intercept + self.line.slope * output_tokens)
        brief = self.longest_answer is not None and output_tokens <= _REACH * self.longest_answer
        return self.whole if short and brief else None


class _Call(Struct, frozen=True):
    start: float
    end: float
    call: ModelCall
    fresh: int | None
    """Prompt tokens that were not in a cache."""

    @property
    def first(self) -> float | None:
        return None if self.call.first_token is None else self.call.first_token - self.start

    @property
    def gap(self) -> float | None:
        call, tokens = self.call, self.call.usage.output_tokens
        if call.first_token is None or call.last_token is None or tokens is None or tokens <= 1:
            return None
        return (call.last_token - call.first_token) / (tokens - 1)


def measured(spans: Iterable[Span], model: str, provider: str | None = None) -> tuple[Speed, tuple[Point, ...]]:
    """How fast a model is, and its curve: how many times as fast as one call after another, by calls under way.

    Work is counted in the seconds that `Speed.seconds` tells of a call, so that long and short calls weigh as they are.
    A call that is recorded by its caller and by the gateway that passed it on counts once, as its caller saw it.

    Args:
        spans: any; left out are those that are no calls of it, failed, have not ended, or gave a kept answer again.
        model: its name.
        provider: by OpenTelemetry's names; ``None``: whichever.
    """
    calls = _calls(spans, model, provider)
    calm = _calm(calls)
    speed = _speed(calls, calm)
    told = [(call, speed.seconds(call.fresh, call.call.usage.output_tokens)) for call in calls]
    points = curve(Stretch(call.start, call.end, seconds) for call, seconds in told if seconds)
    told = [(call, speed.seconds(call.fresh, call.call.usage.output_tokens)) for call in calm]
    off = [abs(1 - seconds / (call.end - call.start)) for call, seconds in told if seconds]
    return structs.replace(speed, off=median(off) if off else None), points


def _calm(calls: Sequence[_Call]) -> list[_Call]:
    """Those beside which the fewest others were under way: how calls slow each other is the curve's to tell."""
    crowds = crowding([Stretch(call.start, call.end, 0.0) for call in calls])
    by_crowd = sorted(range(len(calls)), key=crowds.__getitem__)
    return [calls[at] for at in by_crowd[: max(_CALM, int(_CALM_SHARE * len(calls)))]]


def _calls(spans: Iterable[Span], model: str, provider: str | None) -> list[_Call]:
    by_id: dict[tuple[TaskId, SpanId], Span] = {
        (span.task, span.id): span for span in spans if isinstance(span.work, ModelCall)
    }
    calls: list[_Call] = []
    for span in by_id.values():
        call = span.work
        if not isinstance(call, ModelCall) or call.model != model or provider not in (None, call.provider):
            continue
        if span.end is None or span.error is not None or call.given_again is not None:
            continue
        if span.parent is not None and (span.task, span.parent) in by_id:
            continue
        start = span.start if call.sent is None else call.sent
        if span.end > start:
            read, cached = call.usage.input_tokens, call.usage.cache_read or 0
            calls.append(_Call(start, span.end, call, None if read is None else max(0, read - cached)))
    return calls


def _speed(calls: Sequence[_Call], calm: Sequence[_Call]) -> Speed:
    firsts = [first for call in calm if (first := call.first) is not None]
    gaps = [gap for call in calm if (gap := call.gap) is not None]
    written = [tokens for call in calls if (tokens := call.call.usage.output_tokens) is not None]
    whole = [
        (float(tokens), call.end - call.start) for call in calm if (tokens := call.call.usage.output_tokens) is not None
    ]
    line = line_through(whole, least=_LINE)
    overhead, prefill = _reading(calm)
    return Speed(
        calls=len(calls),
        first_token=median(firsts) if firsts else None,
        longest=max((call.fresh for call in calm if call.fresh is not None), default=None),
        longest_answer=max((round(tokens) for tokens, _ in whole), default=None),
        overhead=overhead,
        prefill=prefill,
        token=median(gaps) if gaps else None,
        line=line if line is not None and line.slope_low > 0 else None,
        whole=median(seconds for _, seconds in whole) if whole else None,
        output_tokens=fmean(written) if written else None,
        tokens_a_char=_tokens_a_char(calls),
    )


def _reading(calls: Sequence[_Call]) -> tuple[float | None, float | None]:
    """Overhead and seconds a token of prefill: by the engine's own timings, else by a line of TTFT over prompts."""
    timed = [(call, engine) for call in calls if (engine := call.call.engine) is not None and engine.prefill_tokens]
    beyond = [first - engine.prefill_seconds for call, engine in timed if (first := call.first) is not None]
    if beyond:
        tokens = sum(engine.prefill_tokens for _, engine in timed)
        return max(0.0, median(beyond)), sum(engine.prefill_seconds for _, engine in timed) / tokens
    points = [
        (float(call.fresh), first) for call in calls if call.fresh is not None and (first := call.first) is not None
    ]
    line = line_through(points, least=_LINE)
    if line is None or line.slope_low <= 0:
        return None, None
    return max(0.0, line.intercept), line.slope


def _tokens_a_char(calls: Sequence[_Call]) -> float | None:
    counted = [
        (tokens, sum(part.chars for part in call.call.prompt))
        for call in calls
        if call.call.prompt is not None and (tokens := call.call.usage.input_tokens) is not None
    ]
    characters = sum(size for _, size in counted)
    return sum(tokens for tokens, _ in counted) / characters if characters else None
