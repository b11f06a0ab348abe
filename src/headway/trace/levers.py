"""Levers: what each change would save on this task, predicted by replaying its graph with the change."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from headway.core.money import MicroUsd, Price
from headway.core.span import ModelCall, Retrieval, Span, ToolUse
from headway.core.task import SpanId
from headway.trace.change import Change, Share, below, inner, shares_of
from headway.trace.contract import EPSILON
from headway.trace.loop import Turn
from headway.trace.phases import DECODE, HOP, PREFILL, QUEUE, RETRIEVAL, TOOL, Phase
from headway.trace.prices import PriceOf, charge, price_for
from headway.trace.reuse import cold, rereads
from headway.trace.study import Study, study

NOTICEABLE = 1e-6
"""Seconds; a saving below this is rounding."""


class Lever(Struct, frozen=True, kw_only=True):
    """A change and its predicted saving on one task."""

    name: str
    """Short imperative, e.g. "one iteration fewer"."""
    seconds: float
    """E2E now - E2E of the replay; never negative."""
    share: float
    """``seconds`` / E2E."""
    tokens: int | None
    """Tokens neither read nor written any more (for a cache: read from it, not computed); unknown stays unknown."""
    cost: MicroUsd | None
    assumes: str
    rule: str
    """The rule of thumb behind it."""
    how: str
    """How to do it."""


class Saved(Struct, frozen=True):
    """Tokens and money; ``None`` is unknown."""

    tokens: int | None = 0
    cost: MicroUsd | None = MicroUsd(0)


class Case(Struct, frozen=True, kw_only=True):
    """One task, ready for its what-ifs."""

    study: Study
    shares: dict[Phase, list[Share]]
    children: dict[int, list[int]]
    issued: dict[SpanId, list[int]]
    prices: PriceOf

    def call(self, i: int) -> tuple[Span, ModelCall]:
        """The span and the call of one of the study's calls."""
        span = self.study.tree.spans[i]
        if not isinstance(span.work, ModelCall):
            msg = f"span {span.id} is no model call"
            raise TypeError(msg)
        return span, span.work


def rank(spans: Sequence[Span], *, prices: PriceOf = price_for) -> tuple[Lever, ...]:
    """The levers that apply to a task and save time on it, the largest saving first.

    Each is predicted alone: savings of two levers do not add up. Dependencies stay as recorded: a span starts when
    those that it waited for have ended, plus the gap there was.

    Args:
        spans: all spans of one task, in any order and any state.
        prices: what tokens cost, for the money saved.
    """
    studied = study(spans)
    case = Case(
        study=studied, shares=shares_of(studied), children=inner(studied), issued=_issued(studied), prices=prices
    )
    levers = [lever for predict in LEVERS for lever in predict(case) if lever.seconds > NOTICEABLE]
    return tuple(sorted(levers, key=lambda lever: (-lever.seconds, lever.name)))


