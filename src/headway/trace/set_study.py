"""A set of tasks, studied as they come: rows of all, levers and findings of a sample, so that memory is bounded."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import chain
from typing import Final

from msgspec import Struct, structs

from headway.core.span import Span
from headway.core.spent import Sum
from headway.core.task import TaskId
from headway.trace.facts import TaskFacts, facts_of
from headway.trace.filed import Filed, Row, pack, unpack
from headway.trace.findings import Finding, findings, set_findings
from headway.trace.findings.figures import plural
from headway.trace.levers import Lever, rank
from headway.trace.prices import PriceOf, price_for
from headway.trace.sets import SetAnatomy, anatomy_of
from headway.trace.sources.digests import digest
from headway.trace.sources.verdict import Aspect, Subject, Verdict, told_by_price
from headway.trace.stats import Quantile, quantiles
from headway.trace.study import study
from headway.trace.whatif import Outcome, longer_answers, what_if
from headway.trace.whatif_text import WhatIf
from headway.trace.workers import hired, rarely_collected

SAMPLE: Final = 500
"""Tasks of which levers and findings are worked out; of more, those whose ids have the least digests: any alike. So
many bound p99 from both sides, and take a few seconds."""
SAMPLE_BYTES: Final = 16 * 1024**2
"""Of the packed spans of those tasks together: some 200,000 spans, which take some ten seconds to work out."""
WORTH_HELP: Final = 512 * 1024
"""Bytes of that sample from which on other processes are asked for help: they take half a second to come."""
_BATCH: Final = 20
"""Tasks that a helper works out at a time."""
SLOWEST: Final = 5
BEGINNING: Final = 8
"""Characters of an id that are shown at least."""
_AT: Final = (0.5, 0.95)
_ONE, _HALF = "one-iteration-fewer", "half-the-iterations"
"""Keys of levers."""


class LeverRow(Struct, frozen=True, kw_only=True):
    """One lever over the sampled tasks that are timed."""

    lever: Lever
    """As it is on the task where it saves most; of what stays as recorded, it says in how many tasks."""
    tasks: int
    """In which it saves anything."""
    of: int
    before: tuple[Quantile, ...]
    """E2E at p50 and p95 as recorded."""
    after: tuple[Quantile, ...]
    """The same of the replays: not p50 of the savings, since the tasks change places."""
    tokens: float | None
    """Mean per task; unknown when it is for any task in which it saves."""
    cost: float | None
    """Micro-USD, mean per task."""
    tokens_least: float | None = None
    """What of the tokens is known, mean per task; unknown where it is of no task."""
    cost_least: float | None = None


class FindingRow(Struct, frozen=True, kw_only=True):
    """One kind of finding over the sampled tasks."""

    name: str
    tasks: int
    """In which it was found."""
    of: int
    seconds: float | None
    """Sum over the tasks of which it is known; unknown where that is none."""
    share: float
    """Of the E2E of all sampled tasks together."""
    cost: Sum
    """Micro-USD over the tasks; those of which it is unknown make it a lower bound."""
    worst: Finding
    """The dearest one."""
    worst_task: TaskId


class ChangedSet(Struct, frozen=True, kw_only=True):
    """What the sampled, timed tasks would take with the changes that were asked for."""

    of: int
    before: tuple[Quantile, ...]
    """E2E at p50 and p95 as recorded."""
    after: tuple[Quantile, ...] | None
    """Of the replays, with those whose time is unknown as recorded; unknown where all are."""
    partly: int
    """In how many of the tasks the replay leaves out what some of the changes, or all, would do: that is unknown."""
    tokens: float | None
    """Saved, mean per task; unknown when it is for any."""
    cost: float | None
    """Micro-USD saved, mean per task."""
    tokens_least: float | None = None
    """What of the tokens is known, mean per task; unknown where it is of no task."""
    cost_least: float | None = None
    notes: tuple[tuple[str, int], ...]
    """Sentences on what could not be done, and in how many tasks."""


class SetReport(Struct, frozen=True, kw_only=True):
    """All that is to be said of a set."""

    anatomy: SetAnatomy
    levers: tuple[LeverRow, ...]
    """The largest saving at p95 first."""
    findings: tuple[Finding, ...]
    """What only many tasks together show."""
    recurring: tuple[FindingRow, ...]
    """What single tasks show, the dearest over the set first."""
    changed: ChangedSet | None
    """Where changes were asked for."""
    sampled: int
    slowest: tuple[TaskFacts, ...]
    namesakes: tuple[TaskId, ...]
    """Of all tasks, those whose ids begin as a slowest one's does: what a shortened id has to tell it from."""
    aspects: tuple[Aspect, ...]
    """What the verdicts say of all tasks together; of times, of how many tasks they are known."""
    remarks: tuple[tuple[str, int], ...]
    """Sentences of the importers, and of how many tasks each is true."""


