"""What-ifs that a person asks for: several changes on one task at once, and what the task would then take."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeGuard

from msgspec import Struct

from headway.core.money import MicroUsd, money
from headway.core.span import ModelCall, Retrieval, ToolUse
from headway.core.spent import Sum
from headway.trace.change import Change
from headway.trace.levers.case import Case, case_of
from headway.trace.levers.lever import Saved, at_most, rounded_down, spared
from headway.trace.levers.tools import at_once
from headway.trace.levers.turns import FAR, droppable, gap_left_alone, left_alone, thin_out, unwatched
from headway.trace.pace import writing_shares
from headway.trace.phases import DECODE, HOP, MODEL, PREFILL, TOOL, Phase
from headway.trace.prices import PriceOf, price_for
from headway.trace.reuse import Reread, rereads
from headway.trace.study import Task
from headway.trace.whatif_text import PHASES, Cache, Faster, Iterations, Model, Output, Parallel, Tool, WhatIf


class Outcome(Struct, frozen=True, kw_only=True):
    """One task with all the changes. ``None`` is unknown."""

    before: float
    """E2E as recorded, seconds."""
    after: float | None
    """E2E of the replay; unknown where nothing that would change was timed apart."""
    partly: bool = False
    """Whether it leaves out what some of the changes would do, because that is unknown."""
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


def what_if(task: Task, changes: Sequence[WhatIf], *, prices: PriceOf = price_for) -> Outcome:
    """Replay one task with all the changes together; dependencies stay as recorded.

    Args:
        task: all spans of one task, in any order and any state, or its study.
        changes: what to change; the order does not matter.
        prices: what tokens cost.
    """
    case = case_of(task, prices)
    change, notes = Change(case.study), _Notes()
    fewer = _fewer(case, changes, notes)
    left = _left(case, fewer)
    found, untold = _rereads(case, changes, left, notes)
    writing = _writing(case, changes, notes)
    _scale(case, change, changes, found, writing)
    if any(isinstance(one, Parallel) for one in changes):
        for sentence, alike in at_once(case, change).notes:
            notes.add(sentence, alike)
    if any(isinstance(one, Tool) or (isinstance(one, Faster) and TOOL in one.phases) for one in changes):
        stays, alike = gap_left_alone(case)
        if stays:
            notes.add(stays, alike)
    if fewer:
        thin_out(case, change, fewer)
    saved = _saved(case, left, found, untold, _output(changes), notes)
    for sentence in _absent(case, changes, writing):
        notes.add(sentence)
    untimed = [
        _uncached(case, found, untold) if isinstance(one, Cache) else _untimed(case, one, writing) for one in changes
    ]
    return Outcome(
        before=case.study.e2e,
        after=None if untimed and all(untimed) else change.replayed(),
        partly=any(untimed) and not all(untimed),
        tokens=saved.tokens.exact,
        cost=money(saved.cost.exact),
        tokens_least=saved.tokens.exact if longer_answers(changes) else saved.tokens.least,
        cost_least=money(saved.cost.exact if longer_answers(changes) else saved.cost.least),
        notes=tuple(notes.said),
        alike=tuple(notes.said.values()),
    )


class _Notes:
    """Sentences in order, each once, with how they read without this task's numbers."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    def add(self, sentence: str, alike: str = "") -> None:
        self.said.setdefault(sentence, alike or sentence)


def _fewer(case: Case, changes: Sequence[WhatIf], notes: _Notes) -> int:
    """How many iterations are taken out."""
    turns, fewer = droppable(case), sum(one.fewer for one in changes if isinstance(one, Iterations))
    number = min(fewer, len(turns))
    if number < fewer:
        why = "the answer stays, and so do a sub-agent's calls."
        could = f"Only {number} of {_counted(fewer, 'iteration')}" if number else "No iteration"
        alike = f"Fewer than {fewer} iterations" if fewer > 1 else "No iteration"
        notes.add(f"{could} could go: {why}", f"{alike} could go: {why}")
    if number and (alone := left_alone(case)):
        notes.add(alone, f"Iterations over {FAR} times as long as the median, most of the loop's time, stay.")
    return number


def _left(case: Case, fewer: int) -> dict[int, float]:
    """What share is left of each call that iterations taken out shorten; those that stay whole are not in it."""
    turns = droppable(case) if fewer else []
    return {turn.call: 1 - fewer / len(turns) for turn in turns}


class _Cached(Struct, frozen=True):
    """One call's tokens, and how many of those read again a cache would give what is left of it."""

    reread: Reread
    given: float

    @property
    def left(self) -> float:
        """Share of its prefill that remains."""
        return 1 - self.given / self.reread.computed


