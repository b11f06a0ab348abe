"""Fewer calls: iterations left out, or all but the answer."""

from collections.abc import Iterable, Sequence
from typing import Final

from headway.core.money import Price
from headway.core.span import ModelCall, Retrieval, ToolUse
from headway.core.spent import Sum
from headway.trace.change import Change
from headway.trace.levers.case import Case
from headway.trace.levers.lever import Advice, Lever, Saved, part, predicted, spared
from headway.trace.levers.turns import droppable, left_alone, thin_out
from headway.trace.loop import Turn
from headway.trace.phases import PREFILL
from headway.trace.resent import last_tries
from headway.trace.reuse import cold
from headway.trace.tree import EPSILON

SIMPLE: Final = 6
"""Iterations; a longer loop works on what it finds, be it in tool calls or in plain text, and is no simple question."""


def fewer_iterations(case: Case) -> Iterable[Lever]:
    """One iteration fewer, and half of them: of average length.

    Where the only one that could go is all that comes before the answer, `one_call` is that change, better told.
    """
    turns = droppable(case)
    if len(turns) == 1 and _answers_at_once(case):
        return
    for number in sorted({1, len(turns) // 2} - {0}) if turns else ():
        change = Change(case.study)
        left = thin_out(case, change, number)
        yield predicted(
            case,
            change,
            part(spared(case, [turn.call for turn in turns]), 1 - left),
            Advice(
                key="one-iteration-fewer" if number == 1 else "half-the-iterations",
                name="one iteration fewer" if number == 1 else f"{number} iterations fewer",
                assumes="Iterations of average length are not needed, nor what their tools found; the last one, the"
                f" answer, stays, and its cache hits with it. {left_alone(case)}".rstrip(),
                tradeoff="A larger first prompt, and a worse answer where the steps were needed.",
                rule="E2E = N x (hop + TTFT + TPOT x output tokens + tools): time falls with N.",
                how=f"Put into the first prompt what the loop goes to look for{_more_at_once(case, turns)}, and limit"
                " the number of steps.",
            ),
        )


def _more_at_once(case: Case, turns: Sequence[Turn]) -> str:
    """Advice to those whose turns do not ask for several tools already."""
    asked = [len(case.issued.get(case.call(turn.call)[0].id, ())) for turn in turns]
    several = sum(tools > 1 for tools in asked)
    return "" if 2 * several > sum(map(bool, asked)) else ", ask for several tools in one response"


def one_call(case: Case) -> Iterable[Lever]:
    """The answer at once, without the calls before it: retrievals stay, and what came before the first call."""
    if not droppable(case) or not _answers_at_once(case):
        return
    turns, held, kinds = case.study.turns, case.study.held, case.study.tree.kinds
    answer = turns[-1].call
    span, call = case.call(answer)
    tries = last_tries(case.study.again, held.calls)
    gone = {i for i in _before(case, answer) if kinds[i] is ModelCall and tries[i] != answer}
    lead_in = {stretch.node for stretch in case.study.lead_in if stretch.is_gap}
    change = Change(case.study)
    for turn in turns[:-1]:
        for stretch in turn.stretches:
            if kinds[stretch.owner] is not Retrieval:
                change.drop_stretch(stretch)
    for i in held.nodes:
        if i in gone:
            change.tail[i] = 0.0
        if (i in gone or held.holder[i] in gone) and i not in lead_in:
            change.drop_gap(i)
    prefill: dict[int, float] = {}
    for share in case.shares[PREFILL]:
        prefill[share.owner] = prefill.get(share.owner, 0.0) + share.seconds
    warm = cold(case.study, answer, prefill)
    cached, longer = warm or (0, 1.0)
    change.scale(case.shares[PREFILL], lambda i: longer if i == answer else 1.0)
    yield predicted(
        case,
        change,
        _less(spared(case, [i for i in held.calls if i in gone]), cached, case.prices(call, span.start)),
        Advice(
            key="one-call",
            name="answer in one call",
            assumes="What is in the last call's prompt can be had without the calls before it. None of them called a"
            " tool; but results that an agent writes into its prompt as plain text do not show. "
            + _READ_COLD[warm is not None],
            tradeoff="Hard questions are answered without a plan: measure the quality of both paths.",
            rule="Planning overhead = E2E - (lead-in + retrieval + the last call).",
            how="Send simple questions down a direct path: retrieve, then one call; plan only where that fails.",
        ),
    )


_READ_COLD: Final = {
    True: "What it took from the cache, which the earlier calls had filled, it computes itself, at the task's rate.",
    False: "Whether the earlier calls filled a cache for it is unknown and not counted.",
}


def _less(saved: Saved, cached: int, price: Price | None) -> Saved:
    """``saved``, less what ``cached`` input tokens cost more when they are computed."""
    if price is None or price.cache_read is None or not cached:
        return saved
    more = -(-cached * (price.input - price.cache_read) // 1_000_000)
    return Saved(saved.tokens, Sum(max(saved.cost.total - more, 0), saved.cost.known, saved.cost.of))


def _answers_at_once(case: Case) -> bool:
    """Whether nothing in the record speaks against the last call being made at once.

    A tool's result in its prompt would: without the call that asked for the tool, there would be none. So would an
    earlier call's answer in it.
    """
    turns, kinds = case.study.turns, case.study.tree.kinds
    answer = turns[-1].call
    span, call = case.call(answer)
    if span.error is not None or call.tool_calls or case.study.in_tool[answer] or len(turns) > SIMPLE:
        return False
    before = _before(case, answer)
    read = {part.digest for part in call.prompt or () if part.chars}
    calls = [case.call(i)[1] for i in before if kinds[i] is ModelCall]
    return not any(kinds[i] is ToolUse for i in before) and not any(
        one.tool_calls or (one.answer is not None and one.answer.digest in read) for one in calls
    )


def _before(case: Case, answer: int) -> list[int]:
    """What had ended when the answer's call started, without the root."""
    held = case.study.held
    return [i for i in held.nodes[1:] if held.hi[i] <= held.lo[answer] + EPSILON]
