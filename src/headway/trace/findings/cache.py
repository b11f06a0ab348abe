"""The cache is on, but little is read from it although prompts share a beginning."""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from msgspec import Struct

from headway.core.money import MicroUsd
from headway.core.span import ModelCall
from headway.trace.change import Change
from headway.trace.findings.case import Case, total
from headway.trace.findings.figures import plural, seconds, share
from headway.trace.findings.finding import Confidence, Finding
from headway.trace.findings.prefix import Shared, shared
from headway.trace.phases import MODEL, PREFILL
from headway.trace.prices import LOCAL
from headway.trace.reuse import rereads

HOSTED: Final = 1024
"""Tokens of the shortest prefix that hosted caches keep (OpenAI's and Anthropic's documentation; some need more)."""
OWN: Final = 64
"""Tokens for engines that one runs oneself, which cache in blocks of 16 to 64."""
LOW: Final = 0.5
"""Of the tokens that could have come from the cache: a cache at work gives nearly all."""
KEPT: Final = 300.0
"""Seconds that hosted caches keep a prefix unused, as documented."""


class Missed(Struct, frozen=True):
    """A call that computed what a cache could have given."""

    call: int
    could: int
    """Tokens that could have come from the cache."""
    tokens: int
    """Those that did not."""


def cache_misses(case: Case) -> Iterable[Finding]:
    """Both ways in which a prompt that repeats an earlier one is computed all the same."""
    pairs = list(shared(case))
    yield from _prefix_broken(case, pairs)
    yield from _cache_unused(case, pairs)


def _prefix_broken(case: Case, pairs: Iterable[Shared]) -> Iterable[Finding]:
    """Prompts repeat earlier ones, but behind a message that has changed, where no prefix cache finds them."""
    broken: list[Shared] = []
    missed: list[Missed] = []
    for one in pairs:
        if one.differs is None or one.lost < _least(case.call(one.call)):
            continue
        miss = _missed(case, one.call, one.intact + one.lost)
        if miss is None or miss.tokens >= LOW * one.lost:  # else the engine found it nevertheless
            broken.append(one)
            missed += [miss] if miss is not None else []
    if not broken:
        return
    told = len(missed) == len(broken)
    places = Counter((one.differs, _role(case, one), one.volatile) for one in broken)
    (place, role, volatile), often = places.most_common(1)[0]
    message = f"message {(place or 0) + 1} ({role})"
    what = "only times or ids in it differ" if volatile else "its text changes"
    confidence: Confidence = "certain" if told and volatile else "likely" if told else "possible"
    yield Finding(
        name="cache-prefix-broken",
        title=f"{message.capitalize()} breaks the cached prefix of {plural(len(broken), 'prompt')}: {what}, and"
        f" {sum(one.lost for one in broken):,} tokens that come again behind it cannot be read from a cache.",
        seconds=saving(case, missed) if told else None,
        cost=dearer(case, missed) if told else None,
        tokens=sum(one.tokens for one in missed) if told else None,
        confidence=confidence,
        evidence=(
            (
                f"Prompts that repeat an earlier one, but not from its beginning: {len(broken):,}; in {often:,} of them"
                f" the first message that differs is {message}."
            ),
            _first(case, broken[0]),
            _read(case, broken),
        ),
        check="Print that message of two calls that follow one another, and compare them."
        if told
        else "Record the cached tokens of each call: next to none beyond that message would confirm it.",
        remedy="Move what changes (time, ids, counters, retrieved facts) to the prompt's end, keep tools and system"
        " text word for word the same, and only append (lever: full prefix-cache hits).",
        spans=case.ids(one.call for one in broken),
    )


def _cache_unused(case: Case, pairs: Iterable[Shared]) -> Iterable[Finding]:
    """Prompts begin with earlier ones unchanged, and yet not half of that is read from the cache."""
    if case.verdict.about("cache").quality == "unknown":
        return
    earlier = {one.call: one for one in pairs if one.differs is None or one.lost < _least(case.call(one.call))}
    exact = bool(earlier)
    found = [_missed(case, i, one.intact) for i, one in earlier.items()] if exact else _grown(case)
    able = [one for one in found if one is not None and one.could >= _least(case.call(one.call))]
    missed = [one for one in able if one.tokens > LOW * one.could]
    could, lost = sum(one.could for one in able), sum(one.tokens for one in able)
    if not missed or lost <= LOW * could:
        return
    tokens = sum(one.tokens for one in missed)
    calls = [one.call for one in missed]
    yield Finding(
        name="cache-unused",
        title=f"Prompts repeat {could:,} tokens of earlier ones, but {share(could - lost, could)} of that is read from"
        " the cache.",
        seconds=saving(case, missed),
        cost=dearer(case, missed),
        tokens=tokens,
        confidence="likely" if exact else "possible",
        evidence=(
            (
                f"Computed although an earlier call of the task had had it computed: {tokens:,} tokens, in"
                f" {plural(len(calls), 'call')}."
            ),
            "Their prompts begin, message by message, with the earlier ones."
            if exact
            else "The prompts are not in the record: that they go on from one another is taken from their lengths.",
            *_lost_by(case, [(i, earlier[i].earlier) for i in calls] if exact else []),
            *_written(case, calls),
            *_pace(case, missed),
        ),
        check="Send the same prompt twice within a minute: the second should report nearly all of it as cached. Some"
        " sources write 0 where they do not know.",
        remedy="Turn caching on (Anthropic: cache_control; vLLM: prefix caching), send a task's calls to one replica,"
        " which Headway's router does, and give its cache room (lever: full prefix-cache hits).",
        spans=case.ids(calls),
    )