def _rereads(
    case: Case, changes: Sequence[WhatIf], left: Mapping[int, float], notes: _Notes
) -> tuple[dict[int, _Cached], int]:
    """What a cache would give each call, and of how many calls that cannot be told.

    Where the call before it is taken out, nothing is read again: of calls thinned out, as many are as have one left.
    """
    shares = [one.share for one in changes if isinstance(one, Cache)]
    if not shares:
        return {}, 0
    found, untold = rereads(case.study)
    if untold:
        why = "read, or took from a cache, is not recorded: what a better cache would save on them is unknown."
        notes.add(f"What {_counted(untold, 'call')} {why}", f"What some calls {why}")
    elif not found:
        notes.add("No call read anything again: a better cache would change nothing here.")
    made: dict[int, _Cached] = {}
    for i, one in found.items():
        stays = left.get(i, 1.0)
        going_on = min(stays, left.get(one.before, 1.0)) / stays if stays else 0.0
        made[i] = _Cached(one, max(shares) * going_on * (one.computed - one.fresh))
    return made, untold


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


def longer_answers(changes: Sequence[WhatIf]) -> bool:
    """Whether they make answers longer: then what is not known may be lost, and what is known bounds nothing."""
    return _output(changes) > 1.0


def _output(changes: Sequence[WhatIf]) -> float:
    """How many times as long answers are; those that broke off stay, for they would have broken off all the same."""
    return _product(one.factor for one in changes if isinstance(one, Output))


def _of_writing(one: WhatIf) -> TypeGuard[Faster]:
    """Whether it makes writing quicker and leaves the rest of a call as it is."""
    return isinstance(one, Faster) and DECODE in one.phases and MODEL not in one.phases


def _factor(case: Case, phase: Phase, changes: Sequence[WhatIf], found: dict[int, _Cached]) -> Callable[[int], float]:
    common = _product(one.factor for one in changes if isinstance(one, Faster) and phase in one.phases)
    written = _output(changes) if phase == DECODE else 1.0
    models = [one for one in changes if isinstance(one, Model)] if phase in PHASES["model"] else []
    tools = [one for one in changes if isinstance(one, Tool)] if phase in PHASES["tools"] else []
    stay = unwatched(case) if phase == TOOL else frozenset[int]()

    def factor(i: int) -> float:
        if i in stay:
            return 1.0
        work = case.study.tree.spans[i].work
        made = common
        if isinstance(work, ModelCall):
            made *= _product(one.factor for one in models if one.name == work.model)
            if case.study.tree.spans[i].error is None:
                made *= written
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


def _uncached(case: Case, found: Mapping[int, _Cached], untold: int) -> bool:
    """The same of a better cache: what no call reads again takes no time, whether reading was timed or not."""
    return PREFILL not in _there(case, {}) if found else untold > 0


def _untimed(case: Case, one: WhatIf, writing: Mapping[int, float]) -> bool:
    """Whether what a change would do to the time is hidden in calls whose phases were not timed apart."""
    if not case.shares[MODEL]:
        return False
    match one:
        case Faster(phases=phases):
            return MODEL not in phases and not {TOOL, HOP, *_there(case, writing)}.intersection(phases)
        case Output():
            return DECODE not in _there(case, writing)
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
            if _untimed(case, one, writing):
                were = "were" if len(phases) > 1 else "was"
                found.append(f"{named} {were} not timed apart in this task: what that would save is unknown.")
            elif _there(case, writing).isdisjoint(phases):
                found.append(f"{named} {'do' if len(phases) > 1 else 'does'} not occur in this task.")
    return found


def _saved(
    case: Case, left: Mapping[int, float], found: Mapping[int, _Cached], untold: int, output: float, notes: _Notes
) -> Saved:
    """Tokens and money that calls taken out, and what is left of the others, no longer take; rounded down once."""
    tokens, paid, apart = list[float | None](), list[float | None](), 0
    for i in case.study.held.calls:
        span, call = case.call(i)
        price, stays = case.prices(call, span.start), left.get(i, 1.0)
        rows = list[tuple[float | None, int | None]]()
        if output != 1.0 and stays and span.error is None:
            written = call.usage.output_tokens
            less = None if written is None else written * (1 - output) * stays
            rows.append((less, None if price is None else price.output))
        if i in found and stays:
            rows.append((found[i].given * stays, None if price is None else price.cheaper))
        apart += bool(rows) and price is None and call.cost is not None
        tokens += [count for count, _ in rows]
        paid += [None if count is None or each is None else count * each / 1_000_000 for count, each in rows]
    if apart:
        why = "would save in money is unknown: their cost is on record, and no known price comes to it."
        notes.add(f"What fewer tokens of {_counted(apart, 'call')} {why}", f"What fewer tokens of some calls {why}")
    gone, share = spared(case, left), 1 - min(left.values(), default=1.0)
    return Saved(
        _with(gone.tokens, share, tokens, untold),
        at_most(_with(gone.cost, share, paid, untold), case.paid),
    )


def _with(gone: Sum, share: float, others: Sequence[float | None], untold: int) -> Sum:
    """That share of what is gone, and others, of which some are not known and ``untold`` more are not even listed."""
    known = [one for one in others if one is not None]
    return Sum(rounded_down(gone.total * share + sum(known)), gone.known + len(known), gone.of + len(others) + untold)


def _counted(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def _product(factors: Iterable[float]) -> float:
    made = 1.0
    for factor in factors:
        made *= factor
    return made
