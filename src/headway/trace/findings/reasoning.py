"""Most of what is written is reasoning."""

from collections.abc import Iterable
from typing import Final

from headway.core.money import MicroUsd
from headway.trace.findings.case import Case, total
from headway.trace.findings.figures import plural, share
from headway.trace.findings.finding import Finding
from headway.trace.phases import DECODE

HALF: Final = 0.5
"""Of the output tokens."""
MUCH: Final = 500
"""Tokens: less is written in seconds, whatever its share."""


def reasoning_dominates(case: Case) -> Iterable[Finding]:
    """At least half of the output tokens, of the calls that tell them apart, are reasoning."""
    calls = [i for i in case.study.held.calls if case.call(i).usage.reasoning is not None]
    thought = {i: min(case.call(i).usage.reasoning or 0, case.call(i).usage.output_tokens or 0) for i in calls}
    reasoning, written = sum(thought.values()), sum(case.call(i).usage.output_tokens or 0 for i in calls)
    if reasoning < MUCH or reasoning < HALF * written:
        return
    spent, timed = _spent(case, thought)
    most = max(thought, key=thought.__getitem__)
    yield Finding(
        name="reasoning-dominates",
        title=f"Of {written:,} tokens written, {reasoning:,} ({share(reasoning, written)}) are reasoning, not answer"
        + case.ending(spent),
        seconds=spent,
        cost=_cost(case, thought),
        tokens=reasoning,
        confidence="certain" if timed else "likely",
        evidence=(
            (
                f"In {plural(sum(map(bool, thought.values())), 'call')}; most in {case.span(most).name}:"
                f" {thought[most]:,} of its {case.call(most).usage.output_tokens or 0:,}."
            ),
        ),
        check="Run the task again with a lower reasoning effort: is the answer as good?",
        remedy="Lower the reasoning effort, at least for the steps that only choose a tool, or give those to a model"
        " that does not reason.",
        spans=case.ids(i for i, tokens in thought.items() if tokens),
    )


def _spent(case: Case, thought: dict[int, int]) -> tuple[float | None, bool]:
    """Seconds of the path by the share of each call's writing; and whether all of it was timed, not fitted."""
    if not case.timed:
        return None, True
    fitted = {i: spent for pace in case.paces for i, spent in pace.writing.items()}
    spent, timed = 0.0, True
    for i, tokens in thought.items():
        decode = case.spent(i, DECODE)
        if i in case.on_path and tokens:
            timed = timed and (decode > 0 or i not in fitted)
            spent += (decode or fitted.get(i, 0.0)) * tokens / (case.call(i).usage.output_tokens or 1)
    return spent or None, timed


def _cost(case: Case, thought: dict[int, int]) -> MicroUsd | None:
    parts: list[int | None] = []
    for i, tokens in thought.items():
        price = case.prices(case.call(i), case.span(i).start)
        parts.append(None if price is None else price.output * tokens)
    cost = total(parts)
    return None if cost is None else MicroUsd(cost // 1_000_000)
