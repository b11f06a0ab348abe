"""What an addition would do to a set and so to its budget: a new tool, a longer context."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, structs

from headway.core.budget import seconds
from headway.core.errors import BadInputError
from headway.core.span import ModelCall
from headway.core.spent import Sum
from headway.trace.facts import TaskFacts, ToolFacts
from headway.trace.phases import Phase
from headway.trace.prices import PriceOf, price_for
from headway.trace.sets import anatomy_of

_TOOL: Final = re.compile(r"tool:(\S+)\s+([0-9.]+\s*(?:ms|s|min))(?:\s+x\s*([0-9]+))?")
_CONTEXT: Final = re.compile(r"context\s+\+\s*([0-9][0-9_,]*)(?:\s*tokens)?")


class AddTool(Struct, frozen=True):
    """A tool on the critical path of every task."""

    name: str
    seconds: float
    times: int


class AddContext(Struct, frozen=True):
    """Tokens more in the prompt of every call, the same ones each time."""

    tokens: int


Addition = AddTool | AddContext


def addition(text: str) -> Addition:
    """An addition as a person writes it: ``tool:rerank 0.4s``, ``tool:search 1.2 s x3``, ``context +2000 tokens``.

    Raises:
        BadInputError: it is neither.
    """
    if match := _TOOL.fullmatch(text.strip()):
        return AddTool(match[1], seconds(match[2], f"--add {text!r}"), int(match[3] or 1))
    if match := _CONTEXT.fullmatch(text.strip()):
        return AddContext(int(match[1].replace(",", "").replace("_", "")))
    raise BadInputError(
        f"--add {text!r} is no addition.",
        fix='Write e.g. "tool:rerank 0.4s", "tool:search 1.2s x3" or "context +2000 tokens".',
    )


def added(
    rows: Sequence[TaskFacts], additions: Sequence[Addition], prices: PriceOf = price_for
) -> tuple[list[TaskFacts], tuple[str, ...]]:
    """The set as it would be, and plain sentences on what that assumes.

    Raises:
        BadInputError: the set does not say how long it takes to read a token.
    """
    assumed: list[str] = []
    made = list(rows)
    for one in additions:
        match one:
            case AddTool():
                made = [_with_tool(row, one) for row in made]
                assumed.append(
                    f"{one.name} takes {one.seconds:g} s {'once' if one.times == 1 else f'{one.times} times'} in every"
                    " task, while nothing else is at work; the tokens of its results are not in it."
                )
            case AddContext():
                line = anatomy_of(rows).prefill
                if line is None:
                    raise BadInputError(
                        "The set does not say how long reading a token takes: that needs eight calls or more of which"
                        " TTFT, input tokens and cached tokens are known.",
                        fix="Record through `headway serve`, or leave the context out of the review.",
                    )
                rate = max(line.slope, 0.0)
                made = [_with_context(row, one, rate, prices) for row in made]
                assumed.append(
                    f"{one.tokens:,} tokens are added to every prompt and computed at {rate * 1000:.3g} s per 1,000:"
                    " by the first call of a task in full, by later ones as far as the task's cached share says (in"
                    " full where that is unknown). In money they are at the price of the task's most called model."
                )
    return made, tuple(assumed)


def _with_tool(row: TaskFacts, one: AddTool) -> TaskFacts:
    before = row.tools.get(one.name, ToolFacts())
    more = one.seconds * one.times
    timed = row.e2e is not None
    tool = ToolFacts(
        uses=before.uses + one.times,
        failed=before.failed,
        ended=before.ended + one.times,
        again=before.again,
        told=before.told + one.times,
        seconds=before.seconds + more,
        timed=before.timed + one.times,
        on_path=before.on_path + (more if timed else 0.0),
    )
    tools = {**row.tools, one.name: tool}
    if row.e2e is None:
        return structs.replace(row, tools=tools)
    phases = {**row.phases, Phase.TOOL: row.phases.get(Phase.TOOL, 0.0) + more}
    return structs.replace(row, tools=tools, e2e=row.e2e + more, phases=phases, task_ttft=_later(row.task_ttft, more))


def _with_context(row: TaskFacts, one: AddContext, rate: float, prices: PriceOf) -> TaskFacts:
    read, cached = row.spent.input_tokens.exact, row.spent.cache_read.exact
    share = cached / read if read and cached is not None else 0.0
    computed = one.tokens * (1 + max(row.calls - 1, 0) * (1 - share)) if row.calls else 0.0
    whole = one.tokens * row.calls
    spent = structs.replace(
        row.spent,
        input_tokens=_more(row.spent.input_tokens, whole),
        tokens=_more(row.spent.tokens, whole),
        cache_read=_more(row.spent.cache_read, round(whole - computed)),
        cost=_dearer(row, computed, whole - computed, prices),
    )
    more = rate * computed * min(row.n / row.calls, 1.0) if row.calls else 0.0
    if row.e2e is None:
        return structs.replace(row, spent=spent)
    phases = {**row.phases, Phase.PREFILL: row.phases.get(Phase.PREFILL, 0.0) + more}
    return structs.replace(row, spent=spent, e2e=row.e2e + more, phases=phases, task_ttft=_later(row.task_ttft, more))


def _more(before: Sum, tokens: int) -> Sum:
    return Sum(before.total + tokens, before.known, before.of)


def _dearer(row: TaskFacts, computed: float, cached: float, prices: PriceOf) -> Sum:
    """At the prices of the task's most called model."""
    model = max(row.models, key=lambda name: row.models[name].calls, default=None)
    price = None if model is None else prices(ModelCall(model=model), row.started_at)
    before = row.spent.cost
    if price is None:
        return Sum(before.total, 0, before.of)
    read = price.input if price.cache_read is None else price.cache_read
    return _more(before, round((computed * price.input + cached * read) / 1_000_000))


def _later(when: float | None, more: float) -> float | None:
    return None if when is None else when + more
