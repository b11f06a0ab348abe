"""Calls that failed and were made again: time and tokens paid twice."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from headway.trace.findings.case import Case
from headway.trace.findings.figures import named, plural, seconds
from headway.trace.findings.finding import Confidence, Finding
from headway.trace.tree import EPSILON

SAME: Final = 0.02
"""Of the input tokens: two calls whose prompts are not in the record and differ by less are taken for the same."""


def paid_twice(case: Case) -> Iterable[Finding]:
    """A failed call and the same call after it; and calls that were sent more than once under one span."""
    pairs = [(i, again) for chat in case.chats for i, again in _again(case, chat)]
    resent = [i for i in case.study.held.calls if (case.call(i).attempts or 1) > 1]
    if not pairs and not resent:
        return
    first = [i for i, _ in pairs]
    pauses = _pauses(case, pairs)
    spent = (case.path_seconds(first) or 0.0) + pauses if case.timed and pairs else None
    more = sum((case.call(i).attempts or 1) - 1 for i in resent)
    exact = all(case.call(i).prompt is not None and case.call(i).prompt == case.call(b).prompt for i, b in pairs)
    confidence: Confidence = "certain" if exact else "likely"
    yield Finding(
        name="retries",
        title=f"{plural(len(first) + more, 'attempt')} failed and had to be made again" + case.ending(spent),
        seconds=spent,
        cost=case.charged(first) if first else None,
        tokens=case.tokens(first) if first else None,
        confidence=confidence,
        evidence=tuple(_told(case, pairs, pauses, resent, more)),
        check="Look at the engine's log at those times: overload, a limit on rate or time, or a broken connection.",
        remedy="Find out what fails them (the spans' errors), back off before the limit is hit, and let the gateway"
        " take another replica sooner (lever: no failed calls).",
        spans=case.ids([*first, *(again for _, again in pairs), *resent]),
    )


def _again(case: Case, chat: list[int]) -> Iterable[tuple[int, int]]:
    """Failed calls, each with the same call that follows it."""
    held = case.study.held
    for i, after in pairwise(chat):
        if case.span(i).error is not None and held.lo[after] >= held.hi[i] - EPSILON and _same(case, i, after):
            yield i, after


def _same(case: Case, i: int, after: int) -> bool:
    a, b = case.call(i), case.call(after)
    if a.prompt is not None and b.prompt is not None:
        return a.prompt == b.prompt
    if case.issued.get(i):
        return False
    mine, theirs = a.usage.input_tokens, b.usage.input_tokens
    return mine is None or theirs is None or abs(mine - theirs) <= SAME * max(mine, theirs)


def _pauses(case: Case, pairs: Iterable[tuple[int, int]]) -> float:
    """Seconds of the path between each failure and the next attempt."""
    held, path = case.study.held, case.anatomy.path
    found = 0.0
    for i, after in pairs:
        since, until = held.hi[i], held.lo[after]
        at = bisect_right(path, since, key=lambda segment: segment.end)
        while at < len(path) and path[at].start < until:
            found += min(path[at].end, until) - max(path[at].start, since)
            at += 1
    return found


def _told(case: Case, pairs: list[tuple[int, int]], pauses: float, resent: list[int], more: int) -> Iterable[str]:
    if pairs:
        first = [i for i, _ in pairs]
        errors = sorted({str(case.span(i).error) for i in first})
        yield (
            f"Failed and followed by the same call: {named(case.span(i).name for i in first)}; errors:"
            f" {', '.join(errors)}."
        )
        waits = f" and {seconds(pauses)} of waiting before the next attempt" if pauses else ""
        if case.timed:
            yield f"On the critical path: {seconds(case.path_seconds(first) or 0.0)} of failed calls{waits}."
        if case.tokens(first) is None:
            yield "What the failed calls read and wrote is not in the record."
    if resent:
        yield (
            f"Sent again under one span: {named(case.span(i).name for i in resent)}, {plural(more, 'time')} in all; how"
            " long the failed attempts took is not in the record."
        )