class _Kept(Struct, frozen=True):
    facts: TaskFacts
    verdict: Verdict
    packed: bytes


class _Examined(Struct, frozen=True):
    facts: TaskFacts
    levers: tuple[Lever, ...]
    findings: tuple[Finding, ...]
    outcome: Outcome | None


class SetStudy:
    """Tasks go in, a report comes out.

    Args:
        prices: what tokens cost, where no cost was recorded.
        changes: to replay each sampled task with.
        processes: how many may work at the sample; then prices must be picklable.
    """

    def __init__(self, prices: PriceOf = price_for, changes: Sequence[WhatIf] = (), *, processes: int = 1) -> None:
        self._prices = prices
        self._changes = changes
        self._processes = processes
        self._rows: list[TaskFacts] = []
        self._sample: list[tuple[int, int, _Kept]] = []
        self._full = False
        self._bytes = 0
        self._report: SetReport | None = None
        self._verdicts: dict[Verdict, int] = {}
        """How many tasks have each, in order of appearance: far fewer than tasks."""

    @property
    def rows(self) -> Sequence[TaskFacts]:
        """All tasks so far."""
        return self._rows

    def add(self, spans: Sequence[Span], verdict: Verdict, title: str | None = None) -> None:
        """One more task; its spans are not kept."""
        facts = facts_of(spans, verdict, title=title, prices=self._prices)
        self.take(Filed(facts=facts, verdict=verdict, packed=pack(tuple(spans))))

    def take(self, row: Row) -> None:
        """One more task that was worked out before, by the same prices."""
        facts, verdict = row.facts, row.verdict
        self._report = None
        self._rows.append(facts)
        self._verdicts[verdict] = self._verdicts.get(verdict, 0) + 1
        rank_of = int(digest(facts.task), 16)
        if not self._full or rank_of < -self._sample[0][0]:
            kept = _Kept(facts, verdict, row.packed)
            heappush(self._sample, (-rank_of, len(self._rows), kept))
            self._bytes += len(kept.packed)
            while len(self._sample) > SAMPLE or (self._bytes > SAMPLE_BYTES and len(self._sample) > 1):
                self._full = True
                _, _, dropped = heappop(self._sample)
                self._bytes -= len(dropped.packed)

    def report(self) -> SetReport:
        """What is to be said of all tasks so far; most of the work is done here, and once.

        Raises:
            WorkerError: a process that helped died.
        """
        if self._report is None:
            with rarely_collected():
                self._report = self._told(*self._worked_out())
        return self._report

    def _worked_out(self) -> tuple[SetAnatomy, Sequence[_Examined]]:
        """The set as a whole, and each task of the sample; others see to those while this process sees to that."""
        sample = [one for _, _, one in sorted(self._sample, key=lambda one: one[1])]
        examine = partial(_examined, self._prices, self._changes)
        if self._processes == 1 or self._bytes < WORTH_HELP:
            return anatomy_of(self._rows), examine(sample)
        with hired(self._processes - 1) as workers:
            batches = [sample[i : i + _BATCH] for i in range(0, len(sample), _BATCH)]
            shared = workers.share(examine, batches)
            anatomy = anatomy_of(self._rows)
            return anatomy, list(chain.from_iterable(shared.results()))

    def _told(self, anatomy: SetAnatomy, sample: Sequence[_Examined]) -> SetReport:
        timed = [row for row in self._rows if row.e2e is not None]
        slowest = sorted(timed, key=lambda row: -(row.e2e or 0.0))[:SLOWEST]
        beginnings = {row.task[:BEGINNING] for row in slowest}
        return SetReport(
            anatomy=anatomy,
            levers=_levers([one for one in sample if one.facts.e2e is not None]),
            findings=set_findings(self._rows),
            recurring=_recurring(sample),
            changed=_changed(
                [one.outcome for one in sample if one.outcome is not None], bounded=not longer_answers(self._changes)
            ),
            sampled=len(sample),
            slowest=tuple(slowest),
            namesakes=tuple(row.task for row in self._rows if row.task[:BEGINNING] in beginnings),
            aspects=told_by_price(_aspects(self._verdicts), anatomy.spent.cost),
            remarks=_remarks(self._verdicts),
        )


