"""The account of a task for machines: JSON in a stable schema, apart from the types inside.

A field's name ends in its unit: ``_s`` seconds, ``_usd_micro`` millionths of a US dollar; times are seconds since the
task's start, except ``started_at`` and ``ended_at``, which are epoch seconds. ``null`` is unknown, never 0. Fields may
be added under the same schema name; a field that changes or goes makes a new one.
"""

from math import isinf

import msgspec
from msgspec import Struct

from headway.app.report.sums import AtLeast, at_least
from headway.core.span import ModelCall, Work
from headway.core.usage import Usage
from headway.trace.account import TaskAccount
from headway.trace.anatomy import Iteration
from headway.trace.findings import Finding
from headway.trace.levers import Lever
from headway.trace.path import Segment
from headway.trace.sources.intake import Intake, Refused
from headway.trace.sources.skips import Skip
from headway.trace.sources.verdict import Aspect, Verdict
from headway.trace.waterfall import Bar
from headway.trace.whatif import Outcome


class Piece(Struct, frozen=True):
    """A stretch of time in one phase."""

    span: str
    phase: str
    start_s: float
    end_s: float


class Assigned(Struct, frozen=True):
    """How a call came to belong to the task."""

    evidence: str
    """explicit, tool_result, extends, sub_agent, compaction, hand_over, session or new."""
    confidence: float
    """1.0 is certain: declared or exact; less is inferred."""
    opens_task: bool


class SpanLine(Struct, frozen=True, kw_only=True):
    """One row of the waterfall, parents before children."""

    id: str
    parent: str | None
    depth: int
    kind: str
    """call, tool, retrieval, step or human."""
    name: str
    model: str | None
    start_s: float | None
    """``null`` where the record keeps no times, like all seconds of such a task."""
    end_s: float | None
    on_path_s: float | None
    slack_s: float | None
    """``null``: nothing waits for it, so it may take for ever; or ``slack_known`` is false."""
    slack_known: bool
    error: str | None
    waited_s: float | None
    """Of a wait for a person: all of it, of which only what is inside the task and beside work has its place between
    ``start_s`` and ``end_s``."""
    waited_before_s: float | None
    """The part of it before the task."""
    pieces: tuple[Piece, ...]
    identity: Assigned | None
    """Of a call that the gateway assigned to its task."""


class Term(Struct, frozen=True, kw_only=True):
    """One term of the formula; the seconds that are known and ``lead_in_s`` sum to ``e2e_s``."""

    span: str
    model: str
    hop_s: float
    retry_s: float
    queue_s: float | None
    """``null``, like the next two, where it is somewhere in ``unsplit_s``."""
    prefill_s: float | None
    decode_s: float | None
    unsplit_s: float
    tools_s: float
    ttft_s: float | None
    tpot_s: float | None
    tpot_by_engine: bool
    """Whether ``tpot_s`` is from the engine's own timings, not from the stream."""
    tpot_to_end: bool
    """Whether ``tpot_s`` is the most it can have been: up to the call's end, for the last token was not timed."""
    usage: Usage


class Saving(Struct, frozen=True, kw_only=True):
    """A lever: what one change would save on this task."""

    key: str
    name: str
    saves_s: float
    share: float
    tokens: int | None
    cost_usd_micro: int | None
    tokens_at_least: int | None
    """What of it is known, also where not all is; so too the next."""
    cost_usd_micro_at_least: int | None
    assumes: str
    tradeoff: str
    rule: str
    how: str


class FindingLine(Struct, frozen=True, kw_only=True):
    """One thing that is wrong, what it costs, what shows it, how to be sure, what to do."""

    name: str
    title: str
    path_s: float | None
    cost_usd_micro: int | None
    tokens: int | None
    cost_usd_micro_at_least: int | None
    """What of it is known, also where some calls do not tell theirs; so too the next."""
    tokens_at_least: int | None
    confidence: str
    evidence: tuple[str, ...]
    check: str
    remedy: str
    spans: tuple[str, ...]
    tasks: tuple[str, ...]


class LeftOut(Struct, frozen=True, kw_only=True):
    """What an import could not use."""

    skipped: tuple[Skip, ...]
    refused: tuple[Refused, ...]


