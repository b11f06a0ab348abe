"""Tools that one response asked for ran one after another."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from headway.trace.change import Change
from headway.trace.findings.case import Case
from headway.trace.findings.figures import named, plural, seconds, share
from headway.trace.findings.finding import Finding
from headway.trace.tree import EPSILON

LEAST: Final = 0.01
"""Of E2E: what running them side by side has to save."""


def serial_tools(case: Case) -> Iterable[Finding]:
    """By replay: how much sooner the task would end if each response's tools had started at once."""
    if not case.timed:
        return
    change = Change(case.study)
    found: list[list[int]] = []
    for call, tools in case.issued.items():
        for holder in {case.study.held.holder[i] for i in tools}:
            group = [i for i in tools if case.study.held.holder[i] == holder]
            if _one_after_another(case, group):
                change.side_by_side(group, max(group, key=lambda i: _length(case, i)), case.children)
                found.append([call, *group])
    saved = change.saving()
    if not found or saved < LEAST * case.e2e:
        return
    tools = [i for _, *group in found for i in group]
    call, *group = max(found, key=lambda one: sum(_length(case, i) for i in one[1:]))
    longest = max(_length(case, i) for i in group)
    yield Finding(
        name="serial-tools",
        title=f"{len(tools):,} tools ran one after another though {plural(len(found), 'response')} asked for them at"
        f" once: side by side they would save {seconds(saved)} ({share(saved, case.e2e)} of E2E).",
        seconds=saved,
        confidence="likely",
        evidence=(
            (
                f"{case.span(call).name} asked for {len(group):,} tools: {named(case.span(i).name for i in group)}."
                f" Together they take {seconds(sum(_length(case, i) for i in group))}, the longest {seconds(longest)}."
            ),
            "What they were called with was fixed when the response ended, so none waits for another's result.",
        ),
        check="See whether one of them changes what another reads (a file, a directory, a session): those have to keep"
        " their order.",
        remedy="Start all tool calls of a response at once and send the results back together (lever: tools in"
        " parallel).",
        spans=case.ids(tools),
    )


def _one_after_another(case: Case, group: Sequence[int]) -> bool:
    """Each timed where it ran, each begun when the one before it had ended."""
    held = case.study.held
    return (
        len(group) > 1
        and all(case.watched(i) and _length(case, i) > 0 for i in group)
        and all(held.lo[b] >= held.hi[a] - EPSILON for a, b in pairwise(group))
    )


def _length(case: Case, i: int) -> float:
    return case.study.held.hi[i] - case.study.held.lo[i]
