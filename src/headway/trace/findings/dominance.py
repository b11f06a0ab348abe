"""The model is blamed, but its tools or the number of its calls take the time."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from headway.core.span import Retrieval, ToolUse
from headway.trace.findings.case import Case
from headway.trace.findings.figures import plural, ranked, seconds, share
from headway.trace.findings.finding import Finding
from headway.trace.path import Stretch
from headway.trace.phases import DECODE, MODEL, PREFILL, QUEUE, RETRIEVAL, TOOL

HALF: Final = 0.5
"""Of E2E: what takes as much as all else together dominates."""
MORE: Final = 1.5
"""Tools / model: where the model takes nearly as much, a faster one would help as well."""
MANY: Final = 8
"""Iterations; half of all recorded coding tasks take 6 or fewer, so more than that is a long loop."""
FEW: Final = 3
"""How many times as long as the others' median a turn is that stands out of them."""
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
    """One turn takes at least half of the path, and several times what the others take."""
    turns = case.study.turns
    if not case.timed or len(turns) < 2:  # noqa: PLR2004 - the one and another
        return
    slow = max(turns, key=lambda turn: turn.seconds)
    usual = median(turn.seconds for turn in turns if turn is not slow)
    if slow.seconds < HALF * case.e2e or slow.seconds < FEW * usual:
        return
    if len(turns) == 2 and case.spent(slow.call) < HALF * case.e2e:  # noqa: PLR2004 - what its tools take is told anyway
        return
    parts: dict[str, float] = {}
    for stretch in slow.stretches:
        name = _named(case, stretch)
        parts[name] = parts.get(name, 0.0) + stretch.seconds
    others = "the median of the others" if len(turns) > 2 else "the other"  # noqa: PLR2004 - the one and another
    yield Finding(
        name="one-turn-dominates",
        title=f"One of {len(turns):,} turns takes {seconds(slow.seconds)} of the {seconds(case.e2e)}"
        f" ({share(slow.seconds, case.e2e)}); {others} takes {seconds(usual)}.",
        seconds=slow.seconds,
        **case.took([slow.call]),
        confidence="certain" if _watched(case, {stretch.owner for stretch in slow.stretches}) else "likely",
        evidence=(
            (
                f"It begins {seconds(slow.stretches[0].start)} after the task's start, with"
                f" {case.span(slow.call).name}, and is made of {ranked(parts)}."
            ),
            *_beside(case, slow.call, [turn.call for turn in turns if turn is not slow]),
        ),
        check="Look at that turn alone: is it the length of its answer, its prompt, a wait, or its tools?",
        remedy="Mend that turn first: the others together are less than it.",
        spans=case.ids({stretch.owner for stretch in slow.stretches}),
    )


def _named(case: Case, stretch: Stretch) -> str:
    """Whose time it is; a task that the record does not have as a span is no part of itself."""
    if stretch.is_gap and stretch.node in case.study.paused:
        return "pauses after failed attempts"
    return "hops" if not stretch.owner and case.study.tree.made_root else case.span(stretch.owner).name


def _beside(case: Case, slow: int, others: Sequence[int]) -> Iterable[str]:
    """What the slow turn's call read and wrote, and what the others' did, where it is known of all."""
    counts = [(case.call(i).usage.input_tokens, case.call(i).usage.output_tokens) for i in (slow, *others)]
    known = [(read, wrote) for read, wrote in counts if read is not None and wrote is not None]
    if len(known) == len(counts):
        (read, wrote), rest = known[0], known[1:]
        usual = f"{median(tokens for tokens, _ in rest):,.0f}", f"{median(tokens for _, tokens in rest):,.0f}"
        yield f"Its call reads {read:,} tokens and writes {wrote:,}; " + (
            f"the others read {usual[0]} and write {usual[1]} (median)."
            if len(rest) > 1
            else f"the other reads {usual[0]} and writes {usual[1]}."
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
        title=f"It is the number of turns, not any one: {len(turns):,} of {seconds(spent / len(turns))} on average make"
        f" up {share(spent, case.e2e)} of the {seconds(case.e2e)}.",
        seconds=sum(lengths[:-1]),
        **case.took(turn.call for turn in turns[:-1]),
        confidence="certain",
        evidence=(
            f"The slowest turn takes {seconds(slowest)}, {share(slowest, case.e2e)} of E2E.",
            f"Their calls take {seconds(model)}, {seconds(model / len(turns))} each; the rest is tools and hops.",
            f"The median turn takes {seconds(usual)}; turns x their average = {seconds(spent)}.",
            *_asked(case, [turn.call for turn in turns]),
        ),
        check="Compare tasks of the same kind: E2E should rise in step with their number of calls.",
        remedy=_fewer(case, [turn.call for turn in turns]) + " (lever: one iteration fewer).",
        spans=case.ids(turn.call for turn in turns),
    )


def many_turns(case: Case) -> Iterable[Finding]:
    """Many calls of one conversation, in a record that does not say how long any of them took."""
    chat = max(case.chats, key=len, default=list[int]())
    if case.verdict.timed or len(chat) < MANY or not all(_waits(case, a, b) for a, b in pairwise(chat)):
        return
    yield Finding(
        name="many-turns",
        title=f"The task takes {len(chat):,} model calls one after another: however long one takes, they add up.",
        **case.took(chat[:-1]),
        confidence="certain",
        evidence=("Each call goes on from the one before it, so none can be made sooner.", *_asked(case, chat)),
        check="Compare tasks of the same kind: which of their calls did the result need?",
        remedy=_fewer(case, chat) + ".",
        spans=case.ids(chat),
    )


def _waits(case: Case, before: int, after: int) -> bool:
    """Whether a call's prompt goes on from an earlier one's, or the earlier one asked for a tool."""
    a, b = case.call(before), case.call(after)
    if before in case.issued or a.tool_calls:
        return True
    return (
        bool(a.prompt)
        and b.prompt is not None
        and len(b.prompt) > len(a.prompt)
        and b.prompt[: len(a.prompt)] == a.prompt
    )


def _asked(case: Case, calls: Sequence[int]) -> Iterable[str]:
    """How many tools a turn asks for, where any does."""
    tools = [len(case.issued.get(i, ())) or len(case.call(i).tool_calls) for i in calls]
    if asking := sum(map(bool, tools)):
        yield f"Of {plural(asking, 'turn')} that ask for tools, {tools.count(1):,} ask for just one."


def _fewer(case: Case, calls: Sequence[int]) -> str:
    tools = [len(case.issued.get(i, ())) or len(case.call(i).tool_calls) for i in calls]
    several = sum(count > 1 for count in tools) > HALF * sum(map(bool, tools))
    ask = "" if several else "ask for several tools in one response, "
    return f"Give the first prompt what the loop goes to look for, {ask}limit the steps"
