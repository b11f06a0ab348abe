"""How each number was measured, in a sentence each: what a reader sees on hover, or asks for with --why."""

from typing import assert_never

from headway.app.report.legend import SIGNS
from headway.app.report.set_figures import spread_rows
from headway.core.span import HumanWait, ModelCall, Retrieval, Span, Step, ToolUse
from headway.trace.anatomy import Anatomy
from headway.trace.path import Phase
from headway.trace.sets import SetAnatomy

MEASURED: dict[str, str] = {
    "E2E": "From the task's first request to its last output, by the clock of what recorded it. Waits for a person are "
    "taken out; work that outlived the task is not in it.",
    "N": "Model calls on the critical path. Calls in parallel branches that others outlasted are only in the total.",
    "critical path": "Walked back from the task's end: always the span that finished last before that moment. Its "
    "pieces tile E2E without gap or overlap.",
    "slack": "How much longer the span could take before the task's end would move; ? where how long it took is "
    "unknown, as of one of several tools in one gap.",
    "task TTFT": "From the user's request to the first text that a user can see: neither reasoning nor tool arguments."
    " With ≤, not timed: it had come when the record had its text.",
    "last call TTFT": "From the last call's request to its first token: what a per-call dashboard would show.",
    "ms/token": "TPOT: (last token - first token) / (output tokens - 1) on streamed calls; else derived, by the "
    "engine's own figures: decode time / (tokens decoded - 1).",
    "tokens": "As the engine reports them for each call; input includes what was read from the cache. Where some calls "
    "report none, a sum is a lower bound and says so; where none does, it is unknown.",
    "cached share": "Input tokens read from the engine's prompt cache / input tokens.",
    "cost": "As recorded, else tokens times your own price or a public price list, with the cache's own price, to a "
    "millionth of a dollar. Unknown for models that have no price, such as local ones; beside others they make "
    "a sum a lower bound.",
    "levers": "Predicted by replaying this task's graph with the change and taking the difference in E2E. Savings of "
    "several levers do not simply add up. Money is by price, and unknown where no price comes to a cost on record.",
}

OF_SETS: dict[str, str] = {
    "interval": "In brackets, 95 %: by order statistics, whatever the values' distribution. There is none where the "
    "tasks are too few: it takes 6 for p50, 72 for p95, 368 for p99.",
    "quantiles": "Nearest rank, so always a value that occurred. Those of parts do not add up to those of the whole.",
    "share": "Seconds on the critical paths of all timed tasks together / their E2E together.",
    "typical": "Mean seconds on the critical path in the middle fifth of the tasks by E2E.",
    "tail": "The same in the slowest tenth of the tasks by E2E.",
    "s/use": "Mean length of a use, on the critical path or not, of those of which it is known.",
    "failed": "Uses or calls that ended in an error; of tools, those whose end somebody saw.",
    "again": "Uses with the arguments of an earlier one in the same task; unknown where arguments are not recorded.",
    "reading": "Theil-Sen line through TTFT over the input tokens that did not come from a cache, of calls of which "
    "both are known; in brackets its 95 % interval.",
    "findings": "Each task by itself, then counted; path seconds are sums over the tasks. Findings overlap.",
    "levers": "Each task replayed with the change, then the quantile taken anew: p95 as recorded against p95 of the "
    "replays, not p95 of the savings. Savings of several levers do not simply add up. Money is by price, and unknown "
    "where no price comes to a cost on record.",
}

_BEFORE_PHASES = 3


def of_span(span: Span) -> str:
    """How the times of ``span`` were measured."""
    match span.work:
        case ModelCall() as call:
            return _of_call(call)
        case ToolUse(inferred=True):
            return "Inferred: the gap between the answer that asked for the tool and the request with its result."
        case ToolUse() | Retrieval():
            return "Timed where it ran."
        case Step():
            return "The span of its parts, or as the agent reported it."
        case HumanWait():
            return _sentence(SIGNS[Phase.HUMAN].measured)
        case _:
            assert_never(span.work)


def of_tpot(*, by_engine: bool, to_end: bool) -> str:
    """How one call's TPOT was measured."""
    if to_end:
        return "TPOT at most, derived: (the call's end - first token) / (output tokens - 1); the last was not timed."
    if by_engine:
        return "TPOT, derived from the engine's own figures: decode time / (tokens decoded - 1)."
    return "TPOT, from the stream: (last token - first token) / (output tokens - 1)."


def everything(anatomy: Anatomy) -> tuple[tuple[str, str], ...]:
    """Each kind of number of this task, with how it was measured."""
    phases = [(sign.label, _sentence(sign.measured)) for phase, sign in SIGNS.items() if phase in anatomy.phases]
    numbers = list(MEASURED.items())
    return (*numbers[:_BEFORE_PHASES], *phases, *numbers[_BEFORE_PHASES:])


def _of_call(call: ModelCall) -> str:
    if call.first_token is not None and call.identity is not None:
        how = "Timed at the gateway: request sent, first token, last token."
    elif call.first_token is not None:
        how = "Timed by what recorded it: start, first token, end."
    elif call.engine is not None:
        how = "No first token was timed: split by the engine's own prefill and decode times."
    else:
        how = "No first token was timed, and the engine told no timings: not split."
    if call.identity is None:
        return how
    sure = f"{call.identity.confidence:.0%} sure" if call.identity.confidence < 1 else "certain"
    return f"{how} Assigned to this task by {call.identity.evidence.replace('_', ' ')} ({sure})."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def everything_of_sets(made: SetAnatomy) -> tuple[tuple[str, str], ...]:
    """Each kind of number of a set, with how it was measured."""
    phases = [(SIGNS[Phase(row.name)].label, _sentence(SIGNS[Phase(row.name)].measured)) for row in made.phases]
    rows = [(row.name, row.measured) for row in spread_rows(made, 0)]
    return (*rows, *phases, *OF_SETS.items())
