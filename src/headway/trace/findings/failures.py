"""Tools that failed, and what it took to call them again."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from headway.trace.findings.case import Case
from headway.trace.findings.figures import named, plural
from headway.trace.findings.finding import Finding
from headway.trace.findings.repeats import failed

ALL_ROUND: Final = 0.25
"""Of a task's tool calls: a tool that makes up more, such as a shell, is called again for anything, not to retry."""
FEW: Final = 3
"""Uses; up to so many, none is all-round."""


def failed_tools(case: Case) -> Iterable[Finding]:
    """Failed tools, with the model calls that asked for them again and for nothing else."""
    lost = [i for i, _ in case.tools() if failed(case, i)]
    if not lost:
        return
    retried = _retried(case, lost)
    calls = sorted(retried)
    spent = case.path_seconds([*lost, *calls])
    uses = sum(1 for _ in case.tools())
    errors = sorted({str(case.span(i).error) for i in lost if case.span(i).error is not None})
    yield Finding(
        name="failed-tools",
        title=f"{len(lost):,} of {plural(uses, 'tool call')} failed"
        + (f", after which {plural(len(calls), 'model call')} asked for the same tool again" if calls else "")
        + case.ending(spent),
        seconds=spent,
        cost=case.charged(calls) if calls else None,
        tokens=case.tokens(calls) if calls else None,
        confidence="likely" if calls else "certain",
        evidence=(
            f"Failed: {named(case.span(i).name for i in lost)}"
            + (f"; errors: {', '.join(errors)}." if errors else "."),
            f"Asked for again at once, and nothing else, by {named(case.span(i).name for i in calls)}."
            if calls
            else "No model call is known to have been made only to ask for them again.",
        ),
        check="Read what they were called with: wrong arguments are the model's, the rest is the tool's. Some tools"
        " call it a failure when nothing was found.",
        remedy="State the arguments' format in the tool's description, let the tool's error say what would be right,"
        " and retry passing faults inside the tool instead of by a model call.",
        spans=case.ids([*lost, *calls]),
    )


def _retried(case: Case, lost: list[int]) -> set[int]:
    """Calls that ask for nothing but tools which failed in the turn before; for an all-round tool that says nothing."""
    uses = Counter(case.span(i).name for i, _ in case.tools())
    most = max(ALL_ROUND * uses.total(), FEW)
    asked = {tool: call for call, tools in case.issued.items() for tool in tools}
    names: dict[int, set[str]] = {}
    for tool in lost:
        if tool in asked and uses[case.span(tool).name] <= most:
            names.setdefault(asked[tool], set()).add(case.span(tool).name)
    found: set[int] = set()
    for chat in case.chats:
        for before, after in pairwise(chat):
            again = {case.span(i).name for i in case.issued.get(after, ())}
            if again and again <= names.get(before, set()):
                found.add(after)
    return found
