"""When the user saw the first of the answer."""

from typing import Final, cast

from headway.core.span import ModelCall, ToolUse
from headway.trace.study import Study

ASKING: Final = frozenset({"function_call", "tool_call", "tool_calls", "tool_use"})
"""Why a response ended that asks for tools, by whose API it was; some records keep that and not what was asked for."""


def task_ttft(case: Study, notes: list[str]) -> float | None:
    """Task TTFT: first visible output - the user's request; seconds. Where it is unknown, ``notes`` says why."""
    tree = case.tree
    ours = [turn.call for turn in case.turns if not case.in_tool[turn.call]]
    loop = [(tree.spans[i], tree.end[i]) for i in ours]
    shown = next(((span.work, end) for span, end in loop if type(span.work) is ModelCall and span.work.shown), None)
    if shown is not None:
        return _first_of(*shown, case, notes)
    issuers = {work.issued_by for span in tree.spans if type(work := span.work) is ToolUse}
    answers = [
        (span.work, end)
        for span, end in loop
        if type(span.work) is ModelCall and not (_asks(span.work) or span.id in issuers) and span.error is None
    ]
    broken = _broken_off(case, ours[-1]) if ours else None
    if broken is not None:
        again = " and was made again" if broken in case.again else ""
        notes.append(f"Task TTFT is that of an answer that broke off{again}.")
        return _first_of(cast("ModelCall", tree.spans[broken].work), tree.end[broken], case, notes)
    if not answers or (answers[-1][0] is not loop[-1][0].work):
        notes.append("Task TTFT is unknown: the loop does not end with an answer.")
        return None
    call, end = answers[-1]
    asking = [span.work for span, _ in loop if type(span.work) is ModelCall and _asks(span.work)]
    if beside := sum(one.first_visible is not None for one in asking):
        notes.append(
            f"Text stood beside the tool calls of {beside:,} earlier answer{'s' * (beside > 1)}; whether the user was"
            " shown it is not recorded, so task TTFT does not count it."
        )
    first = _first_of(call, end, case, notes)
    if first is not None and len(answers) > 1:
        notes.append(
            f"Task TTFT is that of the last answer: {len(answers) - 1:,} earlier without tool calls"
            f" {'are' if len(answers) > 2 else 'is'} taken to have been read by another call, not by the user."  # noqa: PLR2004 - one
        )
    return first


def task_ttft_most(case: Study) -> float | None:
    """The latest that the task TTFT can have been, by when a text of the loop was on record; seconds."""
    loop = [case.tree.spans[turn.call].work for turn in case.turns if not case.in_tool[turn.call]]
    marks = [call.visible_by for call in loop if type(call) is ModelCall and call.visible_by is not None]
    return case.tree.axis(min(marks)) if marks else None


def _first_of(call: ModelCall, end: float, case: Study, notes: list[str]) -> float | None:
    """When the first text of a call was seen: what was not streamed came at its end."""
    if call.first_visible is not None:
        return case.tree.axis(call.first_visible)
    if call.stream is False:
        return end
    what = "first text, beside tool calls," if _asks(call) else "answer's first visible text"
    notes.append(f"Task TTFT is unknown: the {what} was not timed.")
    return None


def _broken_off(case: Study, last: int) -> int | None:
    """The first try of the loop's last call that failed after its first text was seen."""
    before = {after: i for i, after in case.again.items()}
    work, seen, i = case.tree.spans[last].work, None, last
    if type(work) is not ModelCall or _asks(work):
        return None
    while i is not None:
        span = case.tree.spans[i]
        call = cast("ModelCall", span.work)
        if span.error is not None and call.first_visible is not None and not call.tool_calls:
            seen = i
        i = before.get(i)
    return seen


def _asks(call: ModelCall) -> bool:
    """Whether it ended to have tools called."""
    return bool(call.tool_calls) or call.finish_reason in ASKING
