"""Most of the time goes into writing the output."""

from collections.abc import Iterable, Sequence
from typing import Final

from headway.core.span import ModelCall
from headway.trace.findings.case import Case, total
from headway.trace.findings.figures import plural, seconds, share
from headway.trace.findings.finding import Finding
from headway.trace.pace import Pace
from headway.trace.phases import DECODE, is_derived

HALF: Final = 0.5
"""Of E2E: what takes as much as all else together dominates."""


def writing_dominates(case: Case) -> Iterable[Finding]:
    """Decode takes at least half of the path; where the first token was not timed, by how calls' time rises with it.

    An answer that broke off does not count: had it been shorter, it would have broken off all the same.
    """
    if not case.timed:
        return
    timed = {i: spent for i in case.on_path if case.span(i).error is None and (spent := case.spent(i, DECODE)) > 0}
    fitted = {i: spent for pace in case.paces for i, spent in pace.writing.items() if i in case.on_path}
    if sum(timed.values()) >= HALF * case.e2e:
        yield _finding(case, timed, ())
    elif sum(timed.values()) + sum(fitted.values()) >= HALF * case.e2e:
        yield _finding(case, timed | fitted, case.paces)


def _finding(case: Case, writes: dict[int, float], fitted: Sequence[Pace]) -> Finding:
    spent = sum(writes.values())
    written = total([case.call(i).usage.output_tokens for i in writes])
    reasoning = sum(case.call(i).usage.reasoning or 0 for i in writes)
    longest = max(writes, key=writes.__getitem__)
    gaps = _gaps(case, writes, fitted)
    size = "" if not written else f": {plural(written, 'token')}"
    size += f", {seconds(spent / gaps)} each" if size and gaps else ""
    about = "about " if fitted else ""
    derived = fitted or any(is_derived(case.call(i)) for i in writes)
    return Finding(
        name="writing-dominates",
        title=f"Writing takes {about}{share(spent, case.e2e)} of the {seconds(case.e2e)}{size}.",
        seconds=spent,
        tokens=written,
        confidence="likely" if derived else "certain",
        evidence=(
            (
                f"Writing on the critical path: {about}{seconds(spent)} in {plural(len(writes), 'call')}; the longest,"
                f" {case.span(longest).name}, writes for {about}{seconds(writes[longest])}."
            ),
            *map(_told, fitted),
            *((f"Of the tokens, {reasoning:,} are reasoning, not answer.",) if reasoning else ()),
        ),
        check="Read the longest output: how much of it is used?",
        remedy="Ask for less: a schema, a lower limit or reasoning effort, edits instead of whole texts; or a model"
        " that writes faster (lever: half the output).",
        spans=case.ids(writes),
    )


def _gaps(case: Case, writes: Iterable[int], fitted: Sequence[Pace]) -> int:
    """Tokens that the writing was timed over: as in TPOT, of a stream one fewer than its tokens; by the line all."""
    whole = {i for pace in fitted for i in pace.writing}
    return sum(max(_decoded(case.call(i)) - (i not in whole), 0) for i in writes)


def _decoded(call: ModelCall) -> int:
    return call.engine.decode_tokens if call.engine is not None and is_derived(call) else call.usage.output_tokens or 0


def _told(pace: Pace) -> str:
    slope, low, high = [seconds(one) for one in (pace.line.slope, pace.line.slope_low, pace.line.slope_high)]
    return (
        f"The first token was not timed; but over {plural(pace.line.n, 'call')} of {pace.model} with {pace.shortest:,}"
        f" to {pace.longest:,} output tokens a call takes {slope} longer for each token (95 % interval {low} to"
        f" {high})."
    )