def _fewer_iterations(case: Case) -> Iterable[Lever]:
    turns = sorted(_droppable(case), key=lambda turn: turn.seconds)
    for number in sorted({1, len(turns) // 2} - {0}) if turns else ():
        first = (len(turns) - number) // 2
        dropped = turns[first : first + number]
        change = Change(case.study)
        for turn in dropped:
            _drop_turn(case, change, turn)
        yield _lever(
            case,
            change,
            name="one iteration fewer" if number == 1 else f"{number} iterations fewer",
            saved=_spared(case, [turn.call for turn in dropped]),
            assumes="Iterations of median length are not needed; the last one, the answer, stays, and its cache hits"
            " with it.",
            rule="E2E = N x (hop + TTFT + TPOT x output tokens + tools): time falls with N.",
            how="Put into the first prompt what the loop goes to look for, ask for several tools in one response, and"
            " limit the number of steps.",
        )


def _one_call(case: Case) -> Iterable[Lever]:
    turns, held, kinds = case.study.turns, case.study.held, case.study.tree.kinds
    if not _droppable(case):
        return
    answer = turns[-1].call
    span, call = case.call(answer)
    if span.error is not None or call.tool_calls:
        return
    gone = {i for i in held.nodes if kinds[i] in {ModelCall, ToolUse} and held.hi[i] <= held.lo[answer] + EPSILON and i}
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
    yield _lever(
        case,
        change,
        name="answer in one call",
        saved=_less(_spared(case, [i for i in held.calls if i in gone]), cached, case.prices(call, span.start)),
        assumes="The last call could have been made at once, with the same prompt: what retrievals and tools had"
        " found is in it. " + _READ_COLD[warm is not None],
        rule="Planning overhead = E2E - (lead-in + retrieval + the last call).",
        how="Send simple questions down a direct path: retrieve, then one call; plan only where that fails.",
    )


_READ_COLD: Final = {
    True: "What it took from the cache, which the earlier calls had filled, it computes itself, at the task's rate.",
    False: "Whether the earlier calls filled a cache for it is unknown and not counted.",
}


def _less(saved: Saved, cached: int, price: Price | None) -> Saved:
    """``saved``, less what ``cached`` input tokens cost more when they are computed."""
    if saved.cost is None or price is None or price.cache_read is None or not cached:
        return saved
    more = -(-cached * (price.input - price.cache_read) // 1_000_000)
    return Saved(saved.tokens, MicroUsd(max(saved.cost - more, 0)))


def _cached_prefixes(case: Case) -> Iterable[Lever]:
    found, untold = rereads(case.study)
    if not found:
        return
    change = Change(case.study)
    change.scale(case.shares[PREFILL], lambda i: found[i].fresh / found[i].computed if i in found else 1.0)
    saved: list[int | None] = []
    for i, tokens in found.items():
        span, call = case.call(i)
        price = case.prices(call, span.start)
        less = None if price is None or price.cache_read is None else price.input - price.cache_read
        saved.append(None if less is None else less * (tokens.computed - tokens.fresh))
    unknown = f" Token counts are unknown for {untold} more: left as they are." if untold else ""
    yield _lever(
        case,
        change,
        name="full prefix-cache hits",
        saved=Saved(sum(tokens.computed - tokens.fresh for tokens in found.values()), _micro(saved)),
        assumes="Each prompt begins with the previous prompt and answer, word for word, and the replica still holds"
        " them." + unknown,
        rule="Prefill time is proportional to the prompt tokens that are not in the cache.",
        how="Keep the prompt's beginning constant (no time stamps, tools in one order), append only, send a task's"
        " calls to one replica, and give its cache room.",
    )


def _parallel_tools(case: Case) -> Iterable[Lever]:
    change = Change(case.study)
    guessed = False
    for tools in case.issued.values():
        for holder in {case.study.held.holder[i] for i in tools}:
            group = [i for i in tools if case.study.held.holder[i] == holder]
            guessed |= _side_by_side(case, change, group)
    guess = (
        " Where only the gap between response and next request is known, it is taken to be its tools one after another,"
        " equally long."
    )
    yield _lever(
        case,
        change,
        name="tools in parallel",
        saved=Saved(),
        assumes="Tools that one response asked for do not depend on each other." + (guess if guessed else ""),
        rule="The tools of one response take the longest of their times, not the sum.",
        how="Start every tool call of a response at once, and send the results back together.",
    )


def _side_by_side(case: Case, change: Change, group: Sequence[int]) -> bool:
    """Let tools in order of start run at once; whether the gap they share had to be guessed apart."""
    if len(group) < 2:  # noqa: PLR2004 - side by side takes two
        return False
    held, works = case.study.held, [case.study.tree.spans[i].work for i in group]
    if all(isinstance(work, ToolUse) and work.inferred for work in works):
        if case.children.keys() & set(group):
            return False  # sub-agents inside show what ran when
        for i in group:
            change.tail[i] /= len(group)
        return True
    longest = max(group, key=lambda i: held.hi[i] - held.lo[i])
    for i in group[1:]:
        change.drop_gap(i)
    for i in group:
        if i != longest:
            for node in below(case.children, i)[1:]:
                change.drop(node)
            change.tail[i] = 0.0
    return False


def _shorter_output(case: Case) -> Iterable[Lever]:
    change = Change(case.study)
    change.scale(case.shares[DECODE], lambda _: 0.5)
    written: list[int | None] = []
    charged: list[int | None] = []
    for span, call in map(case.call, case.study.held.calls):
        price = case.prices(call, span.start)
        half = None if call.usage.output_tokens is None else call.usage.output_tokens // 2
        written.append(half)
        charged.append(None if price is None or half is None else half * price.output)
    yield _lever(
        case,
        change,
        name="half the output",
        saved=Saved(_total(written), _micro(charged)),
        assumes="Answers half as long do the job; time per output token stays.",
        rule="Decode = TPOT x (output tokens - 1): it is proportional to what is written.",
        how="Ask for brief answers, use a schema, lower max_tokens or the reasoning effort, and have edits written"
        " instead of whole texts.",
    )


def _no_hop(case: Case) -> Iterable[Lever]:
    change = Change(case.study)
    change.scale(case.shares[HOP], lambda _: 0.0)
    yield _lever(
        case,
        change,
        name="no hop",
        saved=Saved(),
        assumes="The upper bound: the agent's own code and the network take no time.",
        rule="Each iteration pays its hops once: N x hop.",
        how="Run the agent beside the gateway, keep connections open, and do the agent's own work while the model"
        " writes.",
    )


def _no_queue(case: Case) -> Iterable[Lever]:
    change = Change(case.study)
    change.scale(case.shares[QUEUE], lambda _: 0.0)
    yield _lever(
        case,
        change,
        name="no queue",
        saved=Saved(),
        assumes="A slot is always free for this task.",
        rule="Waiting grows with utilisation as u / (1 - u), and each iteration pays it again.",
        how="Add a replica or slots, let interactive tasks go first, or admit fewer tasks at a time.",
    )


def _faster_tools(case: Case) -> Iterable[Lever]:
    change = Change(case.study)
    change.scale([*case.shares[TOOL], *case.shares[RETRIEVAL]], lambda _: 0.5)
    yield _lever(
        case,
        change,
        name="tools twice as fast",
        saved=Saved(),
        assumes="Tools and retrievals take half as long; where a tool's time is a gap, the agent's code in it too.",
        rule="A tool on the critical path counts in full; one with slack counts nothing.",
        how="Cache results of tools, keep their processes warm, and give the slow ones more machine.",
    )


def _no_failures(case: Case) -> Iterable[Lever]:
    held, spans = case.study.held, case.study.tree.spans
    failed = [i for i in held.calls if spans[i].error is not None and not held.adrift[i]]
    change = Change(case.study)
    for i in failed:
        change.tail[i] = 0.0
    yield _lever(
        case,
        change,
        name="no failed calls",
        saved=_spared(case, failed),
        assumes="What the failed calls were for was done by later ones; the pause after a failure stays.",
        rule="A failed call costs its whole time and is then made again.",
        how="Find out what failed them (the spans' error types), and let the gateway take another replica sooner.",
    )


LEVERS: tuple[Callable[[Case], Iterable[Lever]], ...] = (
    _fewer_iterations,
    _one_call,
    _cached_prefixes,
    _parallel_tools,
    _shorter_output,
    _no_hop,
    _no_queue,
    _faster_tools,
    _no_failures,
)


def _lever(case: Case, change: Change, *, name: str, saved: Saved, assumes: str, rule: str, how: str) -> Lever:
    seconds = change.saving()
    share = seconds / case.study.e2e if case.study.e2e else 0.0
    return Lever(
        name=name,
        seconds=seconds,
        share=share,
        tokens=saved.tokens,
        cost=saved.cost,
        assumes=assumes,
        rule=rule,
        how=how,
    )


def _droppable(case: Case) -> list[Turn]:
    """Iterations that a task could do without: not the answer, and not a sub-agent's, which its tool's answer needs."""
    return [turn for turn in case.study.turns[:-1] if not case.study.in_tool[turn.call]]


def _drop_turn(case: Case, change: Change, turn: Turn) -> None:
    """Take a turn out: its call, its hops and its tools, on the path and beside it; but no sub-agent's work."""
    issued = case.issued.get(case.study.tree.spans[turn.call].id, [])
    tools = {stretch.owner for stretch in turn.stretches if case.study.tree.kinds[stretch.owner] is ToolUse}
    busy = {i for i in {*tools, *issued} if _holds_calls(case, i)}
    for stretch in turn.stretches:
        if stretch.owner not in busy:
            change.drop_stretch(stretch)
    for i in issued:
        if i not in busy:
            for node in below(case.children, i):
                change.drop(node)


def _holds_calls(case: Case, top: int) -> bool:
    return any(case.study.tree.kinds[i] is ModelCall for i in below(case.children, top))


def _issued(case: Study) -> dict[SpanId, list[int]]:
    """Tools by the call whose response asked for them, in order of start."""
    issued: dict[SpanId, list[int]] = {}
    latest: dict[str, SpanId] = {}  # by the tool call's id; some engines use one again, so the last one counts
    for i in sorted(case.held.nodes, key=case.held.lo.__getitem__):
        span = case.tree.spans[i]
        match span.work:
            case ModelCall(tool_calls=refs):
                latest.update((ref.id, span.id) for ref in refs)
            case ToolUse(issued_by=issuer, call_id=call_id):
                issuer = issuer or (latest.get(call_id) if call_id else None)
                if issuer is not None:
                    issued.setdefault(issuer, []).append(i)
            case _:
                pass
    return issued


def _spared(case: Case, calls: Iterable[int]) -> Saved:
    """What calls that are not made do not read, write and cost."""
    tokens: list[int | None] = []
    cost: list[int | None] = []
    for span, call in map(case.call, calls):
        read, written = call.usage.input_tokens, call.usage.output_tokens
        tokens.append(None if read is None or written is None else read + written)
        cost.append(charge(call, span.start, case.prices))
    money = _total(cost)
    return Saved(_total(tokens), None if money is None else MicroUsd(money))


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _micro(per_million: Sequence[int | None]) -> MicroUsd | None:
    """Tokens times price per million of them, summed; a saving is rounded down."""
    total = _total(per_million)
    return None if total is None else MicroUsd(total // 1_000_000)
