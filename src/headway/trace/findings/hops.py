"""Time between the parties, which neither a model nor a tool accounts for."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from headway.core.span import Step
from headway.core.task import SpanId
from headway.trace.change import unended
from headway.trace.findings.case import Case
from headway.trace.findings.figures import plural, seconds, share
from headway.trace.findings.finding import Confidence, Finding
from headway.trace.phases import HOP, never_sent
from headway.trace.tree import EPSILON

LEAST: Final = 0.1
"""Of E2E: a hop of a tenth is more than any network or well-written loop needs."""
SHOWN: Final = 3
NOTABLE: Final = 0.01
"""Of E2E: a gap below that is not told apart from others."""


class Gap(Struct, frozen=True):
    """A stretch of the path in which neither a model nor a tool was at work; seconds from the task's start."""

    start: float
    end: float
    before: SpanId | None
    """The work that it follows; none at the task's start."""
    after: SpanId | None
    """The work that it precedes; none at the task's end."""

    @property
    def length(self) -> float:
        """Seconds."""
        return self.end - self.start


def hop_gaps(case: Case) -> Iterable[Finding]:
    """In a tenth of E2E or more neither a model nor a tool is at work."""
    if not case.timed or not case.study.turns:
        return
    gaps = _told_of(case, gaps_of(case))
    spent = sum(gap.length for gap in gaps)
    if spent < LEAST * case.e2e:
        return
    largest = sorted(gaps, key=lambda gap: -gap.length)
    notable = sum(gap.length >= NOTABLE * case.e2e for gap in gaps)
    names = {span.id: span.name for span in case.study.tree.spans}
    confidence: Confidence = "certain" if case.verdict.timing == "spans" else "likely"
    if case.study.tree.made_root:
        confidence = "possible"
    yield Finding(
        name="hop-gaps",
        title=f"For {seconds(spent)} ({share(spent, case.e2e)} of E2E) neither a model nor a tool is at work.",
        seconds=spent,
        confidence=confidence,
        evidence=(
            f"{plural(notable, 'gap')} of {share(NOTABLE, 1)} of E2E or more, {len(gaps) - notable:,} smaller.",
            *(_told(case, gap, names) for gap in largest[:SHOWN]),
        ),
        check="Instrument what runs there: a span for each of the agent's own steps shows whether it is its code, the"
        " network, or work that is not recorded.",
        remedy="Run the agent beside the gateway, keep connections open, and do the agent's own work while the model"
        " writes (lever: no hop).",
        spans=case.ids(_around(case, largest[:SHOWN])),
    )


def gaps_of(case: Case) -> list[Gap]:
    """The path's hops, without what the gateway took to refuse a call; neighbouring ones are one gap."""
    gaps: list[Gap] = []
    before: SpanId | None = None
    opened: float | None = None
    refused = {case.span(i).id for i in case.study.held.calls if never_sent(case.call(i))}
    for segment in case.anatomy.path:
        if segment.phase == HOP and segment.span not in refused:
            opened = segment.start if opened is None else opened
            continue
        if opened is not None:
            gaps.append(Gap(opened, segment.start, before, segment.span))
            opened = None
        before = segment.span
    if opened is not None:
        gaps.append(Gap(opened, case.e2e, before, None))
    return gaps


def _told_of(case: Case, gaps: Iterable[Gap]) -> list[Gap]:
    """Without those in which work began whose end is not known: it may have been at work all the time."""
    lost = unended(case.study)
    return [gap for gap in gaps if bisect_left(lost, gap.start - EPSILON) == bisect_left(lost, gap.end)]


def _told(case: Case, gap: Gap, names: dict[SpanId, str]) -> str:
    since = "from the task's start" if gap.before is None else f"after {names[gap.before]}"
    until = "to its end" if gap.after is None else f"before {names[gap.after]}"
    return f"{seconds(gap.length)} at {seconds(gap.start)}, {since} and {until}{_within(case, gap)}."


def _within(case: Case, gap: Gap) -> str:
    """The innermost step of the agent's own that runs through most of a gap."""
    tree = case.study.tree
    found = 0
    for i, kind in enumerate(tree.kinds):
        shared = min(tree.end[i], gap.end) - max(tree.start[i], gap.start)
        if i and kind is Step and shared > gap.length / 2 and tree.depth[i] >= tree.depth[found]:
            found = i
    return f", in {tree.spans[found].name}" if found else ""


def _around(case: Case, gaps: Iterable[Gap]) -> set[int]:
    wanted = {span for gap in gaps for span in (gap.before, gap.after)}
    return {i for i, span in enumerate(case.study.tree.spans) if span.id in wanted}
