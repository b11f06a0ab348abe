"""A task's tokens and money, and what about its calls could not be known."""

from collections.abc import Collection, Sequence
from typing import cast

from msgspec import Struct

from headway.core.money import MicroUsd
from headway.core.span import UNKNOWN_MODEL, ModelCall, Retrieval, Span, ToolUse
from headway.core.spent import Spent
from headway.core.usage import Usage
from headway.trace.belonging import joined
from headway.trace.charges import Charges, charges_of, of_parts, spent_by
from headway.trace.ended import failed, untold
from headway.trace.own_totals import Told, in_all, told_in_all
from headway.trace.phases import is_derived, unconnected
from headway.trace.prices import PriceOf
from headway.trace.tree import Tree


class Totals(Struct, frozen=True, kw_only=True):
    """Sums over a task's work; ``None`` is unknown."""

    usage: Usage
    cost: MicroUsd | None
    spent: Spent
    """The same sums as lower bounds, where some calls do not tell their part."""
    own: tuple[Told, ...]
    """Which of them are the record's own totals."""
    failures: int
    unseen: int
    """Tools whose end nobody saw: they may have failed too."""
    retries: int | None
    notes: list[str]
    """Plain sentences: what is unknown, of how many calls."""


def total(
    tree: Tree, calls: Sequence[int], prices: PriceOf, *, again: Collection[int] = (), timed: bool = True
) -> Totals:
    """Add up a task.

    Args:
        tree: the task.
        calls: its model calls, each call once; indices of the tree.
        prices: prices of calls whose cost was not recorded.
        again: those of the calls that failed and were made again by their caller.
        timed: whether it is to be said how the seconds of calls and tools are known.
    """
    notes: list[str] = []
    spans = [tree.spans[i] for i in calls]
    charges = charges_of([(span.work, span.start) for span in spans if type(span.work) is ModelCall], prices)
    works = charges.calls
    of_calls = spent_by(charges)
    spent = in_all(tree.spans[0].work, of_calls)
    own = told_in_all(of_calls, spent)
    if own:
        notes.append(
            f"The record's own total for the whole task: {' and '.join(own)}. What each call took of it is unknown."
        )
    _uncertain(works, spent, notes)
    _uncounted(spans, notes)
    if spent.cost.exact is None:
        _uncosted(charges, notes, bounded=spent.cost.partial)
    notes += _apart(spans, prices)
    if timed:
        _splits(
            [
                work
                for i, span in zip(calls, spans, strict=True)
                if i not in again and type(work := span.work) is ModelCall
            ],
            notes,
        )
    notes += joined(works)
    notes += _given_again(works)
    attempts = [call.attempts for call in works if call.attempts is not None]
    if hidden := len(works) - len(attempts):
        notes.append(f"May contain hidden retries: {_of(hidden, works)}, whose number of attempts was not recorded.")
    tools = tools_of(tree)
    if timed and (gaps := sum([type(span.work) is ToolUse and span.work.inferred for span in tools])):
        notes.append(
            f"Tools not timed where they ran: {gaps:,}. Each is the gap between the response that asked for it and the"
            " next request, so the agent's own code is in it."
        )
    return Totals(
        usage=Usage(
            input_tokens=spent.input_tokens.exact,
            output_tokens=spent.output_tokens.exact,
            cache_read=spent.cache_read.exact,
            cache_write=_sum([call.usage.cache_write for call in works]),
            reasoning=_sum([call.usage.reasoning for call in works]),
        ),
        cost=None if spent.cost.exact is None else MicroUsd(spent.cost.exact),
        spent=spent,
        own=own,
        failures=failures_of(tree, calls, tools),
        unseen=sum(map(untold, tools)),
        retries=None if hidden else len(again) + sum(attempts) - sum(map(bool, attempts)),
        notes=notes,
    )


def failures_of(tree: Tree, calls: Sequence[int], tools: Sequence[Span]) -> int:
    """How many of the calls and tools are known to have failed."""
    return sum([tree.spans[i].error is not None for i in calls]) + sum(map(failed, tools))


def tools_of(tree: Tree) -> list[Span]:
    """All tools and retrievals."""
    return [span for span, kind in zip(tree.spans, tree.kinds, strict=True) if kind is ToolUse or kind is Retrieval]


def _uncertain(calls: Sequence[ModelCall], spent: Spent, notes: list[str]) -> None:
    sums = {"input": spent.input_tokens, "output": spent.output_tokens, "cached": spent.cache_read}
    missing: dict[tuple[int, bool], list[str]] = {}
    for kind, one in sums.items():
        if unknown := one.of - one.known:
            missing.setdefault((unknown, one.partial), []).append(kind)
    for (unknown, bounded), kinds in missing.items():
        listed = " and ".join([", ".join(kinds[:-1]), kinds[-1]] if kinds[:-1] else kinds).capitalize()
        notes.append(f"{listed} tokens are unknown for {_of(unknown, calls)}{_so(len(kinds), bounded=bounded)}.")