class Record(Struct, frozen=True, kw_only=True):
    """Where a task's record comes from and how far it can be trusted."""

    source: str
    timing: str
    extent_s: float | None
    """From the first moment on record to the last, where nothing tells how long each thing took."""
    quality: tuple[Aspect, ...]
    remarks: tuple[str, ...]


class Changed(Struct, frozen=True, kw_only=True):
    """A replay: E2E before and after, and what it saves."""

    before_s: float
    after_s: float | None
    """``null`` where nothing that would change was timed apart."""
    partly: bool
    """Whether ``after_s`` leaves out what some of the changes would do, because that is unknown."""
    tokens: int | None
    cost_usd_micro: int | None
    tokens_at_least: int | None
    cost_usd_micro_at_least: int | None
    notes: tuple[str, ...]


class Account(Struct, frozen=True, kw_only=True):
    """The whole document of ``headway explain --json``."""

    schema: str = "headway.explain/1"
    task: str
    session: str | None
    started_at: float | None
    e2e_s: float | None
    iterations: int | None
    calls: int
    failures: int | None
    """What is known to have failed; ``null`` where that is nothing and nobody saw how some tools ended."""
    retries: int | None
    task_ttft_s: float | None
    task_ttft_at_most_s: float | None
    """Where it was not timed: when a text was on record, which is the latest that it can have been."""
    last_call_ttft_s: float | None
    human_s: float | None
    """Inside the task."""
    waited_before_s: float | None
    """Before it; ``null``: no wait was recorded."""
    phases_s: dict[str, float]
    lead_in_s: float | None
    terms: tuple[Term, ...]
    path: tuple[Piece, ...]
    spans: tuple[SpanLine, ...]
    detached: tuple[str, ...]
    usage: Usage
    cached_share: float | None
    cost_usd_micro: int | None
    at_least: AtLeast
    """The sums of ``usage`` and the cost, known also where only some calls tell them."""
    levers: tuple[Saving, ...]
    unknowns: tuple[str, ...]
    title: str | None
    """The first words of what the user asked."""
    findings: tuple[FindingLine, ...]
    record: Record
    left_out: LeftOut
    what_if: Changed | None
    """The task with the changes that were asked for."""
    note: str | None
    """What is to be known before all else: ``--last`` shows the last task, after which a request was refused."""


def task_json(
    account: TaskAccount, intake: Intake | None = None, outcome: Outcome | None = None, note: str | None = None
) -> str:
    """The account of one task: an `Account` as JSON on one line.

    Args:
        account: the task.
        intake: the import that it comes from; none where it comes from a live store.
        outcome: the task with the changes that were asked for.
        note: what is to be known before all else.
    """
    anatomy, levers, timed = account.anatomy, account.levers, account.verdict.timed
    return _json(
        Account(
            task=anatomy.task,
            session=anatomy.session,
            started_at=anatomy.started_at if timed else None,
            e2e_s=anatomy.e2e if timed else None,
            iterations=anatomy.n if timed else None,
            calls=anatomy.calls,
            failures=None if anatomy.unseen and not anatomy.failures else anatomy.failures,
            retries=anatomy.retries,
            task_ttft_s=anatomy.task_ttft,
            task_ttft_at_most_s=anatomy.task_ttft_most,
            last_call_ttft_s=anatomy.last_call_ttft,
            human_s=anatomy.human if timed else None,
            waited_before_s=anatomy.waited_before if timed else None,
            phases_s={phase.value: seconds for phase, seconds in anatomy.phases.items()},
            lead_in_s=anatomy.lead_in if timed else None,
            terms=tuple(map(_term, anatomy.iterations)),
            path=tuple(map(_piece, anatomy.path)),
            spans=tuple(_span(bar, timed=timed) for bar in anatomy.bars),
            detached=anatomy.detached,
            usage=anatomy.usage,
            cached_share=anatomy.cached_share,
            cost_usd_micro=anatomy.cost,
            at_least=at_least(anatomy.spent),
            levers=tuple(map(_saving, levers)),
            unknowns=anatomy.unknowns,
            title=account.title,
            findings=tuple(map(finding_line, account.findings)),
            record=_record(account.verdict),
            left_out=left_out_of(intake),
            what_if=None if outcome is None else _changed(outcome),
            note=note,
        )
    )


