"""Most of the time goes into writing the output."""

from collections.abc import Iterable
from typing import Final

from headway.trace.findings.case import Case, total
from headway.trace.findings.figures import plural, seconds, share
from headway.trace.findings.finding import Finding
from headway.trace.phases import DECODE, is_derived

HALF: Final = 0.5
"""Of E2E: what takes as much as all else together dominates."""


def writing_dominates(case: Case) -> Iterable[Finding]:
    """Decode takes at least half of the path."""
    spent = case.anatomy.phases.get(DECODE, 0.0)
    if not case.timed or spent < HALF * case.e2e:
        return
    calls = [i for i in case.on_path if case.spent(i, DECODE) > 0]
    written = total([case.call(i).usage.output_tokens for i in calls])
    reasoning = sum(case.call(i).usage.reasoning or 0 for i in calls)
    longest = max(calls, key=lambda i: case.spent(i, DECODE))
    size = "" if not written else f": {plural(written, 'token')}, {seconds(spent / written)} each"
    yield Finding(
        name="writing-dominates",
        title=f"Writing takes {share(spent, case.e2e)} of the {seconds(case.e2e)}{size}.",
        seconds=spent,
        tokens=written,
        confidence="likely" if any(is_derived(case.call(i)) for i in calls) else "certain",
        evidence=(
            (
                f"Decode on the critical path: {seconds(spent)} in {plural(len(calls), 'call')}; the longest,"
                f" {case.span(longest).name}, writes for {seconds(case.spent(longest, DECODE))}."
            ),
            *((f"Of the tokens, {reasoning:,} are reasoning, not answer.",) if reasoning else ()),
        ),
        check="Read the longest output: how much of it is used?",
        remedy="Ask for less: a schema, a lower limit or reasoning effort, edits instead of whole texts; or a model"
        " that writes faster (lever: half the output).",
        spans=case.ids(calls),
    )
