"""What-ifs that a person asks for: several changes on one task at once, and what the task would then take."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeGuard

from msgspec import Struct

from headway.core.budget import seconds
from headway.core.errors import BadInputError
from headway.core.money import MicroUsd, money
from headway.core.span import ModelCall, Retrieval, ToolUse
from headway.core.spent import Sum, added, summed
from headway.trace.change import Change
from headway.trace.levers.case import Case, case_of
from headway.trace.levers.lever import Saved, micro, part, spared
from headway.trace.levers.tools import at_once
from headway.trace.levers.turns import FAR, droppable, gap_left_alone, left_alone, thin_out, unwatched
from headway.trace.pace import writing_shares
from headway.trace.phases import DECODE, HOP, MODEL, PREFILL, QUEUE, RETRIEVAL, TOOL, Phase
from headway.trace.prices import PriceOf, price_for
from headway.trace.reuse import Reread, rereads
from headway.trace.study import Task


class Iterations(Struct, frozen=True):
    """That many iterations fewer, of average length; never the answer."""

    fewer: int


class Cache(Struct, frozen=True):
    """This share of what was read again comes from the cache."""

    share: float


class Parallel(Struct, frozen=True):
    """The tools of each response at once."""


class Faster(Struct, frozen=True):
    """Phases that last ``factor`` times as long."""

    phases: tuple[Phase, ...]
    factor: float


class Output(Struct, frozen=True):
    """Answers ``factor`` times as long."""

    factor: float


class Tool(Struct, frozen=True):
    """One tool, ``factor`` times as long or in this many seconds a use."""

    name: str
    factor: float | None
    seconds: float | None


class Model(Struct, frozen=True):
    """All calls to one model, ``factor`` times as long."""

    name: str
    factor: float


WhatIf = Iterations | Cache | Parallel | Faster | Output | Tool | Model


class Outcome(Struct, frozen=True, kw_only=True):
    """One task with all the changes. ``None`` is unknown."""

    before: float
    """E2E as recorded, seconds."""
    after: float | None
    """E2E of the replay; unknown where nothing that would change was timed apart."""
    tokens: int | None
    """Neither read nor written any more, or read from the cache instead of computed; negative: more of them."""
    cost: MicroUsd | None
    """Saved; negative: dearer."""
    tokens_least: int | None = None
    """What of the tokens saved is known, also where not all is; unknown where what is not known may be negative."""
    cost_least: MicroUsd | None = None
    notes: tuple[str, ...]
    """Plain sentences: what could not be done, what was guessed."""
    alike: tuple[str, ...] = ()
    """The same without the numbers of this task, for a set, where each is said once."""


_PHASES: Final[dict[str, tuple[Phase, ...]]] = {
    "tpot": (DECODE,),
    "decode": (DECODE,),
    "prefill": (PREFILL,),
    "ttft": (QUEUE, PREFILL),
    "queue": (QUEUE,),
    "hop": (HOP,),
    "model": (QUEUE, PREFILL, DECODE, MODEL),
    "tools": (TOOL, RETRIEVAL),
}
_FACTOR: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*x")
_SHARE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")
_FEWER: Final = re.compile(r"-\s*([0-9]+)")
_FIX: Final = (
    'Write e.g. "iterations -3", "cache 100%", "tools parallel", "tpot 0.5x", "prefill 0.5x", "queue 0x",'
    ' "output 0.5x", "tool:search 0.5x", "tool:search 0.4s" or "model:NAME 0.5x"; several with commas between.'
)


def parse(text: str) -> tuple[WhatIf, ...]:
    """Changes as a person writes them, with commas between.

    Raises:
        BadInputError: one of them is no change.
    """
    return tuple(_one(part.strip()) for part in text.split(","))


def _one(text: str) -> WhatIf:
    what, _, how = text.partition(" ")
    how = how.strip()
    if what == "iterations" and (match := _FEWER.fullmatch(how)):
        return Iterations(int(match[1]))
    if what == "cache" and (match := _SHARE.fullmatch(how)) and float(match[1]) <= 100:  # noqa: PLR2004 - per cent
        return Cache(float(match[1]) / 100)
    if (what, how) == ("tools", "parallel"):
        return Parallel()
    factor = float(match[1]) if (match := _FACTOR.fullmatch(how)) else None
    if what.startswith("tool:") and factor is None and how:
        return Tool(what.removeprefix("tool:"), None, seconds(how, f"--what-if {text!r}"))
    made = None if factor is None else _times(what, factor)
    if made is None:
        raise BadInputError(f"{text!r} is no change.", fix=_FIX)
    return made


def _times(what: str, factor: float) -> WhatIf | None:
    kind, _, name = what.partition(":")
    if kind == "tool" and name:
        return Tool(name, factor, None)
    if kind == "model" and name:
        return Model(name, factor)
    if what == "output":
        return Output(factor)
    return Faster(_PHASES[what], factor) if what in _PHASES else None


def what_if(task: Task, changes: Sequence[WhatIf], *, prices: PriceOf = price_for) -> Outcome:
    """Replay one task with all the changes together; dependencies stay as recorded.

    Args:
        task: all spans of one task, in any order and any state, or its study.
        changes: what to change; the order does not matter.
        prices: what tokens cost.
    """
    case = case_of(task, prices)
    change, notes = Change(case.study), _Notes()
    found, untold = _rereads(case, changes, notes)
    writing = _writing(case, changes, notes)
    _scale(case, change, changes, found, writing)
    if any(isinstance(one, Parallel) for one in changes):
        for sentence, alike in at_once(case, change).notes:
            notes.add(sentence, alike)
    if any(isinstance(one, Tool) or (isinstance(one, Faster) and TOOL in one.phases) for one in changes):
        stays, alike = gap_left_alone(case)
        if stays:
            notes.add(stays, alike)
    output = _product(one.factor for one in changes if isinstance(one, Output))
    left = _thinned(case, change, sum(one.fewer for one in changes if isinstance(one, Iterations)), notes)
    changed = _tokens(case, left, found, output)
    blind = Sum(0, 0, untold)
    spare = part(spared(case, left), 1 - min(left.values(), default=1.0))
    tokens, cost = added([changed.tokens, spare.tokens, blind]), added([changed.cost, spare.cost, blind])
    for sentence in _absent(case, changes, writing):
        notes.add(sentence)
    untimed = [_untimed(case, one, found, writing) for one in changes]
    return Outcome(
        before=case.study.e2e,
        after=None if untimed and all(untimed) else change.replayed(),
        tokens=tokens.exact,
        cost=money(cost.exact),
        tokens_least=tokens.exact if output > 1.0 else tokens.least,
        cost_least=money(cost.exact if output > 1.0 else cost.least),
        notes=tuple(notes.said),
        alike=tuple(notes.said.values()),
    )


class _Notes:
    """Sentences in order, each once, with how they read without this task's numbers."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    def add(self, sentence: str, alike: str = "") -> None:
        self.said.setdefault(sentence, alike or sentence)


