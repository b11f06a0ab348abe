"""The model is blamed, but its tools or the number of its calls take the time."""

from collections.abc import Iterable
from statistics import median
from typing import Final

from headway.core.span import Retrieval, ToolUse
from headway.trace.findings.case import Case
from headway.trace.findings.figures import ranked, seconds, share, times
from headway.trace.findings.finding import Finding
from headway.trace.phases import DECODE, MODEL, PREFILL, QUEUE, RETRIEVAL, TOOL

HALF: Final = 0.5
"""Of E2E: what takes as much as all else together dominates."""
MORE: Final = 1.5
"""Tools / model: where the model takes nearly as much, a faster one would help as well."""
MANY: Final = 8
"""Iterations; half of all recorded coding tasks take 6 or fewer, so more than that is a long loop."""
FEW: Final = 3
"""Turns, and how many times the median the slowest is: it stands out of them."""
ONE: Final = 0.25
"""Of E2E: a turn that takes more is a slow turn, whatever the number of turns."""
MODEL_TIME: Final = (QUEUE, PREFILL, DECODE, MODEL)


def tools_dominate(case: Case) -> Iterable[Finding]:
    """Tools and retrievals take at least half of the path, and clearly more than the model."""
    if not case.timed:
        return
    phases = case.anatomy.phases
    spent = sum(phases.get(phase, 0.0) for phase in (TOOL, RETRIEVAL))
    model = sum(phases.get(phase, 0.0) for phase in MODEL_TIME)
    if spent < HALF * case.e2e or spent < MORE * model:
        return
    by_name: dict[str, float] = {}
    there: dict[int, float] = {}
    for i in case.on_path:
        work = case.span(i).work
        took = case.spent(i, TOOL, RETRIEVAL)
        if took and isinstance(work, ToolUse | Retrieval):
            there[i] = took
            name = case.span(i).name
            by_name[name] = by_name.get(name, 0.0) + took
    watched = _watched(case, there)
    what = "Tools take" if watched else "What lies between the calls takes"
    yield Finding(
        name="tools-dominate",
        title=f"{what} {share(spent, case.e2e)} of the {seconds(case.e2e)}, the model {share(model, case.e2e)}:"
        " look there before the model.",
        seconds=spent,
        confidence="certain" if watched else "likely",
        evidence=(
            f"On the critical path: tools {seconds(spent)}, model {seconds(model)}.",
            f"By name: {ranked(by_name)}.",
            *_unwatched(watched=watched),
        ),
        check="Time the slowest of them alone, outside the agent."
        if watched
        else "Record each tool's own start and end, which tells its time from the agent's own code.",
        remedy="Make the slowest tool faster, cache its results, or run tools side by side (levers: tools twice as"
        " fast, tools in parallel).",
        spans=case.ids(sorted(there, key=lambda i: -there[i])[:MANY]),
    )


def _watched(case: Case, these: Iterable[int]) -> bool:
    """Whether all tools among them were timed where they ran."""
    return all(case.watched(i) for i in these if case.study.tree.kinds[i] is ToolUse)


def _unwatched(*, watched: bool) -> tuple[str, ...]:
    gap = (
        "Not all tools were timed where they ran: between an answer and the next request lie the agent's own code and"
        " people's approvals too."
    )
    return () if watched else (gap,)


def one_turn_dominates(case: Case) -> Iterable[Finding]:
    """Of several turns one takes at least half of the path, and several times what the others take."""
    turns = case.study.turns
    if not case.timed or len(turns) < FEW:
        return
    slow = max(turns, key=lambda turn: turn.seconds)
    usual = median(turn.seconds for turn in turns)
    if slow.seconds < HALF * case.e2e or slow.seconds < FEW * usual:
        return
    parts: dict[str, float] = {}
    for stretch in slow.stretches:
        name = case.span(stretch.owner).name
        parts[name] = parts.get(name, 0.0) + stretch.seconds
    yield Finding(
        name="one-turn-dominates",
        title=f"One of {len(turns):,} turns takes {seconds(slow.seconds)} of the {seconds(case.e2e)}"
        f" ({share(slow.seconds, case.e2e)}); the median turn takes {seconds(usual)}.",
        seconds=slow.seconds,
        cost=case.charged([slow.call]),
        tokens=case.tokens([slow.call]),
        confidence="certain" if _watched(case, {stretch.owner for stretch in slow.stretches}) else "likely",
        evidence=(
            (
                f"It begins {seconds(case.study.held.lo[slow.call])} after the task's start, with"
                f" {case.span(slow.call).name}, and is made of {ranked(parts)}."
            ),
        ),
        check="Look at that turn alone: is it the length of its answer, its prompt, a wait, or its tools?",
        remedy="Mend that turn first: the others together are less than it.",
        spans=case.ids({stretch.owner for stretch in slow.stretches}),
    )


def iterations_dominate(case: Case) -> Iterable[Finding]:
    """Many turns, none of them slow, take at least half of the path."""
    turns = case.study.turns
    if not case.timed or len(turns) < MANY:
        return
    lengths = [turn.seconds for turn in turns]
    spent, slowest = sum(lengths), max(lengths)
    if spent < HALF * case.e2e or slowest > ONE * case.e2e:
        return
    usual = median(lengths)
    model = sum(case.spent(turn.call, *MODEL_TIME) for turn in turns)
    yield Finding(
        name="iterations-dominate",
        title=f"It is the number of turns, not any one: {len(turns):,} of {seconds(usual)} (median) make up"
        f" {share(spent, case.e2e)} of the {seconds(case.e2e)}.",
        seconds=sum(lengths[:-1]),
        cost=case.charged(turn.call for turn in turns[:-1]),
        tokens=case.tokens(turn.call for turn in turns[:-1]),
        confidence="certain",
        evidence=(
            f"The slowest turn takes {seconds(slowest)}, {share(slowest, case.e2e)} of E2E.",
            f"Their calls take {seconds(model)}, {seconds(model / len(turns))} each; the rest is tools and hops.",
            f"E2E = N x time per turn: {times(case.e2e / usual)} of the median turn make this task."
            if usual
            else "Half of the turns take no measurable time.",
        ),
        check="Compare tasks of the same kind: E2E should rise in step with their number of calls.",
        remedy="Give the first prompt what the loop goes to look for, ask for several tools in one response, limit the"
        " steps (lever: one iteration fewer).",
        spans=case.ids(turn.call for turn in turns),
    )
