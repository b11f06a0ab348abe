"""When the user saw the first of the answer."""

from typing import Final

from headway.core.span import ModelCall, Span, ToolUse
from headway.trace.study import Study

ASKING: Final = frozenset({"function_call", "tool_call", "tool_calls", "tool_use"})
"""Why a response ended that asks for tools, by whose API it was; some records keep that and not what was asked for."""


def task_ttft(case: Study, notes: list[str]) -> float | None:
    """Task TTFT: first visible output - the user's request; seconds. Where it is unknown, ``notes`` says why."""
    tree = case.tree
    loop = [(tree.spans[turn.call], tree.end[turn.call]) for turn in case.turns if not case.in_tool[turn.call]]
    shown = [
        span.work.first_visible
        for span, _ in loop
        if type(span.work) is ModelCall and span.work.shown and span.work.first_visible is not None
    ]
    if shown:
        return tree.axis(min(shown))
    issuers = {span.work.issued_by for span in tree.spans if type(span.work) is ToolUse}
    answers = [
        (span.work, end)
        for span, end in loop
        if type(span.work) is ModelCall and not (_asks(span.work) or span.id in issuers) and span.error is None
    ]
    broken = _broken_off(loop[-1][0]) if loop else None
    if broken is not None:
        notes.append("Task TTFT is that of an answer that broke off.")
        return tree.axis(broken)
    if not answers or (answers[-1][0] is not loop[-1][0].work):
        notes.append("Task TTFT is unknown: the loop does not end with an answer.")
        return None
    call, end = answers[-1]
    if len(answers) > 1:
        notes.append(
            f"Task TTFT is that of the last answer: {len(answers) - 1:,} earlier without tool calls are taken to have"
            " been read by another call, not by the user."
        )
    if call.first_visible is not None:
        return tree.axis(call.first_visible)
    if call.stream is False:
        return end
    notes.append("Task TTFT is unknown: the answer's first visible text was not timed.")
    return None


def _broken_off(last: Span) -> float | None:
    """When the first text was seen of a last call that failed after it."""
    call = last.work
    if last.error is None or type(call) is not ModelCall or call.tool_calls:
        return None
    return call.first_visible


def _asks(call: ModelCall) -> bool:
    """Whether it ended to have tools called."""
    return bool(call.tool_calls) or call.finish_reason in ASKING