def _thinned(case: Case, change: Change, fewer: int, notes: _Notes) -> dict[int, float]:
    """What share is left of each call that iterations taken out shorten; those that stay whole are not in it."""
    turns = droppable(case)
    number = min(fewer, len(turns))
    if number < fewer:
        why = "the answer stays, and so do a sub-agent's calls."
        notes.add(
            f"Only {number} of {fewer} iterations could go: {why}", f"Fewer than {fewer} iterations could go: {why}"
        )
    if not number:
        return {}
    if alone := left_alone(case):
        notes.add(alone, f"Iterations over {FAR} times as long as the median, most of the loop's time, stay.")
    left = thin_out(case, change, number)
    return {turn.call: left for turn in turns}


class _Cached(Struct, frozen=True):
    """One call's tokens, and how many of those read again a cache would have given."""

    reread: Reread
    given: float

    @property
    def left(self) -> float:
        """Share of its prefill that remains."""
        return 1 - self.given / self.reread.computed


def _rereads(case: Case, changes: Sequence[WhatIf], notes: _Notes) -> tuple[dict[int, _Cached], int]:
    """What a cache would give each call, and of how many calls that cannot be told."""
    shares = [one.share for one in changes if isinstance(one, Cache)]
    if not shares:
        return {}, 0
    found, untold = rereads(case.study)
    if untold:
        why = "read, or took from a cache, is not recorded: what a better cache would save on them is unknown."
        notes.add(f"What {untold:,} call{'s' * (untold > 1)} {why}", f"What some calls {why}")
    elif not found:
        notes.add("No call read anything again: a better cache would change nothing here.")
    return {i: _Cached(one, max(shares) * (one.computed - one.fresh)) for i, one in found.items()}, untold


def _scale(
    case: Case, change: Change, changes: Sequence[WhatIf], found: dict[int, _Cached], writing: dict[int, float]
) -> None:
    """All factors on a share multiply before it is changed, so that two halves make a quarter."""
    written = _product(one.factor for one in changes if isinstance(one, Output) or _of_writing(one))
    for phase, shares in case.shares.items():
        if shares:
            factor = _factor(case, phase, changes, found)
            if phase == MODEL and writing:
                change.scale(shares, lambda i, model=factor: model(i) * (1 - (1 - written) * writing.get(i, 0.0)))
            else:
                change.scale(shares, factor)


