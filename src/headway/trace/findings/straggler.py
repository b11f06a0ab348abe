"""A fan-out waits for one straggler."""

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Final

from headway.core.span import ModelCall, Retrieval, Step, ToolUse
from headway.trace.findings.case import Case
from headway.trace.findings.figures import named, plural, seconds, share, times
from headway.trace.findings.finding import Finding

LEAST: Final = 3
"""Branches; of two, neither is the usual one."""
RATIO: Final = 2.0
"""Longest branch / median branch."""
NOTABLE: Final = 0.02
"""Of E2E: what the wait for the last branch alone has to take."""
TOGETHER: Final = 0.1
"""Of the shortest branch: those that start before that much of it is done were started together."""
SKEW: Final = 0.01
"""Seconds within which they may always start."""


def stragglers(case: Case) -> Iterable[Finding]:
    """Branches that started together, all done but one, which the task waits for."""
    if not case.timed:
        return
    held = case.study.held
    for group in _fan_outs(case):
        if len(group) < LEAST or max(held.lo[i] for i in group) >= min(held.hi[i] for i in group):
            continue
        *others, last = sorted(group, key=held.hi.__getitem__)
        lengths = [held.hi[i] - held.lo[i] for i in group]
        waited = held.hi[last] - held.hi[others[-1]]
        usual, took = median(lengths), held.hi[last] - held.lo[last]
        if waited < NOTABLE * case.e2e or took < RATIO * usual:
            continue
        on_path = sum(_inside(case, last, held.hi[others[-1]]))
        if on_path < NOTABLE * case.e2e:
            continue
        ratio = f", {times(took / usual)} times the median of {seconds(usual)}" if usual else ""
        yield Finding(
            name="straggler",
            title=f"{plural(len(group), 'branch').replace('branchs', 'branches')} ran side by side, and the task waited"
            f" {seconds(on_path)} ({share(on_path, case.e2e)} of E2E) for one of them alone: {case.span(last).name}.",
            seconds=on_path,
            confidence="certain",
            evidence=(
                f"{case.span(last).name} takes {seconds(took)}{ratio}; the others end {seconds(waited)} earlier.",
                f"The others: {named(case.span(i).name for i in others)}.",
            ),
            check="Compare several tasks: is it always the same branch (then it is its work), or another each time"
            " (then it is chance)?",
            remedy="Give that branch less to do or split it, set a limit on its time, or answer without it; against"
            " chance, start it twice and take the first answer.",
            spans=case.ids([last, *others]),
        )


def _fan_outs(case: Case) -> Iterator[list[int]]:
    held = case.study.held
    for inside in case.children.values():
        branches = sorted((i for i in inside if _branch(case, i)), key=held.lo.__getitem__)
        group: list[int] = []
        shortest = 0.0
        for i in branches:
            length = held.hi[i] - held.lo[i]
            if group and held.lo[i] - held.lo[group[0]] > max(TOGETHER * shortest, SKEW):
                yield group
                group = []
            shortest = min(shortest, length) if group else length
            group.append(i)
        yield group


def _branch(case: Case, i: int) -> bool:
    """Work whose own start and end are measured."""
    span = case.span(i)
    match span.work:
        case ToolUse():
            return case.watched(i)
        case ModelCall() | Retrieval():
            return case.verdict.timing == "spans" and span.end is not None
        case Step(agent=agent):
            return agent is not None and case.verdict.timing == "spans" and span.end is not None
        case _:
            return False


def _inside(case: Case, top: int, since: float) -> Iterator[float]:
    """Lengths of the path's stretches after ``since`` that are a branch's, its own or of what it holds."""
    holder = case.study.held.holder
    for stretch in case.study.walked:
        until, start = stretch.segments[-1].end, max(stretch.segments[0].start, since)
        i = stretch.owner
        while i and i != top:
            i = holder[i]
        if i == top and until > start:
            yield until - start
