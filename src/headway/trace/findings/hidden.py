"""What cannot be known from this record, and how to record it."""

from collections.abc import Iterable
from typing import Final

from headway.core.span import HumanWait
from headway.trace.findings.case import Case
from headway.trace.findings.figures import named, plural, seconds, share
from headway.trace.findings.finding import Finding
from headway.trace.flush import TOGETHER
from headway.trace.phases import MODEL

LEAST: Final = 0.1
"""Of E2E: less than that, unsplit, hides nothing that matters."""

NO_TIMES: Final = "no-times"


def unsplit_model(case: Case) -> Iterable[Finding]:
    """Model time of which it is not known whether it was waiting, reading or writing."""
    spent = case.anatomy.phases.get(MODEL, 0.0)
    if not case.timed or spent < LEAST * case.e2e:
        return
    calls = [i for i in case.on_path if case.spent(i, MODEL) > 0 and case.span(i).error is None]
    spent = sum(case.spent(i, MODEL) for i in calls)
    if spent < LEAST * case.e2e:  # a call that failed has nothing to be split into
        return
    yield Finding(
        name="model-time-unsplit",
        title=f"{seconds(spent)} of model time ({share(spent, case.e2e)} of E2E) cannot be split into waiting, reading"
        " and writing: the first token was not timed.",
        confidence="certain",
        evidence=(f"{plural(len(calls), 'call')} on the critical path: {named(case.span(i).name for i in calls)}.",),
        check="Nothing in this record can tell.",
        remedy=" ".join(_to_split(case, calls)),
        spans=case.ids(calls),
    )


def _to_split(case: Case, calls: Iterable[int]) -> Iterable[str]:
    """What would have told: for calls that the gateway saw, and for those that it did not."""
    seen = [case.call(i) for i in calls if case.call(i).route is not None]
    if seen and not all(call.stream for call in seen):
        yield (
            'Have the agent stream its calls ("stream": true): then the gateway times the first token. An engine that'
            " reports its own timings, as llama.cpp does, tells it of whole answers too."
        )
    if any(call.stream for call in seen):
        yield "See that the engine streams where it is asked to, plainly and not packed: its first token never came."
    if any(case.call(i).route is None for i in calls):
        yield (
            "Stream, and record when the first chunk arrives (gen_ai.response.time_to_first_chunk); or send the calls"
            " through Headway's gateway, which times streams."
        )


def unfinished_spans(case: Case) -> Iterable[Finding]:
    """Spans that never ended."""
    tree = case.study.tree
    never = [i for i, span in enumerate(tree.spans) if span.end is None and tree.kinds[i] is not HumanWait]
    if not never or case.verdict.timing == "durations":  # which leaves out the ends that the record does not tell
        return
    yield Finding(
        name="unfinished-spans",
        title=f"{plural(len(never), 'span')} never ended: the time shown is the least that it can have been.",
        confidence="certain",
        evidence=(f"Without an end: {named(case.span(i).name for i in never)}.",),
        check="See whether the task was broken off, or the record was made while it ran.",
        remedy="End every span, also when its work fails, and flush the exporter before the process exits.",
        spans=case.ids(never),
    )


def flushed_ends(case: Case) -> Iterable[Finding]:
    """Ends that are the exporter's, not the work's; those that were never recorded are another matter."""
    if not case.study.flushed:
        return
    held = case.study.held
    late = [i for i in held.nodes[1:] if held.hi[i] >= held.hi[0] - TOGETHER and case.span(i).end is not None]
    yield Finding(
        name="flushed-ends",
        title=f"{len(late):,} of {plural(len(held.nodes) - 1, 'span')} end together with the task: their ends are the"
        " exporter's, so nothing is said about where the time went.",
        confidence="certain",
        evidence=(f"Among them: {named(case.span(i).name for i in late)}.",),
        check="Look at two spans that should follow one another: they overlap up to the end.",
        remedy="End each span when its work ends, not when the exporter is closed.",
        spans=case.ids(late),
    )


def no_times(case: Case) -> Iterable[Finding]:
    """A source without times."""
    if case.verdict.timed:
        return
    missing = "when things happened" if case.verdict.timing == "durations" else "how long anything took"
    yield Finding(
        name=NO_TIMES,
        title=f"This record ({case.verdict.source}) does not say {missing}, so nothing is said of seconds.",
        confidence="certain",
        evidence=case.verdict.remarks or (f"Times: {case.verdict.about('times').how}.",),
        check="Nothing in this record can tell.",
        remedy="Export spans with start and end (OTLP), or send the calls through Headway's gateway.",
    )