def _writing(case: Case, changes: Sequence[WhatIf], notes: _Notes) -> dict[int, float]:
    """What share of its unsplit time each call writes, where a change asks for that and it can be told."""
    if not any(isinstance(one, Output) or _of_writing(one) for one in changes):
        return {}
    writing = writing_shares(case.study)
    if writing:
        notes.add("Where the first token was not timed, writing is taken from how calls' time rises with their output.")
    return writing


def _of_writing(one: WhatIf) -> TypeGuard[Faster]:
    """Whether it makes writing quicker and leaves the rest of a call as it is."""
    return isinstance(one, Faster) and DECODE in one.phases and MODEL not in one.phases


def _factor(case: Case, phase: Phase, changes: Sequence[WhatIf], found: dict[int, _Cached]) -> Callable[[int], float]:
    common = _product(one.factor for one in changes if isinstance(one, Faster) and phase in one.phases)
    if phase == DECODE:
        common *= _product(one.factor for one in changes if isinstance(one, Output))
    models = [one for one in changes if isinstance(one, Model)] if phase in _PHASES["model"] else []
    tools = [one for one in changes if isinstance(one, Tool)] if phase in _PHASES["tools"] else []
    stay = unwatched(case) if phase == TOOL else frozenset[int]()

    def factor(i: int) -> float:
        if i in stay:
            return 1.0
        work = case.study.tree.spans[i].work
        made = common
        if isinstance(work, ModelCall):
            made *= _product(one.factor for one in models if one.name == work.model)
            if phase == PREFILL and i in found:
                made *= found[i].left
        elif tools:
            made *= _product(_of_tool(case, i, one) for one in tools if one.name == _name(work))
        return made

    return factor


def _of_tool(case: Case, i: int, one: Tool) -> float:
    if one.factor is not None:
        return one.factor
    took = case.study.held.hi[i] - case.study.held.lo[i]
    return (one.seconds or 0.0) / took if took else 1.0


def _name(work: object) -> str | None:
    match work:
        case ToolUse(name=name):
            return name
        case Retrieval(source=source):
            return source or "retrieval"
        case _:
            return None


def _untimed(case: Case, one: WhatIf, found: Mapping[int, _Cached], writing: Mapping[int, float]) -> bool:
    """Whether what a change would do to the time is hidden in calls whose phases were not timed apart."""
    if not case.shares[MODEL]:
        return False
    match one:
        case Faster(phases=phases):
            return MODEL not in phases and not {TOOL, HOP, *_there(case, writing)}.intersection(phases)
        case Output():
            return DECODE not in _there(case, writing)
        case Cache():
            return PREFILL not in _there(case, writing) or not found
        case _:
            return False


def _there(case: Case, writing: Mapping[int, float]) -> set[Phase]:
    """Phases that take time in the task and were timed apart."""
    return {phase for phase, shares in case.shares.items() if shares or (phase == DECODE and writing)}


def _absent(case: Case, changes: Sequence[WhatIf], writing: Mapping[int, float]) -> list[str]:
    works = [span.work for span in case.study.tree.spans]
    tools = {_name(work) for work in works}
    models = {work.model for work in works if isinstance(work, ModelCall)}
    absent = [f"tool:{one.name}" for one in changes if isinstance(one, Tool) and one.name not in tools]
    absent += [f"model:{one.name}" for one in changes if isinstance(one, Model) and one.name not in models]
    found = [f"{name} does not occur in this task." for name in absent]
    for one in changes:
        if isinstance(one, (Faster, Output)):
            phases = one.phases if isinstance(one, Faster) else (DECODE,)
            named = " and ".join(phases)
            if _untimed(case, one, {}, writing):
                were = "were" if len(phases) > 1 else "was"
                found.append(f"{named} {were} not timed apart in this task: what that would save is unknown.")
            elif _there(case, writing).isdisjoint(phases):
                found.append(f"{named} {'do' if len(phases) > 1 else 'does'} not occur in this task.")
    return found


def _tokens(case: Case, left: Mapping[int, float], found: Mapping[int, _Cached], output: float) -> Saved:
    """Tokens and money that the calls, or what is left of them, no longer take."""
    counts, costs = list[int | None](), list[int | None]()
    for i in case.study.held.calls:
        span, call = case.call(i)
        price, stays = case.prices(call, span.start), left.get(i, 1.0)
        if output != 1.0 and stays:
            written = call.usage.output_tokens
            less = None if written is None else round(written * (1 - output) * stays)
            counts.append(less)
            costs.append(None if price is None or less is None else less * price.output)
        if i in found and stays:
            given = found[i].given * stays
            counts.append(round(given))
            cheaper = None if price is None or price.cache_read is None else price.input - price.cache_read
            costs.append(None if cheaper is None else round(given * cheaper))
    return Saved(summed(counts), micro(costs))


def _product(factors: Iterable[float]) -> float:
    made = 1.0
    for factor in factors:
        made *= factor
    return made
