"""What a call read again although an earlier call of its task had read or written it: what a full cache would save."""

from collections.abc import Mapping

from msgspec import Struct

from headway.core.span import ModelCall, Span
from headway.trace.study import Study
from headway.trace.tree import EPSILON

CONTINUES = frozenset({"explicit", "extends", "tool_result"})
"""Evidence of calls whose messages go on from an earlier call's."""


class Reread(Struct, frozen=True):
    """Tokens of one call."""

    computed: int
    """Prompt tokens that the engine computed, i.e. did not take from its cache."""
    fresh: int
    """Those among them that no earlier call of the task had computed or written."""
    before: int
    """The call that had: without it there would be nothing to read again."""


def rereads(case: Study) -> tuple[dict[int, Reread], int]:
    """The calls that computed something again, and of how many calls that cannot be told for want of token counts.

    A call goes on from the last call beside it that had ended when it started, had the same model, and whose prompt and
    answer (without reasoning, which is not sent again) its own prompt is long enough to hold; where the identity says
    that it was opened otherwise (a sub-agent, a hand-over, a rewritten history), nothing is taken to be read again.
    """
    found: dict[int, Reread] = {}
    untold = 0
    latest: dict[tuple[int, str], int] = {}
    tree, held = case.tree, case.held
    for i in held.calls:
        call = tree.spans[i].work
        if held.adrift[i] or type(call) is not ModelCall or _broken(tree.spans[i]):
            continue
        before = latest.get((held.holder[i], call.model))
        latest[held.holder[i], call.model] = i
        if before is None or held.hi[before] > held.lo[i] + EPSILON:
            continue
        if call.identity is not None and call.identity.evidence not in CONTINUES:
            continue
        earlier = tree.spans[before].work
        known = _kept(earlier) if type(earlier) is ModelCall else None
        total, computed = call.usage.input_tokens, _computed(call)
        if known is None or total is None or computed is None:
            untold += 1
        elif known <= total and (fresh := max(total - known, 1)) < min(computed, total):
            found[i] = Reread(min(computed, total), fresh, before)
    return found, untold


def counted(case: Study) -> bool:
    """Whether it is known of every call what it computed."""
    works = [case.tree.spans[i].work for i in case.held.calls]
    return all(type(work) is not ModelCall or _computed(work) is not None for work in works)


def cold(case: Study, i: int, prefill: Mapping[int, float], gone: int = 0) -> tuple[int, float] | None:
    """What call ``i`` would have had to read without a cache: how many tokens more, and how much longer its prefill.

    By the task's own rate: seconds of prefill / tokens computed, over all calls of which both are known. A call that
    computed little says little of the rate, for it pays what any call pays.

    Args:
        case: the task.
        i: the call.
        prefill: seconds of prefill of each call.
        gone: tokens of its prompt that would not be in it.
    """
    seconds = tokens = 0.0
    for one in case.held.calls:
        work = case.tree.spans[one].work
        computed = _computed(work) if type(work) is ModelCall else None
        if computed is not None and computed > 0 and prefill.get(one):
            seconds, tokens = seconds + prefill[one], tokens + computed
    call = case.tree.spans[i].work
    total, computed = (call.usage.input_tokens, _computed(call)) if type(call) is ModelCall else (None, None)
    if total is None or computed is None or not 0 <= computed <= total or not tokens or not prefill.get(i):
        return None
    left = max(total - gone, computed)
    return left - computed, max(left * seconds / tokens / prefill[i], 1.0)


def _broken(span: Span) -> bool:
    """Whether it failed before anybody counted a token: nothing goes on from it, and its retry asks the same again."""
    return span.error is not None and type(span.work) is ModelCall and span.work.usage.input_tokens is None


def _kept(call: ModelCall) -> int | None:
    """Tokens that the engine has keys and values of once it has answered, and that the next prompt repeats."""
    read, written = call.usage.input_tokens, call.usage.output_tokens
    return None if read is None or written is None else read + written - (call.usage.reasoning or 0)


def _computed(call: ModelCall) -> int | None:
    if call.engine is not None:
        return call.engine.prefill_tokens
    read, cached = call.usage.input_tokens, call.usage.cache_read
    return None if read is None or cached is None else read - cached