def _changed(outcome: Outcome) -> Changed:
    return Changed(
        before_s=outcome.before,
        after_s=outcome.after,
        partly=outcome.partly,
        tokens=outcome.tokens,
        cost_usd_micro=outcome.cost,
        tokens_at_least=outcome.tokens_least,
        cost_usd_micro_at_least=outcome.cost_least,
        notes=outcome.notes,
    )


def finding_line(finding: Finding) -> FindingLine:
    """A finding for machines."""
    return FindingLine(
        name=finding.name,
        title=finding.title,
        path_s=finding.seconds,
        cost_usd_micro=finding.cost,
        tokens=finding.tokens,
        cost_usd_micro_at_least=finding.cost if finding.cost_least is None else finding.cost_least,
        tokens_at_least=finding.tokens if finding.tokens_least is None else finding.tokens_least,
        confidence=finding.confidence,
        evidence=finding.evidence,
        check=finding.check,
        remedy=finding.remedy,
        spans=finding.spans,
        tasks=finding.tasks,
    )


def left_out_of(intake: Intake | None) -> LeftOut:
    """What an import could not use; nothing where nothing was imported."""
    if intake is None:
        return LeftOut(skipped=(), refused=())
    return LeftOut(skipped=intake.skipped, refused=tuple(intake.refused))


def _record(verdict: Verdict) -> Record:
    return Record(
        source=verdict.source,
        timing=verdict.timing,
        extent_s=verdict.extent,
        quality=verdict.aspects,
        remarks=verdict.remarks,
    )


def _json(document: Account) -> str:
    return msgspec.json.encode(document).decode()


def _term(it: Iteration) -> Term:
    return Term(
        span=it.span,
        model=it.model,
        hop_s=it.hop,
        retry_s=it.retry,
        queue_s=_told(it.queue, it),
        prefill_s=_told(it.prefill, it),
        decode_s=_told(it.decode, it),
        unsplit_s=it.model_unsplit,
        tools_s=it.tools,
        ttft_s=it.ttft,
        tpot_s=it.tpot,
        tpot_by_engine=it.tpot_by_engine,
        tpot_to_end=it.tpot_to_end,
        usage=it.usage,
    )


def _told(seconds: float, it: Iteration) -> float | None:
    """Seconds of a part; unknown where none of it was told apart from the rest of the call."""
    return None if not seconds and it.model_unsplit else seconds


def _piece(segment: Segment) -> Piece:
    return Piece(segment.span, segment.phase.value, segment.start, segment.end)


def _span(bar: Bar, *, timed: bool) -> SpanLine:
    return SpanLine(
        id=bar.span.id,
        parent=bar.span.parent,
        depth=bar.depth,
        kind=str(bar.span.work.__struct_config__.tag),
        name=bar.span.name,
        model=bar.span.work.model if isinstance(bar.span.work, ModelCall) else None,
        start_s=bar.start if timed else None,
        end_s=bar.end if timed else None,
        on_path_s=bar.on_path if timed else None,
        slack_s=None if bar.slack is None or isinf(bar.slack) or not timed else bar.slack,
        slack_known=timed and bar.slack is not None,
        error=bar.span.error,
        waited_s=bar.waited if timed else None,
        waited_before_s=bar.before if timed else None,
        pieces=tuple(map(_piece, bar.pieces)) if timed else (),
        identity=_assigned(bar.span.work),
    )


def _assigned(work: Work) -> Assigned | None:
    if not isinstance(work, ModelCall) or work.identity is None:
        return None
    return Assigned(work.identity.evidence, work.identity.confidence, work.identity.opens_task)


def _saving(lever: Lever) -> Saving:
    return Saving(
        key=lever.key,
        name=lever.name,
        saves_s=lever.seconds,
        share=lever.share,
        tokens=lever.tokens,
        cost_usd_micro=lever.cost,
        tokens_at_least=lever.tokens_least,
        cost_usd_micro_at_least=lever.cost_least,
        assumes=lever.assumes,
        tradeoff=lever.tradeoff,
        rule=lever.rule,
        how=lever.how,
    )
