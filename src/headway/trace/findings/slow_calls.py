"""Calls that take far longer than others of their model that had more to do."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final, TypeVar

from msgspec import Struct

from headway.trace.findings.case import Case
from headway.trace.findings.figures import named, plural, seconds, share, times
from headway.trace.findings.finding import Finding
from headway.trace.phases import DECODE, MODEL, PREFILL, QUEUE

RATIO: Final = 1.75
"""Times as long as those that had as much to do: less than that is the noise of a shared engine."""
AS_MUCH: Final = 0.9
"""Of its input and of its output tokens: what another call has to read and write to have had as much to do."""
MOST: Final = 256
"""Calls of a model that each is compared with. Of more, some are chosen evenly by their time, which keeps medians what
they are: all with all would take minutes for tens of thousands."""
LEAST: Final = 0.1
"""Of E2E: what all of them take more than those."""


Row = TypeVar("Row")


class Slow(Struct, frozen=True):
    """A call, and the usual time of those of its model that had as much to do or more."""

    call: int
    spent: float
    usual: float
    others: int


def slow_calls(case: Case) -> Iterable[Finding]:
    """Neither what they read nor what they wrote explains their time, for others did as much in far less."""
    if not case.timed:
        return
    slow = [one for chat in _by_model(case) for one in _slow(case, chat) if one.call in case.on_path]
    extra = sum(min(one.spent - one.usual, case.spent(one.call)) for one in slow)
    if not slow or extra < LEAST * case.e2e:
        return
    worst = max(slow, key=lambda one: one.spent - one.usual)
    usage = case.call(worst.call).usage
    least = min(one.spent / one.usual for one in slow)
    yield Finding(
        name="slow-calls",
        title=f"{plural(len(slow), 'call')} took {times(least)} times as long as others of the same model that had"
        f" about as much to read and to write, or more" + case.ending(extra),
        seconds=extra,
        confidence="likely",
        evidence=(
            (
                f"{case.span(worst.call).name} read {usage.input_tokens or 0:,} tokens and wrote"
                f" {usage.output_tokens or 0:,} in {seconds(worst.spent)}; {plural(worst.others, 'call')} that had"
                f" about as much to do took {seconds(worst.usual)}" + (" (median)." if worst.others > 1 else ".")
            ),
            f"Which they are: {named(case.span(one.call).name for one in slow)}.",
            *_cold(case, slow),
        ),
        check="Compare when they were sent: a queue at the engine, a hidden retry, a model that had to be loaded, or"
        " reasoning that is not counted would fit.",
        remedy="Record the first token and the attempts of each call; if it is the queue, add a replica or let"
        " interactive tasks go first, and if it is the first call of all, keep the model warm.",
        spans=case.ids(one.call for one in slow),
    )


def _by_model(case: Case) -> Iterable[list[int]]:
    calls: dict[str, list[int]] = {}
    for i in case.study.held.calls:
        usage = case.call(i).usage
        done = case.span(i).error is None and not case.study.held.adrift[i]
        if done and usage.input_tokens is not None and usage.output_tokens:
            calls.setdefault(case.call(i).model, []).append(i)
    return calls.values()


def _slow(case: Case, calls: Sequence[int]) -> Iterable[Slow]:
    cached = all(case.call(i).usage.cache_read is not None for i in calls)
    rows = [(i, _size(case, i, cached=cached), _seconds(case, i)) for i in calls]
    chosen = _evenly(sorted([row for row in rows if row[2] > 0], key=lambda row: row[2]))
    for i, (read, wrote), spent in rows:
        others = [took for j, (a, b), took in chosen if j != i and a >= AS_MUCH * read and b >= AS_MUCH * wrote]
        if others and spent >= RATIO * median(others):
            yield Slow(i, spent, median(others), len(others))


def _evenly(rows: Sequence[Row]) -> Sequence[Row]:
    if len(rows) <= MOST:
        return rows
    return [rows[(2 * k + 1) * len(rows) // (2 * MOST)] for k in range(MOST)]


def _size(case: Case, i: int, *, cached: bool) -> tuple[int, int]:
    """Tokens to read and to write; what the cache gave need not be read, where it is known of every call."""
    usage = case.call(i).usage
    given = usage.cache_read or 0 if cached else 0
    return (usage.input_tokens or 0) - given, usage.output_tokens or 0


def _seconds(case: Case, i: int) -> float:
    phases = {QUEUE, PREFILL, DECODE, MODEL}
    return sum(segment.end - segment.start for segment in case.study.own[i] if segment.phase in phases)


def _cold(case: Case, slow: Sequence[Slow]) -> Iterable[str]:
    """A prompt that was not in the cache takes longer to read, whatever its length."""
    read = [(case.call(one.call).usage.cache_read, case.call(one.call).usage.input_tokens or 0) for one in slow]
    known = [(cached, tokens) for cached, tokens in read if cached is not None]
    if known and len(known) == len(read):
        cached, tokens = sum(cached for cached, _ in known), sum(tokens for _, tokens in known)
        yield f"From the cache came {share(cached, tokens)} of their prompts."
