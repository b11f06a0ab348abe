"""Turns get slower as the history grows."""

from collections.abc import Iterable, Sequence
from typing import Final

from headway.trace.findings.case import Case
from headway.trace.findings.figures import plural, seconds, share
from headway.trace.findings.finding import Confidence, Finding
from headway.trace.phases import MODEL, PREFILL, Phase
from headway.trace.stats import Line, fit

LEAST: Final = 0.05
"""Of E2E: a slope may be sure and still not matter."""
SURE: Final = 0.25
"""Lower end of the slope's interval / slope: below that, what it costs is anybody's guess."""

Points = Sequence[tuple[int, float, int]]
"""Of each call its index, the seconds that may depend on its input, and its input tokens."""


def slower_turns(case: Case) -> Iterable[Finding]:
    """Seconds before the first token (where that is unknown, of the whole call) rise with the input tokens."""
    if not case.timed:
        return
    chat = max((c for c in case.chats if not case.study.in_tool[c[0]]), key=len, default=list[int]())
    read = [i for i in chat if case.call(i).usage.input_tokens is not None and case.span(i).error is None]
    points = _reading(case, read)
    line = fit([(tokens, spent) for _, spent, tokens in points])
    phase: Phase = PREFILL
    if line is None:
        points, phase = _unsplit(case, read), MODEL
        line = _apart(case, points)
    if line is None or line.slope_low <= 0 or line.slope_low < SURE * line.slope:
        return
    yield from _found(case, points, line, phase)


def _reading(case: Case, calls: Iterable[int]) -> Points:
    found: list[tuple[int, float, int]] = []
    for i in calls:
        own = [segment for segment in case.study.own[i] if segment.phase == PREFILL]
        if own:
            found.append((i, sum(segment.end - segment.start for segment in own), _input(case, i)))
    return found


def _unsplit(case: Case, calls: Iterable[int]) -> Points:
    found: list[tuple[int, float, int]] = []
    for i in calls:
        own = [segment for segment in case.study.own[i] if segment.phase == MODEL]
        if own and case.call(i).usage.output_tokens is not None:
            found.append((i, sum(segment.end - segment.start for segment in own), _input(case, i)))
    return found


def _apart(case: Case, points: Points) -> Line | None:
    """Model time over input tokens at equal output: both without what the output explains of them (Frisch & Waugh)."""
    written = [case.call(i).usage.output_tokens or 0 for i, _, _ in points]
    by_time = fit([(out, spent) for out, (_, spent, _) in zip(written, points, strict=True)])
    by_input = fit([(out, tokens) for out, (_, _, tokens) in zip(written, points, strict=True)])
    if by_time is None or by_input is None:
        return None
    rests = [
        (tokens - by_input.slope * out, spent - by_time.slope * out)
        for out, (_, spent, tokens) in zip(written, points, strict=True)
    ]
    return fit(rests)


def _found(case: Case, points: Points, line: Line, phase: Phase) -> Iterable[Finding]:
    shortest = min(tokens for _, _, tokens in points)
    longest = max(tokens for _, _, tokens in points)
    spent = sum(min(line.slope * (tokens - shortest), case.spent(i, phase)) for i, _, tokens in points)
    if spent < LEAST * case.e2e:
        return
    what = "the time to the first token" if phase == PREFILL else "a call's time"
    confidence: Confidence = "likely" if phase == PREFILL else "possible"
    thousand = [seconds(1000 * slope) for slope in (line.slope, line.slope_low, line.slope_high)]
    whole = "" if phase == PREFILL else ", at equal output; the first token was not timed, so waiting is in it"
    yield Finding(
        name="slower-turns",
        title=f"Turns slow down as the history grows: {thousand[0]} more for every 1,000 input tokens, which costs"
        f" {seconds(spent)} ({share(spent, case.e2e)} of E2E).",
        seconds=spent,
        confidence=confidence,
        evidence=(
            (
                f"Over {plural(len(points), 'call')} of {shortest:,} to {longest:,} input tokens, {what} rises by"
                f" {thousand[0]} per 1,000 tokens (95 % interval {thousand[1]} to {thousand[2]}){whole}."
            ),
            *_cached(case, [i for i, _, _ in points]),
        ),
        check="Send the first and the last prompt alone to an idle engine and compare: the engine's load may have risen"
        " together with the history.",
        remedy="Keep the prefix cached (lever: full prefix-cache hits), shorten what tools return, and compact the"
        " history before it is this long.",
        spans=case.ids(i for i, _, _ in points),
    )


def _cached(case: Case, calls: Sequence[int]) -> tuple[str, ...]:
    read = [(case.call(i).usage.cache_read, _input(case, i)) for i in calls]
    known = [(cached, tokens) for cached, tokens in read if cached is not None]
    if len(known) < len(read):
        return ("How much of the prompts came from a cache is not in the record.",)
    return (f"From the cache came {share(sum(c for c, _ in known), sum(t for _, t in known))} of their input tokens.",)


def _input(case: Case, i: int) -> int:
    return case.call(i).usage.input_tokens or 0