def _examined(prices: PriceOf, changes: Sequence[WhatIf], sample: Sequence[_Kept]) -> list[_Examined]:
    examined: list[_Examined] = []
    for one in sample:
        case = study(unpack(one.packed))
        found = findings(case, one.verdict, prices=prices)
        levers = rank(case, prices=prices) if one.verdict.timed else ()
        outcome = what_if(case, changes, prices=prices) if changes and one.verdict.timed else None
        examined.append(_Examined(one.facts, levers, found, outcome))
    return examined


def _aspects(verdicts: Mapping[Verdict, int]) -> tuple[Aspect, ...]:
    """What verdicts say together, each given by so many tasks."""
    tallies: dict[Subject, _Tally] = {}
    for verdict, tasks in verdicts.items():
        for aspect in map(_counted, verdict.aspects):
            tallies.setdefault(aspect.subject, _Tally(aspect)).add(aspect, tasks)
    return tuple(tally.aspect() for tally in tallies.values())


def _remarks(verdicts: Mapping[Verdict, int]) -> tuple[tuple[str, int], ...]:
    counts: Counter[str] = Counter()
    for verdict, tasks in verdicts.items():
        counts.update(dict.fromkeys(verdict.remarks, tasks))
    return tuple(counts.most_common())


def _counted(aspect: Aspect) -> Aspect:
    """Times are those of the whole task: in a set, tasks are counted of which they are known."""
    if aspect.subject != "times":
        return aspect
    return structs.replace(aspect, known=int(aspect.quality != "unknown"), of=1)


class _Tally(Struct):
    """What all tasks say of one subject: the counts added up, said as the first says it that knows anything."""

    telling: Aspect
    known: int = 0
    of: int = 0

    def add(self, aspect: Aspect, tasks: int) -> None:
        if aspect.known and not self.known:
            self.telling = aspect
        self.known += aspect.known * tasks
        self.of += aspect.of * tasks

    def aspect(self) -> Aspect:
        return structs.replace(self.telling, known=self.known, of=self.of)


def _levers(sample: Sequence[_Examined]) -> tuple[LeverRow, ...]:
    found: dict[str, dict[TaskId, Lever]] = {}
    for one in sample:
        for lever in one.levers:
            found.setdefault(lever.key, {})[one.facts.task] = lever
    _halve_few(found)
    before = quantiles((one.facts.e2e or 0.0 for one in sample), _AT)
    rows: list[LeverRow] = []
    for saved in found.values():
        replayed = [
            (one.facts.e2e or 0.0) - (saved[one.facts.task].seconds if one.facts.task in saved else 0.0)
            for one in sample
        ]
        rows.append(
            LeverRow(
                lever=_of_all(list(saved.values())),
                tasks=len(saved),
                of=len(sample),
                before=before,
                after=quantiles(replayed, _AT),
                tokens=_mean((lever.tokens for lever in saved.values()), len(sample)),
                cost=_mean((lever.cost for lever in saved.values()), len(sample)),
                tokens_least=_least((lever.tokens_least for lever in saved.values()), len(sample)),
                cost_least=_least((lever.cost_least for lever in saved.values()), len(sample)),
            )
        )
    return tuple(sorted(rows, key=lambda row: tuple(row.after[i].value - row.before[i].value for i in (1, 0))))