def _so(sums: int, *, bounded: bool) -> str:
    """What that makes of the sums."""
    if bounded:
        return ": their sums are lower bounds" if sums > 1 else ": their sum is a lower bound"
    return ", and so are their sums" if sums > 1 else ", and so is their sum"


def _given_again(calls: Sequence[ModelCall]) -> list[str]:
    """Which calls took nothing, because their answers were kept, and what these had taken."""
    kept = [call.given_again for call in calls if call.given_again is not None]
    if not kept:
        return []
    tokens = _sum([count for one in kept for count in (one.usage.input_tokens, one.usage.output_tokens)])
    money = _sum([one.cost for one in kept])
    took = [f"{sum(one.seconds for one in kept):,.1f} s"]
    took += [] if tokens is None else [f"{tokens:,} tokens"]
    took += [] if money is None else [f"${money / 1_000_000:,.6f}"]
    note = (
        f"Answered from the cache of answers: {_of(len(kept), calls)}. No engine was asked, so they count 0 tokens and"
    )
    return [f"{note} no money; without the cache they would have taken {', '.join(took)}."]


def _sum(counts: Sequence[int | None]) -> int | None:
    return None if None in counts else sum(cast("Sequence[int]", counts))


def _uncounted(calls: Sequence[Span], notes: list[str]) -> None:
    works = [span.work for span in calls if span.error is None and type(span.work) is ModelCall]
    silent = [call for call in works if _silent(call)]
    asked = sum(call.route is not None for call in silent)
    if asked:
        notes.append(
            f"Streamed without token counts: {_of(asked, calls)}. The gateway asked the engine for them, and it does"
            " not report them, or not in an encoding that the gateway reads."
        )
    if asked < len(silent):
        notes.append(
            f"Streamed without token counts: {_of(len(silent) - asked, calls)}. Engines count a stream's tokens only"
            ' where the request asks for it, with `"stream_options": {"include_usage": true}`.'
        )


def _silent(call: ModelCall) -> bool:
    return call.stream is True and (call.usage.input_tokens is None or call.usage.output_tokens is None)


def _uncosted(charges: Charges, notes: list[str], *, bounded: bool) -> None:
    rows = [row for row in zip(charges.calls, charges.prices, charges.costs, strict=True) if row[2] is None]
    priceless = [call.model for call, price, _ in rows if price is None]
    unpriced = [model for model in dict.fromkeys(priceless) if model != UNKNOWN_MODEL]  # in order of appearance
    uncounted = sum([price is not None for _, price, _ in rows])
    what = "Cost is a lower bound" if bounded else "Cost is unknown"
    if unpriced:
        notes.append(f"{what}: no price is known for {', '.join(unpriced)}.")
    if nameless := priceless.count(UNKNOWN_MODEL):
        notes.append(f"{what}: which model answered is not on record for {_of(nameless, charges.calls)}.")
    if uncounted:
        notes.append(f"{what}: token counts that it needs are missing for {_of(uncounted, charges.calls)}.")


def _apart(spans: Sequence[Span], prices: PriceOf) -> list[str]:
    """Of how many calls it is unknown what some of their tokens cost, though what the call cost is on record."""
    recorded = [(work, span.start) for span in spans if type(work := span.work) is ModelCall and work.cost is not None]
    parts = of_parts(prices)
    apart = sum(parts(call, at) is None for call, at in recorded)
    why = "their cost is on record, and no known price comes to it, so how it splits over the tokens is unknown."
    return [f"What fewer tokens would save in money is unknown for {_of(apart, spans)}: {why}"] if apart else []


def _splits(calls: Sequence[ModelCall], notes: list[str]) -> None:
    derived = sum(map(is_derived, calls))
    unsplit = sum(
        call.first_token is None and call.engine is None and call.attempts != 0 and not unconnected(call)
        for call in calls
    )
    if derived:
        notes.append(
            f"Queue, prefill and decode are derived from the engine's own timings for {_of(derived, calls)}, which did"
            " not arrive as a timed stream."
        )
    if ended := sum(call.first_token is not None and call.last_token is None for call in calls):
        notes.append(
            f"When the last token came was not timed for {_of(ended, calls)}: it is taken to be the call's end, so the"
            " time per token is the most that it can have been."
        )
    if unsplit:
        notes.append(f"Shown as model time, unsplit: {_of(unsplit, calls)}, whose first token was not timed.")


def _of(some: int, calls: Sequence[object]) -> str:
    return f"{some:,} of {len(calls):,} call" + ("" if len(calls) == 1 else "s")
