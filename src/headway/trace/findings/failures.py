"""Tools that failed, and what it took to call them again."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from headway.core.span import ToolUse
from headway.trace.ended import failed
from headway.trace.findings.case import Case
from headway.trace.findings.figures import named, plural
from headway.trace.findings.finding import Finding

ALL_ROUND: Final = ("bash", "command", "computer", "exec", "interpreter", "python", "shell", "terminal")
"""In the name of a tool that does anything: where it is called again otherwise, that need not be for the failure."""


def failed_tools(case: Case) -> Iterable[Finding]:
    """Failed tools, with the model calls that asked for them again and for nothing else."""
    lost = [i for i, _ in case.tools() if failed(case.span(i))]
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
        **case.took(calls),
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
    """Calls that ask for nothing but tools which failed in the turn before."""
    failures = set(lost)
    found: set[int] = set()
    for chat in case.chats:
        for before, after in pairwise(chat):
            wrong = {_wanted(case, i) for i in case.issued.get(before, ()) if i in failures}
            again = {_wanted(case, i) for i in case.issued.get(after, ())}
            if again and again <= wrong:
                found.add(after)
    return found


def _wanted(case: Case, i: int) -> tuple[str, str | None]:
    """What a tool call is for: its name, and for a tool that does anything, what it was called with."""
    work = case.span(i).work
    name, arguments = (work.name, work.arguments) if isinstance(work, ToolUse) else ("", None)
    if not any(word in name.lower() for word in ALL_ROUND):
        return name, None
    return name, arguments or case.span(i).id