def _of_all(saved: Sequence[Lever]) -> Lever:
    """The lever where it saves most, with what stays as recorded in any of the tasks."""
    most = max(saved, key=lambda lever: lever.seconds)
    counts = Counter(lever.stays[1] for lever in saved if lever.stays[1])
    stays = [f"In {tasks:,} of {plural(len(saved), 'task')}: {sentence}" for sentence, tasks in counts.items()]
    return structs.replace(most, assumes=" ".join([most.assumes.removesuffix(most.stays[0]).rstrip(), *stays]))


def _halve_few(found: Mapping[str, dict[TaskId, Lever]]) -> None:
    """Half of few iterations is one, so that for a task of few the two levers are the same."""
    half = found.get(_HALF, {})
    for task, lever in found.get(_ONE, {}).items() if half else ():
        half.setdefault(task, structs.replace(lever, key=_HALF))


def _changed(outcomes: Sequence[Outcome], *, bounded: bool) -> ChangedSet | None:
    if not outcomes:
        return None
    notes = Counter(note for outcome in outcomes for note in dict.fromkeys(outcome.alike))
    told = any(outcome.after is not None for outcome in outcomes)
    after = (outcome.before if outcome.after is None else outcome.after for outcome in outcomes)
    tokens = _mean((outcome.tokens for outcome in outcomes), len(outcomes))
    cost = _mean((outcome.cost for outcome in outcomes), len(outcomes))
    return ChangedSet(
        of=len(outcomes),
        before=quantiles((outcome.before for outcome in outcomes), _AT),
        after=quantiles(after, _AT) if told else None,
        partly=sum(outcome.partly or outcome.after is None for outcome in outcomes),
        tokens=tokens,
        cost=cost,
        tokens_least=_least((outcome.tokens_least for outcome in outcomes), len(outcomes)) if bounded else tokens,
        cost_least=_least((outcome.cost_least for outcome in outcomes), len(outcomes)) if bounded else cost,
        notes=tuple(notes.most_common()),
    )


def _mean(values: Iterable[int | None], size: int) -> float | None:
    known = list(values)
    return None if None in known else sum(value or 0 for value in known) / size


def _least(values: Iterable[int | None], size: int) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / size if known else None


def _recurring(sample: Sequence[_Examined]) -> tuple[FindingRow, ...]:
    found: dict[str, list[tuple[Finding, TaskId]]] = {}
    for one in sample:
        for finding in {finding.name: finding for finding in reversed(one.findings)}.values():
            found.setdefault(finding.name, []).append((finding, one.facts.task))
    whole = sum(one.facts.e2e or 0.0 for one in sample)
    rows: list[FindingRow] = []
    for name, pairs in found.items():
        worst, where = max(pairs, key=lambda pair: (pair[0].seconds or 0.0, pair[0].cost or 0))
        seconds = _known(finding.seconds for finding, _ in pairs)
        rows.append(
            FindingRow(
                name=name,
                tasks=len(pairs),
                of=len(sample),
                seconds=seconds,
                share=(seconds or 0.0) / whole if whole else 0.0,
                cost=_paid([finding for finding, _ in pairs]),
                worst=worst,
                worst_task=where,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.share, -row.cost.total, -row.tasks, row.name)))


def _paid(found: Sequence[Finding]) -> Sum:
    known = sum(finding.cost is not None for finding in found)
    return Sum(sum(finding.cost or finding.cost_least or 0 for finding in found), known, len(found))


def _known(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; unknown where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
