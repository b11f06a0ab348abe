"""Calls that failed and were made again: time and tokens paid twice."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from headway.core.span import HEDGED, ModelCall
from headway.trace.findings.case import Case
from headway.trace.findings.figures import named, plural, seconds
from headway.trace.findings.finding import Confidence, Finding
from headway.trace.phases import RETRY, never_sent, unconnected


def paid_twice(case: Case) -> Iterable[Finding]:
    """A failed call and the same call after it; and calls that were sent more than once under one span."""
    pairs = [*case.study.again.items()]
    resent = [i for i in case.study.held.calls if _attempts_before(case.call(i))]
    if not pairs and not resent:
        return
    first = [i for i, _ in pairs]
    more = sum(_attempts_before(case.call(i)) for i in resent)
    final = {again for _, again in pairs}.union(resent).difference(first)
    in_vain = sum(case.span(i).error is not None for i in final)
    spent = _spent(case, pairs, resent) if case.timed else None
    exact = all(case.call(b).sent_before or _same_prompt(case.call(i), case.call(b)) for i, b in pairs)
    confidence: Confidence = "certain" if exact else "likely"
    yield Finding(
        name="retries",
        title=_title(len(first) + more, in_vain) + case.ending(spent),
        seconds=spent,
        **case.took(first),
        confidence=confidence,
        evidence=tuple(_told(case, pairs, resent)),
        check=f"Look at {seen_by(case, first + resent)} log at those times: overload, a limit on rate or time, or a"
        " broken connection.",
        remedy="Find out what fails them (the errors above), back off before the limit is hit, and take a replica that"
        f" fails calls out of the fleet{' (lever: no failed calls)' if in_vain < len(final) else ''}.",
        spans=case.ids([*first, *(again for _, again in pairs), *resent]),
    )


def _same_prompt(one: ModelCall, other: ModelCall) -> bool:
    return one.prompt is not None and one.prompt == other.prompt


def _attempts_before(call: ModelCall) -> int:
    """Attempts that failed before the last one, under one span; one that was only slower than another did not."""
    slower = sum(one.error == HEDGED for one in call.setbacks)
    return max((call.attempts or 1) - 1, len(call.setbacks)) - slower


def seen_by(case: Case, calls: Iterable[int]) -> str:
    """Whose log tells of calls: what was never sent, no engine saw."""
    made = map(case.call, calls)
    return "the gateway's" if all(never_sent(call) or unconnected(call) for call in made) else "the engine's"


def _title(failed: int, in_vain: int) -> str:
    if not in_vain:
        return f"{plural(failed, 'attempt')} failed and had to be made again"
    last = "the last one too" if in_vain == 1 else f"the last ones of {in_vain:,} calls too"
    return f"{plural(failed + in_vain, 'attempt')} failed, {last}"


def _spent(case: Case, pairs: Sequence[tuple[int, int]], resent: Sequence[int]) -> float | None:
    """Seconds on the path, of failed calls, pauses after them, and failed attempts; unknown where none was timed."""
    failed = {i for i, _ in pairs}
    timed = [i for i in resent if case.call(i).setbacks and i not in failed]
    if not pairs and not timed:
        return None
    return (case.path_seconds(failed) or 0.0) + paused(case, pairs) + sum(case.spent(i, RETRY) for i in timed)


def paused(case: Case, pairs: Iterable[tuple[int, int]]) -> float:
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


def _told(case: Case, pairs: Sequence[tuple[int, int]], resent: Sequence[int]) -> Iterable[str]:
    if pairs:
        first = [i for i, _ in pairs]
        errors = sorted({str(case.span(i).error) for i in first})
        yield (
            f"Failed and followed by the same call: {named(case.span(i).name for i in first)}; errors:"
            f" {', '.join(errors)}."
        )
        pauses = paused(case, pairs)
        waits = f" and {seconds(pauses)} of waiting before the next attempt" if pauses else ""
        if case.timed:
            yield f"On the critical path: {seconds(case.path_seconds(first) or 0.0)} of failed calls{waits}."
        if case.tokens(first) is None:
            yield "What the failed calls read and wrote is not in the record."
    for i in resent:
        for one in case.call(i).setbacks:
            if one.error == HEDGED:
                continue
            yield f"{case.span(i).name}: {one.error} at {one.replica} after {seconds(one.end - one.start)}."
    yield from _last_told(case, pairs, resent)
    untold = [i for i in resent if not case.call(i).setbacks]
    if untold:
        more = sum(_attempts_before(case.call(i)) for i in untold)
        yield (
            f"Sent again under one span: {named(case.span(i).name for i in untold)}, {plural(more, 'time')} in all; how"
            " long the failed attempts took is not in the record."
        )


def _last_told(case: Case, pairs: Sequence[tuple[int, int]], resent: Sequence[int]) -> Iterable[str]:
    """Of calls that failed with all their attempts, the last one."""
    for i in sorted({after for _, after in pairs}.union(resent).difference(i for i, _ in pairs)):
        span, call = case.span(i), case.call(i)
        if span.error is None:
            continue
        where = f" at {call.replica}" if call.replica is not None else ""
        since = call.setbacks[-1].end if call.setbacks else span.start
        after = f" after {seconds(max(span.end - since, 0.0))}" if case.timed and span.end is not None else ""
        yield f"{span.name}, the last attempt: {span.error}{where}{after}."
