"""Fewer tokens for each call: a prompt that is in the cache, a shorter answer."""

from collections.abc import Iterable
from typing import Final

from headway.core.spent import summed
from headway.trace.change import Change
from headway.trace.levers.case import Case
from headway.trace.levers.lever import Advice, Lever, Saved, micro, predicted
from headway.trace.pace import writing_shares
from headway.trace.phases import DECODE, MODEL, PREFILL
from headway.trace.reuse import rereads

_GUESSED: Final = "Where the first token was not timed, it is taken from how calls' time rises with their output."


def cached_prefixes(case: Case) -> Iterable[Lever]:
    """Nothing is read again that an earlier call of the task had read or written."""
    found, untold = rereads(case.study)
    if not found:
        return
    change = Change(case.study)
    change.scale(case.shares[PREFILL], lambda i: found[i].fresh / found[i].computed if i in found else 1.0)
    saved: list[int | None] = []
    for i, tokens in found.items():
        span, call = case.call(i)
        price = case.prices(call, span.start)
        saved.append(None if price is None else price.cheaper * (tokens.computed - tokens.fresh))
    unknown = f" What {untold} more read, or took from a cache, is not recorded: left as they are." if untold else ""
    yield predicted(
        case,
        change,
        Saved(summed(tokens.computed - tokens.fresh for tokens in found.values()), micro(saved)),
        Advice(
            key="prefix-cache",
            name="full prefix-cache hits",
            assumes="Each prompt begins with the previous prompt and answer, word for word, and the replica still holds"
            " them." + unknown,
            tradeoff="Cache memory that other tasks then lack; a provider may charge for writing to its cache.",
            rule="Prefill time is proportional to the prompt tokens that are not in the cache.",
            how="Keep the prompt's beginning constant (no time stamps, tools in one order), append only, send a task's"
            " calls to one replica, and give its cache room.",
        ),
    )


def shorter_output(case: Case) -> Iterable[Lever]:
    """Half of what is written; where no first token was timed, of the time that rises with the output.

    An answer that broke off stays as it is: it would have broken off all the same.
    """
    change = Change(case.study)
    whole = frozenset(i for i in case.study.held.calls if case.call(i)[0].error is None)
    change.scale(case.shares[DECODE], lambda i: 0.5 if i in whole else 1.0)
    writing = writing_shares(case.study)
    change.scale(case.shares[MODEL], lambda i: 1 - 0.5 * writing.get(i, 0.0) if i in whole else 1.0)
    guessed = f" {_GUESSED}" if writing else ""
    written: list[int | None] = []
    charged: list[int | None] = []
    for span, call in map(case.call, filter(whole.__contains__, case.study.held.calls)):
        price = case.prices(call, span.start)
        half = None if call.usage.output_tokens is None else call.usage.output_tokens // 2
        written.append(half)
        charged.append(None if price is None or half is None else half * price.output)
    yield predicted(
        case,
        change,
        Saved(summed(written), micro(charged)),
        Advice(
            key="half-the-output",
            name="half the output",
            assumes="Answers half as long do the job; time per output token stays." + guessed,
            tradeoff="Less reasoning or detail: measure the quality.",
            rule="Decode = TPOT x (output tokens - 1): it is proportional to what is written.",
            how="Ask for brief answers, use a schema, lower max_tokens or the reasoning effort, and have edits written"
            " instead of whole texts.",
        ),
    )
