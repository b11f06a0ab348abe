"""Fewer calls: iterations left out, or all but the answer."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf
from typing import Final

from msgspec import Struct

from headway.core.span import ModelCall, Retrieval, ToolUse
from headway.core.spent import Sum
from headway.trace.change import Change
from headway.trace.levers.case import Case
from headway.trace.levers.lever import UNTOLD, Advice, Lever, Saved, part, predicted, spared
from headway.trace.levers.turns import FAR, droppable, left_alone, thin_out
from headway.trace.loop import Turn
from headway.trace.phases import PREFILL
from headway.trace.resent import last_tries
from headway.trace.reuse import cold
from headway.trace.tree import EPSILON

SIMPLE: Final = 6
"""Iterations; a longer loop works on what it finds, be it in tool calls or in plain text, and is no simple question."""


_LONG_STAY: Final = f"Iterations over {FAR} times as long as the median are no average ones and stay."


def fewer_iterations(case: Case) -> Iterable[Lever]:
    """One iteration fewer, and half of them: of average length.

    Where the only one that could go is all that comes before the answer, `one_call` is that change, better told. Where
    it is told beside them, the answer reads here as it does there, in proportion, and fewer iterations never save less.
    """
    turns = droppable(case)
    whole = next(iter(one_call(case)), None)
    if len(turns) == 1 and whole is not None:
        return
    most = inf if whole is None else whole.seconds
    reading = None if whole is None else _reading(case)
    for number in sorted({1, len(turns) // 2} - {0}, reverse=True) if turns else ():
        change = Change(case.study)
        left = thin_out(case, change, number)
        saved = spared(case, [turn.call for turn in turns])
        if reading is not None:
            reading.lengthen(case, change, 1 - left)
            saved = reading.less(case, saved)
        reads = _READS[whole is None, reading is not None]
        advice = Advice(
            key="one-iteration-fewer" if number == 1 else "half-the-iterations",
            name="one iteration fewer" if number == 1 else f"{number} iterations fewer",
            assumes="Iterations of average length are not needed, nor what their tools found; the last one, the"
            f" answer, stays, {reads}",
            stays=(left_alone(case), _LONG_STAY if left_alone(case) else ""),
            tradeoff="A larger first prompt, and a worse answer where the steps were needed.",
            rule="E2E = N x (hop + TTFT + TPOT x output tokens + tools): time falls with N.",
            how=f"Put into the first prompt what the loop goes to look for{_more_at_once(case, turns)}, and limit"
            " the number of steps.",
        )
        lever = predicted(case, change, part(saved, 1 - left), advice, most)
        most = lever.seconds
        yield lever


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
    reading = _reading(case)
    saved = spared(case, [i for i in held.calls if i in gone])
    if reading is not None:
        reading.lengthen(case, change, 1.0)
        saved = reading.less(case, saved)
    yield predicted(
        case,
        change,
        saved,
        Advice(
            key="one-call",
            name="answer in one call",
            assumes="What is in the last call's prompt can be had without the calls before it. None of them called a"
            " tool; but results that an agent writes into its prompt as plain text do not show. "
            + _READ_COLD[reading is not None],
            tradeoff="Hard questions are answered without a plan: measure the quality of both paths.",
            rule="Planning overhead = E2E - (lead-in + retrieval + the last call).",
            how="Send simple questions down a direct path: retrieve, then one call; plan only where that fails.",
        ),
    )


_READ_COLD: Final = {
    True: "What it took from the cache, which the earlier calls had filled, it computes itself, at the task's rate; but"
    " not what they had answered, which would not be in it.",
    False: "Whether the earlier calls filled a cache for it is unknown and not counted.",
}


_READS: Final = {
    (True, False): "and its cache hits with it.",
    (False, False): "and whether the others filled a cache for it is unknown and not counted.",
    (False, True): "and reads itself, at the task's rate, its part of what the others had put into the cache for it.",
}


class _Reading(Struct, frozen=True):
    """What the answer reads by itself when no call before it has."""

    answer: int
    tokens: int
    """Of its prompt: computed then, and taken from the cache now."""
    longer: float
    """How many times as long its prefill is."""

    def lengthen(self, case: Case, change: Change, part: float) -> None:
        """Have it read this part of that."""
        factor = 1.0 + part * (self.longer - 1.0)
        change.scale(case.shares[PREFILL], lambda i: factor if i == self.answer else 1.0)

    def less(self, case: Case, saved: Saved) -> Saved:
        """``saved``, less what these tokens cost more when they are computed."""
        span, call = case.call(self.answer)
        price, cost = case.prices(call, span.start), saved.cost
        if not self.tokens:
            return saved
        if price is None:
            return Saved(saved.tokens, UNTOLD.cost)
        left = cost.total - -(-self.tokens * price.cheaper // 1_000_000)
        return Saved(saved.tokens, Sum(left if cost.exact is not None else max(left, 0), cost.known, cost.of))


def _reading(case: Case) -> _Reading | None:
    """What the loop's answer would read by itself, without the calls before it and what they answered."""
    answer = case.study.turns[-1].call
    prefill: dict[int, float] = {}
    for share in case.shares[PREFILL]:
        prefill[share.owner] = prefill.get(share.owner, 0.0) + share.seconds
    grown = [case.call(turn.call)[1].usage for turn in case.study.turns if not case.study.in_tool[turn.call]]
    wrote = 0
    for before, after in pairwise(grown):
        kept = (before.output_tokens or 0) - (before.reasoning or 0)
        if before.input_tokens is not None and before.input_tokens + kept <= (after.input_tokens or 0):
            wrote += kept  # a prompt as long holds the answer before it
        else:
            wrote = 0
    warm = cold(case.study, answer, prefill, wrote)
    return None if warm is None else _Reading(answer, *warm)


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
