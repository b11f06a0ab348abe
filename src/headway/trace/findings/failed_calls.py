"""Model calls that failed for good, with all their tries: what failed them, and what that means."""

from collections.abc import Iterable, Sequence
from typing import Final

from headway.core.span import ModelCall
from headway.trace.findings.case import Case
from headway.trace.findings.errors import AGAIN, ANOTHER, meaning
from headway.trace.findings.figures import named, plural, seconds
from headway.trace.findings.finding import Finding
from headway.trace.findings.retries import paused, seen_by
from headway.trace.phases import never_sent
from headway.trace.resent import last_tries

_REMEDY: Final = "See what the words mean to whoever recorded them, and mend that first."


def failed_calls(case: Case) -> Iterable[Finding]:
    """Calls that failed for good. Where the task ends with one, all of its time was for an answer that never came."""
    again, calls = case.study.again, case.study.held.calls
    tries = last_tries(again, calls)
    lost = [i for i in calls if case.span(tries[i]).error is not None]
    if not lost:
        return
    end = _end(case, lost)
    spent = _spent(case, lost) if case.timed else None
    if end and case.timed:
        spent = case.e2e
    errors = sorted({str(case.span(i).error) for i in lost})
    yield Finding(
        name="failed-calls",
        title=f"{_what(case, lost)} ({', '.join(errors)})" + end + case.ending(spent),
        seconds=spent,
        **case.took(lost),
        confidence="certain",
        evidence=(
            *_named(case, lost),
            *_explained(errors),
            *((f"All {seconds(case.e2e)} of the task were for that answer.",) if end and case.timed else ()),
        ),
        check=f"Look at {seen_by(case, lost)} log, and at the caller's, at that time.",
        remedy=" ".join(_remedies(case, lost)),
        spans=case.ids(lost),
    )


def _what(case: Case, lost: Sequence[int]) -> str:
    """How many failed; what was never sent was refused."""
    of = plural(len(case.study.held.calls), "model call")
    refused = sum(never_sent(case.call(i)) for i in lost)
    if not refused:
        return f"{len(lost):,} of {of} failed"
    failed = len(lost) - refused
    was = "was" if refused == 1 else "were"
    return f"{refused:,} of {of} {was} refused" + (f" and {failed:,} failed" if failed else "")


def _named(case: Case, lost: Sequence[int]) -> Iterable[str]:
    refused = [i for i in lost if never_sent(case.call(i))]
    for word, these in (("Refused", refused), ("Failed", [i for i in lost if i not in refused])):
        if these:
            yield f"{word}: {named(f'{case.span(i).name}{_where(case, i)}' for i in these)}."


def _spent(case: Case, lost: Sequence[int]) -> float:
    """Seconds on the path: the calls' own, and the pauses between tries of the same one."""
    again = case.study.again
    return sum(case.spent(i) for i in lost) + paused(case, [(i, again[i]) for i in lost if i in again])


def _end(case: Case, lost: Sequence[int]) -> str:
    """How a title goes on where the loop's last call failed, and no tool's: then the user was not answered."""
    last = case.study.turns[-1].call if case.study.turns else lost[-1]
    if last not in lost or case.study.in_tool[last]:
        return ""
    seen = case.call(last).first_visible is not None
    return ", so the task has only part of an answer" if seen else ", so the task has no answer"


def _where(case: Case, i: int) -> str:
    """Who failed it, as far as the gateway saw it."""
    call = case.call(i)
    return f" at {call.replica}" if call.replica is not None else ""


def _explained(errors: Sequence[str]) -> Iterable[str]:
    for error in errors:
        found = meaning(error)
        if found is not None:
            yield f"{error}: {found.what}."


def _remedies(case: Case, lost: Sequence[int]) -> Iterable[str]:
    """What to do about each error; where an engine failed, also what would have given the answer all the same."""
    found = {i: meaning(str(case.span(i).error)) for i in sorted(lost, key=lambda i: str(case.span(i).error))}
    yield from dict.fromkeys(_REMEDY if one is None else one.remedy for one in found.values())
    engines = [case.call(i) for i, one in found.items() if one is not None and one.engines]
    begun = [call for call in engines if call.first_token is not None]
    if begun:
        yield AGAIN
    if engines and len(_ready(engines)) <= 1 and not (begun and any(call.route is None for call in begun)):
        yield ANOTHER


def _ready(calls: Sequence[ModelCall]) -> set[str]:
    """The replicas that had any of these calls, or could have had it."""
    had = {one.replica for call in calls for one in call.setbacks}
    could = {one.name for call in calls if call.route is not None for one in call.route.candidates}
    return had | could | {call.replica for call in calls if call.replica is not None}
