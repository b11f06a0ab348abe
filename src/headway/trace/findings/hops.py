"""Time between the parties, which neither a model nor a tool accounts for."""

from bisect import bisect_left
from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct

from headway.core.span import Step
from headway.core.task import SpanId
from headway.trace.change import unended
from headway.trace.findings.case import Case
from headway.trace.findings.figures import plural, seconds, share
from headway.trace.findings.finding import Confidence, Finding
from headway.trace.path import Segment
from headway.trace.phases import HOP, never_sent
from headway.trace.tree import EPSILON

LEAST: Final = 0.1
"""Of E2E: a hop of a tenth is more than any network or well-written loop needs."""
SHOWN: Final = 3
NOTABLE: Final = 0.01
"""Of E2E: a gap below that is not told apart from others."""

_AGENTS: Final = (
    "Instrument what runs there: a span for each of the agent's own steps shows whether it is its code, the network, or"
    " work that is not recorded."
)
_GATEWAYS: Final = (
    "For what the gateway took, see whether its processor was busy, and what its stores of keys, limits and answers"
    " took to reply; after the last token, whether the caller read slowly."
)
"""How one would be sure."""
_MEND_AGENTS: Final = (
    "Run the agent beside the gateway, keep connections open, and do the agent's own work while the model writes"
    " (lever: no hop)."
)
_MEND_GATEWAYS: Final = "Give the gateway more processors (workers), and keep its stores near to it."


class Gap(Struct, frozen=True):
    """A stretch of the path in which neither a model nor a tool was at work; seconds from the task's start."""

    start: float
    end: float
    before: SpanId | None
    """The work that it follows; none at the task's start."""
    after: SpanId | None
    """The work that it precedes; none at the task's end."""
    gateway: SpanId | None = None
    """The call in whose own span it lies, where the gateway recorded that: then it is the gateway's time."""

    @property
    def length(self) -> float:
        """Seconds."""
        return self.end - self.start


def hop_gaps(case: Case) -> Iterable[Finding]:
    """In a tenth of E2E or more neither a model nor a tool is at work."""
    if not case.timed or not case.study.turns:
        return
    gaps = _told_of(case, gaps_of(case))
    spent, ours = sum(gap.length for gap in gaps), sum(gap.length for gap in gaps if gap.gateway)
    if spent < LEAST * case.e2e:
        return
    largest = sorted(gaps, key=lambda gap: -gap.length)
    notable = sum(gap.length >= NOTABLE * case.e2e for gap in gaps)
    names = {span.id: span.name for span in case.study.tree.spans}
    agents = any(not gap.gateway for gap in gaps)
    yield Finding(
        name="hop-gaps",
        title=f"For {seconds(spent)} ({share(spent, case.e2e)} of E2E) neither a model nor a tool is at work"
        f"{f'; {seconds(ours)} of it is the time of the gateway' if ours else ''}.",
        seconds=spent,
        confidence=_confidence(case, agents=agents),
        evidence=(
            f"{plural(notable, 'gap')} of {share(NOTABLE, 1)} of E2E or more, {len(gaps) - notable:,} smaller.",
            *(_told(case, gap, names) for gap in largest[:SHOWN]),
        ),
        check=" ".join([_AGENTS] * agents + [_GATEWAYS] * bool(ours)),
        remedy=" ".join([_MEND_AGENTS] * agents + [_MEND_GATEWAYS] * bool(ours)),
        spans=case.ids(_around(case, largest[:SHOWN])),
    )


def _confidence(case: Case, *, agents: bool) -> Confidence:
    if not agents:
        return "certain"
    if case.study.tree.made_root:
        return "possible"
    return "certain" if case.verdict.timing == "spans" else "likely"


def gaps_of(case: Case) -> list[Gap]:
    """The path's hops, without what the gateway took to refuse a call; neighbouring ones of one party are one gap."""
    gaps: list[Gap] = []
    before: SpanId | None = None
    opened: Segment | None = None
    calls = [(case.span(i).id, case.call(i)) for i in case.study.held.calls]
    refused = {span for span, call in calls if never_sent(call)}
    gateways = {span for span, call in calls if call.identity is not None}
    for segment in case.anatomy.path:
        hop = segment.phase == HOP and segment.span not in refused
        whose = segment.span if hop and segment.span in gateways else None
        if opened is not None and not (hop and whose == _gateway(opened, gateways)):
            gaps.append(Gap(opened.start, segment.start, before, segment.span, _gateway(opened, gateways)))
            opened = None
        if hop:
            opened = opened or segment
        else:
            before = segment.span
    if opened is not None:
        gaps.append(Gap(opened.start, case.e2e, before, None, _gateway(opened, gateways)))
    return gaps


def _gateway(hop: Segment, gateways: Collection[SpanId]) -> SpanId | None:
    return hop.span if hop.span in gateways else None


def _told_of(case: Case, gaps: Iterable[Gap]) -> list[Gap]:
    """Without those in which work began whose end is not known: it may have been at work all the time."""
    lost = unended(case.study)
    return [gap for gap in gaps if bisect_left(lost, gap.start - EPSILON) == bisect_left(lost, gap.end)]


def _told(case: Case, gap: Gap, names: dict[SpanId, str]) -> str:
    if gap.gateway is not None:
        when = "after its last token" if gap.before == gap.gateway else "before it was sent to the engine"
        return f"{seconds(gap.length)} at {seconds(gap.start)}, in the gateway, within {names[gap.gateway]}: {when}."
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
    wanted = {span for gap in gaps for span in (gap.before, gap.after, gap.gateway)}
    return {i for i, span in enumerate(case.study.tree.spans) if span.id in wanted}
