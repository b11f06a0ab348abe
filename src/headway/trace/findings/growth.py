"""The context grows: every turn reads again what the turns before it left behind."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from headway.core.money import MicroUsd, Price, listed
from headway.core.span import ModelCall
from headway.core.usage import Usage
from headway.trace.findings.case import Case, total
from headway.trace.findings.figures import plural, share, times
from headway.trace.findings.finding import Finding
from headway.trace.reuse import rereads

TURNS: Final = 4
"""Calls; a shorter chat has no trend."""
RATIO: Final = 3.0
"""Longest prompt / first: a prompt that only triples is a normal loop."""
LONG: Final = 4096
"""Tokens; a shorter prompt is quickly read, however often."""
STEP: Final = 0.5
"""Of the growth: where one call alone brings more, and its prompt is unknown, it may be another conversation."""
RISING: Final = 0.75
"""Of the calls: prompts that shrink more often are not one history."""
WEIGHT: Final = 0.5
"""Of all input tokens: growth that is less is not what the task reads."""
TOKENS: Final = "tokens"
CHARS: Final = 4
"""Characters of a token, roughly, in English and in code."""
MONEY: Final = 0.1
"""Of the task's cost: where the cache makes growth cheaper than that, it is no problem."""


def context_growth(case: Case) -> Iterable[Finding]:
    """Prompts end several times as long as they began, and most of what is read is that growth."""
    chat = max(case.chats, key=len, default=list[int]())
    sized = _sized(case, chat)
    if sized is None or not _one_history(case, sized.calls, sized.read):
        return
    read = sized.read
    grown = [max(count - read[0], 0) for count in read]
    tokens, paid = sum(grown), paid_for(case, sized.calls, grown)
    if tokens < WEIGHT * sum(read):
        return
    whole = case.anatomy.cost
    cached = total([case.call(i).usage.cache_read for i in sized.calls])
    if (paid is not None and whole and paid < MONEY * whole) or (paid is None and nearly_all(cached, sum(read))):
        return
    longest = sized.calls[read.index(max(read))]
    yield Finding(
        name="context-growth",
        title=f"The prompt grows from {read[0]:,} to {max(read):,} {sized.unit} in {plural(len(read), 'call')}:"
        f" {share(tokens, sum(read))} of all {sized.unit} read are earlier turns, read again and again.",
        cost=paid,
        tokens=tokens if sized.unit == TOKENS else None,
        confidence="certain",
        evidence=(
            (
                f"{case.span(chat[0]).name}: {plural(len(read), 'call')} read {sum(read):,} {sized.unit}; without"
                f" growth it would have been {len(read) * read[0]:,}. The longest prompt is"
                f" {times(max(read) / read[0])} times as long as the first."
            ),
            f"From the cache came {share(min(cached, sum(read)), sum(read))} of them."
            if cached is not None
            else "How much of that came from a cache is not in the record.",
            *_again(case),
            *_dearer(case, sized.calls),
            *_made_of(case, longest),
        ),
        check="Look at the longest prompt: what of it does the last turn still need?",
        remedy="Cut what tools return to what is needed, drop results that have been used, compact the history, and"
        " give side work to a sub-agent that returns only its answer.",
        spans=case.ids(chat),
    )


class _Sized(Struct, frozen=True):
    """Calls of a chat, and how much each of them read."""

    calls: list[int]
    read: list[int]
    unit: str


def _sized(case: Case, chat: Sequence[int]) -> _Sized | None:
    """By their tokens, else (where no tokens at all are known) by the characters of prompts; not what stays short."""
    counts = [case.call(i).usage.input_tokens for i in chat]
    read, calls, unit, least = [count for count in counts if count is not None], list(chat), TOKENS, LONG
    if not read:
        known = [(i, sum(part.chars for part in prompt)) for i in chat if (prompt := case.call(i).prompt) is not None]
        calls, read = [i for i, _ in known], [chars for _, chars in known]
        unit, least = "characters", LONG * CHARS
        if len(read) < RISING * len(chat):
            return None
    if len(read) < max(TURNS, len(calls)) or not read[0] or max(read) < max(RATIO * read[0], least):
        return None
    return _Sized(calls, read, unit)


def _dearer(case: Case, calls: Sequence[int]) -> Iterable[str]:
    """What the first and the dearest call cost, where only whole calls' costs are known."""
    costs = [cost for i in calls if (cost := case.call(i).cost) is not None]
    if len(costs) == len(calls) and max(costs) > costs[0] and not any(map(_counted, map(case.call, calls))):
        yield f"The first of them cost ${costs[0] / 1e6:.4f}, the dearest ${max(costs) / 1e6:.4f}."


def _counted(call: ModelCall) -> bool:
    return call.usage.input_tokens is not None


def _one_history(case: Case, chat: Sequence[int], read: Sequence[int]) -> bool:
    """Whether prompts seldom shrink and mostly begin as the ones before did; if they are unknown, grow by and by."""
    prompts = [case.call(i).prompt for i in chat]
    known = [(a, b) for a, b in pairwise(prompts) if a is not None and b is not None]
    same = sum(all(one.shape == other.shape for one, other in zip(a, b, strict=False)) for a, b in known)
    steps = [b - a for a, b in pairwise(read)]
    goes_on = same >= len(known) / 2 if known else max(steps) <= STEP * (max(read) - read[0])
    return goes_on and sum(step >= 0 for step in steps) >= RISING * len(steps)


def _again(case: Case) -> Iterable[str]:
    found, _ = rereads(case.study)
    if tokens := sum(reread.computed - reread.fresh for reread in found.values()):
        yield f"Computed although an earlier call of the task had had it computed: {tokens:,} tokens."


def nearly_all(cached: int | None, read: int) -> bool:
    """Whether so much came from a cache that reading it costs next to nothing."""
    return cached is not None and cached >= (1 - MONEY) * read


def paid_for(case: Case, chat: Sequence[int], grown: Sequence[int]) -> MicroUsd | None:
    """What some input tokens of each call cost: their share of all its input, cached tokens at their price."""
    parts: list[int | None] = []
    for i, more in zip(chat, grown, strict=True):
        usage, price = case.call(i).usage, case.prices(case.call(i), case.span(i).start)
        whole = None if price is None else _input_cost(usage, price)
        parts.append(None if whole is None else whole * more // max(usage.input_tokens or 0, 1))
    paid = total(parts)
    return None if paid is None else MicroUsd(paid)


def _input_cost(usage: Usage, price: Price) -> MicroUsd | None:
    read = Usage(
        input_tokens=usage.input_tokens, output_tokens=0, cache_read=usage.cache_read, cache_write=usage.cache_write
    )
    return listed(read, price)


def _made_of(case: Case, call: int) -> tuple[str, ...]:
    prompt = case.call(call).prompt
    if not prompt:
        return ()
    chars = Counter[str]()
    for part in prompt:
        chars[part.role] += part.chars
    whole = chars.total()
    largest = max(prompt, key=lambda part: part.chars)
    roles = ", ".join(f"{role} {share(count, whole)}" for role, count in chars.most_common())
    return (
        (
            f"The longest prompt's characters: {roles}; its largest message ({largest.role}) is"
            f" {share(largest.chars, whole)} of it."
        ),
    )
