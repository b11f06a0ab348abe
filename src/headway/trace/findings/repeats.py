"""The same tool called again with the same arguments, and loops that get nowhere by it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from headway.core.span import ToolUse
from headway.trace.ended import failed
from headway.trace.findings.case import Case
from headway.trace.findings.figures import named, plural
from headway.trace.findings.finding import Finding

POLLS: Final = 3
"""Turns in all: two may be a look before and after."""
STANDSTILL: Final = 2
"""Turns in a row that bring nothing new: one alone may be a second look."""

Signature = tuple[tuple[str, str, str], ...]
"""Of a turn: name, arguments and result of each of its tools; or its answer."""


def repeated_tools(case: Case) -> Iterable[Finding]:
    """Same tool, same arguments, and (where results are kept) the same result."""
    again: list[int] = []
    told: list[int] = []
    for uses in _groups(case):
        for earlier, i in pairwise(uses):
            a, b = _result(case, earlier), _result(case, i)
            if a is None or b is None:
                again.append(i)
            elif a == b:
                again.append(i)
                told.append(i)
    if not again:
        return
    whole = len(told) == len(again)
    spent = case.path_seconds(again)
    yield Finding(
        name="repeated-tools",
        title=f"{plural(len(again), 'tool call')} had been made before with the same arguments"
        + (", and brought the same result again" if whole else "")
        + case.ending(spent),
        seconds=spent,
        confidence="likely" if whole else "possible",
        evidence=(
            f"Again: {named(case.span(i).name for i in again)}.",
            f"Of {len(again):,} repeats, {len(told):,} are known to have brought the result of the time before"
            + ("." if whole else "; the results of the others are not in the record."),
        ),
        check="See whether something that they depend on could have changed in between: a test run after an edit is no"
        " waste.",
        remedy="Tell the model which results it already has; keep the results of tools that only read, and let one that"
        " was to change something say why nothing came of it.",
        spans=case.ids(again),
    )


def polled_tools(case: Case) -> Iterable[Finding]:
    """Turn after turn asks the same tool the same and gets another result: it waits for something to be done."""
    polls = [(call, i) for chat in case.chats for run in _polls(case, chat) for call, i in run[1:]]
    if not polls:
        return
    calls = [call for call, _ in polls]
    tools = [i for _, i in polls]
    spent = case.path_seconds([*calls, *tools])
    yield Finding(
        name="polled-tools",
        title=f"{plural(len(polls), 'turn')} only asked again what the turn before had asked, and got another answer"
        + case.ending(spent),
        seconds=spent,
        **case.took(calls),
        confidence="likely",
        evidence=(f"Same arguments, another result each time: {named(case.span(i).name for i in tools)}.",),
        check="See what they wait for, and how long that takes.",
        remedy="Let one tool call wait until the work is done, instead of a model call for every look.",
        spans=case.ids([*calls, *tools]),
    )


def _polls(case: Case, chat: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """Runs of turns, each a call and its only tool, that ask the same; the first of a run is no repeat."""
    run: list[tuple[int, int]] = []
    for call in chat:
        tools = case.issued.get(call, [])
        here = (call, tools[0]) if len(tools) == len(case.call(call).tool_calls) == 1 else None
        if here and run and _asks_again(case, run[-1][1], here[1]):
            run.append(here)
            continue
        if len(run) >= POLLS:
            yield run
        run = [here] if here else []
    if len(run) >= POLLS:
        yield run


def _asks_again(case: Case, before: int, after: int) -> bool:
    a, b = case.span(before).work, case.span(after).work
    if not isinstance(a, ToolUse) or not isinstance(b, ToolUse) or a.arguments is None:
        return False
    results = _result(case, before), _result(case, after)
    return (a.name, a.arguments) == (b.name, b.arguments) and None not in results and results[0] != results[1]


def standstill(case: Case) -> Iterable[Finding]:
    """Turns in a row that each do what an earlier turn did, with the same outcome."""
    stuck: list[int] = []
    longest = 0
    for chat in case.chats:
        for run in _runs(case, chat):
            stuck += run
            longest = max(longest, len(run))
    if not stuck:
        return
    tools = [i for call in stuck for i in case.issued.get(call, ())]
    spent = case.path_seconds([*stuck, *tools])
    yield Finding(
        name="no-progress",
        title=f"The loop makes no progress: {plural(len(stuck), 'turn')} only repeat earlier ones, outcome and all"
        + case.ending(spent),
        seconds=spent,
        **case.took(stuck),
        confidence="likely",
        evidence=(
            f"At most {longest:,} in a row; what they call: {named(case.span(i).name for i in tools)}."
            if tools
            else f"At most {longest:,} in a row; they give an answer that already stands in their prompt.",
        ),
        check="Read the turns: the same call must bring the same result, and nothing else may have happened.",
        remedy="Stop a task whose turns repeat (limit its steps), or tell the model that it has tried this already.",
        spans=case.ids([*stuck, *tools]),
    )


def _groups(case: Case) -> Iterator[list[int]]:
    """Uses with one name and the same arguments, in order of start; failed ones are another matter (see `failures`)."""
    groups: dict[tuple[str, str], list[int]] = {}
    for i, tool in case.tools():
        if tool.arguments is not None and not failed(case.span(i)):
            groups.setdefault((tool.name, tool.arguments), []).append(i)
    return (uses for uses in groups.values() if len(uses) > 1)


def _result(case: Case, i: int) -> str | None:
    """Its digest; an empty one says as little as none."""
    work = case.span(i).work
    return work.result.digest if isinstance(work, ToolUse) and work.result and work.result.chars else None


def _runs(case: Case, chat: Sequence[int]) -> Iterator[list[int]]:
    seen: set[Signature] = set()
    run: list[int] = []
    for i in chat:
        signature = _signature(case, i)
        if signature is not None and signature in seen:
            run.append(i)
            continue
        if len(run) >= STANDSTILL:
            yield run
        run = []
        if signature is not None:
            seen.add(signature)
    if len(run) >= STANDSTILL:
        yield run


def _signature(case: Case, i: int) -> Signature | None:
    """None where it is not known what the turn did and brought, so it may be something new."""
    call, tools = case.call(i), case.issued.get(i, [])
    if not tools:
        said = call.answer
        if call.tool_calls or said is None or not said.chars:
            return None
        again = any(part.digest == said.digest for part in call.prompt or ())
        return (("", said.digest, ""),) if again else None
    if len(tools) < len(call.tool_calls):
        return None
    found: list[tuple[str, str, str]] = []
    for tool in tools:
        work = case.span(tool).work
        if not isinstance(work, ToolUse) or work.arguments is None or work.result is None:
            return None
        found.append((work.name, work.arguments, work.result.digest))
    return tuple(sorted(found))