def _least(call: ModelCall) -> int:
    return OWN if call.provider is not None and call.provider.lower() in LOCAL else HOSTED


def _role(case: Case, one: Shared) -> str:
    prompt = case.call(one.call).prompt or ()
    return prompt[one.differs].role if one.differs is not None and one.differs < len(prompt) else "missing"


def _first(case: Case, one: Shared) -> str:
    what = "the same but for times and ids" if one.volatile else "different text"
    return (
        f"First in {case.span(one.call).name}, against {case.span(one.earlier).name} before it: {one.intact:,} tokens"
        f" are the same, then message {(one.differs or 0) + 1} is {what}, and {one.lost:,} tokens from there on come"
        " again."
    )


def _read(case: Case, broken: Sequence[Shared]) -> str:
    read = total([case.call(one.call).usage.cache_read for one in broken])
    known = read is not None and case.verdict.about("cache").quality != "unknown"
    return (
        f"They read {read:,} tokens from the cache." if known else "What they read from a cache is not in the record."
    )


def _missed(case: Case, i: int, could: int) -> Missed | None:
    """Unknown where it is not known what was read from the cache."""
    usage = case.call(i).usage
    if usage.cache_read is None or usage.input_tokens is None or case.verdict.about("cache").quality == "unknown":
        return None
    could = min(could, usage.input_tokens)
    return Missed(i, could, max(could - usage.cache_read, 0))


def _grown(case: Case) -> list[Missed | None]:
    """From token counts alone, where no prompts are kept."""
    if any(case.call(i).prompt is not None for i in case.study.held.calls):
        return []
    found, _ = rereads(case.study)
    again = {i: read.computed - read.fresh for i, read in found.items()}
    return [Missed(i, tokens + (case.call(i).usage.cache_read or 0), tokens) for i, tokens in again.items()]


def _lost_by(case: Case, pairs: Sequence[tuple[int, int]]) -> Iterable[str]:
    """What may have lost the cache between two calls."""
    replicas = [(case.call(i).replica, case.call(j).replica) for i, j in pairs]
    if moved := sum(a is not None and b is not None and a != b for a, b in replicas):
        yield f"{moved:,} of them went to another replica than the call before, which has another cache."
    spans = [(case.span(i), case.span(j)) for i, j in pairs if case.timed]
    if late := sum(after.start - (before.end or after.start) > KEPT for after, before in spans):
        yield f"{late:,} of them came more than {seconds(KEPT)} later: hosted caches have forgotten it by then."


def _written(case: Case, calls: Sequence[int]) -> Iterable[str]:
    if written := total([case.call(i).usage.cache_write for i in calls]):
        yield f"They wrote {written:,} tokens to the cache, so it is on."


def _pace(case: Case, missed: Sequence[Missed]) -> Iterable[str]:
    """How quickly the engine must have read if it did compute them: too quickly to be true is not true."""
    paces: list[float] = []
    for one in missed:
        before = sum(s.end - s.start for s in case.study.own[one.call] if s.phase in {PREFILL, MODEL})
        if case.timed and before > 0:
            paces.append((case.call(one.call).usage.input_tokens or 0) / before)
    if paces:
        yield f"If all was computed, the engine read {median(paces):,.0f} tokens a second or more (median)."


def saving(case: Case, missed: Iterable[Missed]) -> float | None:
    """By replay with that much less to read; unknown where no prefill was timed."""
    left: dict[int, float] = {}
    for one in missed:
        usage = case.call(one.call).usage
        computed = (usage.input_tokens or 0) - (usage.cache_read or 0)
        left[one.call] = max(1 - one.tokens / computed, 0.0) if computed > 0 else 1.0
    if not case.timed or left.keys().isdisjoint(part.owner for part in case.shares[PREFILL]):
        return None
    change = Change(case.study)
    change.scale(case.shares[PREFILL], lambda i: left.get(i, 1.0))
    return change.saving()


def dearer(case: Case, missed: Iterable[Missed]) -> MicroUsd | None:
    """What the tokens cost more than read from the cache, rounded down."""
    more: list[int | None] = []
    for one in missed:
        price = case.prices(case.call(one.call), case.span(one.call).start)
        more.append(None if price is None else price.cheaper * one.tokens)
    cost = total(more)
    return None if cost is None else MicroUsd(cost // 1_000_000)
