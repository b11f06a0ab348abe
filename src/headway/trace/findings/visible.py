"""The user looks at nothing for long, although each call starts to stream at once."""

from collections.abc import Iterable
from typing import Final

from headway.trace.findings.case import Case
from headway.trace.findings.figures import plural, ranked, seconds, share, times
from headway.trace.findings.finding import Confidence, Finding

RATIO: Final = 3.0
"""Task TTFT / TTFT of the last call: below that a per-call dashboard is not far from what the user feels."""
LEAST: Final = 2.0
"""Seconds of silence; less is not felt as waiting for an answer to begin (a second or two is the usual limit)."""


def late_first_text(case: Case) -> Iterable[Finding]:
    """Task TTFT is several times the TTFT of the call that answers."""
    task, call = case.anatomy.task_ttft, case.anatomy.last_call_ttft
    if not case.timed or task is None or call is None or call < 0 or case.anatomy.n < 2:  # noqa: PLR2004 - a loop
        return
    silence = task - call
    if task < RATIO * call or silence < LEAST or silence > case.e2e:
        return
    turns = [turn.call for turn in case.study.turns]
    earlier = [i for i in turns[:-1] if case.call(i).first_visible is not None and not case.study.in_tool[i]]
    said = any(case.call(i).tool_calls for i in earlier)
    confidence: Confidence = "possible" if said else "likely" if earlier else "certain"
    before: dict[str, float] = {}
    for segment in case.anatomy.path:
        length = min(segment.end, task) - segment.start
        if length > 0:
            before[segment.phase.value] = before.get(segment.phase.value, 0.0) + length
    ratio = f", {times(task / call)} times as long" if call else ""
    yield Finding(
        name="late-first-text",
        title=f"The user sees nothing for {seconds(task)} ({share(task, case.e2e)} of E2E), though the last call starts"
        f" to stream after {seconds(call)}.",
        seconds=silence,
        confidence=confidence,
        evidence=(
            (
                f"First visible text of the task after {seconds(task)}; first token of its last call,"
                f" {case.span(turns[-1]).name}, {seconds(call)} after it was sent{ratio}."
            ),
            f"Before that text: {ranked(before)}, in {plural(len(turns), 'call')}.",
            *_earlier(len(earlier)),
        ),
        check="Watch the task as a user would, with a clock."
        if not earlier
        else "See whether the agent shows its users what the earlier calls wrote: then the silence ended sooner.",
        remedy="Show what is being done while it is done, stream the plan or partial answers, and make fewer calls"
        " before the answer (lever: one iteration fewer).",
        spans=case.ids(turns),
    )


def _earlier(number: int) -> tuple[str, ...]:
    wrote = f"{plural(number, 'earlier call')} wrote text that is taken to be for the agent, not for the user."
    return (wrote,) if number else ()
