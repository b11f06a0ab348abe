"""What detectors look at: one task with everything that is known of it, and of nothing that is not."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

from msgspec import Struct

from headway.core.money import MicroUsd, money
from headway.core.span import ModelCall, Span, ToolUse
from headway.core.task import SpanId
from headway.trace.anatomy import Anatomy
from headway.trace.asked import asked_for
from headway.trace.change import Share, inner, shares_of
from headway.trace.charges import charges_of, of_parts, spent_by
from headway.trace.findings.figures import seconds, share
from headway.trace.pace import Pace, paces
from headway.trace.phases import Phase
from headway.trace.prices import PriceOf
from headway.trace.resent import chats_of
from headway.trace.sources.verdict import Verdict
from headway.trace.study import Study


class Took(TypedDict):
    """What calls cost and their tokens; the least of either is what is known of it."""

    cost: MicroUsd | None
    tokens: int | None
    cost_least: MicroUsd | None
    tokens_least: int | None


class Case(Struct, frozen=True, kw_only=True):
    """One task. Indices are those of the study's tree."""

    study: Study
    anatomy: Anatomy
    verdict: Verdict
    prices: PriceOf
    on_path: dict[int, dict[Phase, float]]
    """Seconds on the critical path by the span whose time they are; spans off the path are not in it."""
    shares: dict[Phase, list[Share]]
    """What each phase has in every gap and tail of the graph."""
    children: dict[int, list[int]]
    """What each holder holds, of what the task waited for."""
    issued: dict[int, list[int]]
    """Tools by the call whose response asked for them, in order of start."""
    chats: list[list[int]]
    """Calls in order of start, apart by what holds them and by model: each may be one growing conversation."""
    paces: list[Pace]
    """How long calls write whose first token was not timed, where that can be told."""

    @property
    def timed(self) -> bool:
        """Whether its seconds can be trusted: the source keeps times, and no flush ended the spans."""
        return self.verdict.timed and not self.study.flushed and self.e2e > 0

    @property
    def e2e(self) -> float:
        """Seconds from the task's start to its end."""
        return self.study.e2e

    def span(self, i: int) -> Span:
        """A span of the tree."""
        return self.study.tree.spans[i]

    def call(self, i: int) -> ModelCall:
        """The work of one of the study's calls."""
        work = self.span(i).work
        if not isinstance(work, ModelCall):
            msg = f"span {self.span(i).id} is no model call"
            raise TypeError(msg)
        return work

    def tools(self) -> Iterator[tuple[int, ToolUse]]:
        """All tools in order of start, detached ones too."""
        tree = self.study.tree
        for i in sorted((i for i, kind in enumerate(tree.kinds) if kind is ToolUse), key=tree.start.__getitem__):
            work = tree.spans[i].work
            if isinstance(work, ToolUse):
                yield i, work

    def watched(self, i: int) -> bool:
        """Whether a tool's own start and end were measured where it ran."""
        span = self.span(i)
        known = self.verdict.about("tools").quality != "unknown" and self.verdict.timing == "spans"
        return known and isinstance(span.work, ToolUse) and not span.work.inferred and span.end is not None

    def spent(self, i: int, *phases: Phase) -> float:
        """Seconds of a span on the path: of some phases, or of all."""
        found = self.on_path.get(i, {})
        return sum(found.values()) if not phases else sum(found.get(phase, 0.0) for phase in phases)

    def path_seconds(self, these: Iterable[int]) -> float | None:
        """Seconds of spans on the path, their own alone; unknown where times are."""
        return sum(self.spent(i) for i in these) if self.timed else None

    def ending(self, spent: float | None) -> str:
        """How a title ends that has told what costs them: the seconds if they are known, and a full stop."""
        return "." if spent is None else f": {seconds(spent)} ({share(spent, self.e2e)} of E2E)."

    def tokens(self, calls: Iterable[int]) -> int | None:
        """What calls read and wrote; unknown when any of it is."""
        usages = [self.call(i).usage for i in calls]
        counts = [count for usage in usages for count in (usage.input_tokens, usage.output_tokens)]
        return total(counts)

    def took(self, calls: Iterable[int]) -> Took:
        """What calls cost, read and wrote: as fields of a finding."""
        made = [(self.call(i), self.span(i).start) for i in calls]
        if not made:
            return Took(cost=None, tokens=None, cost_least=None, tokens_least=None)
        spent = spent_by(charges_of(made, self.prices))
        return Took(
            cost=money(spent.cost.exact),
            tokens=spent.tokens.exact,
            cost_least=money(spent.cost.least),
            tokens_least=spent.tokens.least,
        )

    def ids(self, these: Iterable[int]) -> tuple[SpanId, ...]:
        """Ids in order of start; not that of a root that the record does not have."""
        tree = self.study.tree
        recorded = {i for i in these if i or not tree.made_root}
        return tuple(tree.spans[i].id for i in sorted(recorded, key=tree.start.__getitem__))


def case_of(study: Study, anatomy: Anatomy, verdict: Verdict, prices: PriceOf) -> Case:
    """Derive it from a task's study, its anatomy, and what its record can be trusted for."""
    on_path: dict[int, dict[Phase, float]] = {}
    for stretch in study.walked:
        spent = on_path.setdefault(stretch.owner, {})
        for segment in stretch.segments:
            spent[segment.phase] = spent.get(segment.phase, 0.0) + segment.end - segment.start
    return Case(
        study=study,
        anatomy=anatomy,
        verdict=verdict,
        prices=of_parts(prices),
        on_path=on_path,
        shares=shares_of(study),
        children=inner(study),
        issued=asked_for(study.tree, study.held),
        chats=chats_of(study.tree, study.held),
        paces=paces(study),
    )


def total(counts: Sequence[int | None]) -> int | None:
    """The sum; unknown when any of them is, or there are none."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
