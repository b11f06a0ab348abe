"""Large outputs that nobody reads: they cost time and tokens and appear in no later prompt."""

from collections.abc import Iterable, Iterator
from typing import Final

from headway.core.money import MicroUsd
from headway.core.span import ToolUse
from headway.trace.findings.case import Case, total
from headway.trace.findings.figures import named, plural, seconds, share
from headway.trace.findings.finding import Finding
from headway.trace.phases import DECODE

LARGE: Final = 400
"""Characters, about a hundred tokens; a shorter answer costs little."""

HUGE: Final = 10_000
"""Characters of a tool's result; agents that cut results cut them at about that length or more."""


def unread_answers(case: Case) -> Iterable[Finding]:
    """Answers that the conversation went on without: the next prompt begins as theirs did, but they are not in it."""
    unread = [i for chat in case.chats for i in _dropped(case, chat)]
    if not unread:
        return
    written = total([case.call(i).usage.output_tokens for i in unread])
    spent = sum(case.spent(i, DECODE) for i in unread) if case.timed else 0.0
    chars = sum(answer.chars for i in unread if (answer := case.call(i).answer) is not None)
    size = f"{written:,} tokens" if written is not None else f"{chars:,} characters"
    yield Finding(
        name="unread-answers",
        title=f"{plural(len(unread), 'answer')} of {size} appear in no later prompt: the conversation went on without"
        " them.",
        seconds=spent or None,
        cost=_written(case, unread),
        tokens=written,
        confidence="likely",
        evidence=(
            (
                f"Not read again: {named(case.span(i).name for i in unread)}. The prompts after them begin word for"
                " word as theirs did."
            ),
            *((f"Writing them took {seconds(spent)} of the path ({share(spent, case.e2e)} of E2E).",) if spent else ()),
        ),
        check="See whether the agent shows them to the user or keeps them elsewhere; if not, nobody read them.",
        remedy="Do not ask for what is thrown away: use a schema, lower max_tokens, or mend what makes the agent reject"
        " the answer (lever: half the output).",
        spans=case.ids(unread),
    )


def unread_results(case: Case) -> Iterable[Finding]:
    """Large tool results that reach no later prompt whole, in a record in which others do."""
    cut = [i for chat in case.chats for i in _cut(case, chat)]
    if not cut:
        return
    sizes = {i: work.result.chars for i in cut if isinstance(work := case.span(i).work, ToolUse) and work.result}
    yield Finding(
        name="unread-results",
        title=f"{plural(len(cut), 'tool result')} of {sum(sizes.values()):,} characters in all reached no later prompt"
        " as they were: cut short or dropped.",
        confidence="possible",
        evidence=(
            f"From {named(case.span(i).name for i in cut)}; the largest has {max(sizes.values()):,} characters.",
            "Other results of this task do stand in later prompts, word for word.",
        ),
        check="Look for them in the prompt after: is a part of them there, or nothing?",
        remedy="Let the tool return what fits (a page, a summary, the lines that match) instead of cutting its result.",
        spans=case.ids(cut),
    )


def _cut(case: Case, chat: list[int]) -> list[int]:
    """Large results that are in no later prompt of the chat; none where no result at all is found in one."""
    seen: set[str] = set()
    found, missing = 0, list[int]()
    for i in reversed(chat):
        for tool in case.issued.get(i, ()) if seen else ():
            work = case.span(tool).work
            result = work.result if isinstance(work, ToolUse) else None
            if result is None or not result.chars:
                continue
            if result.digest in seen:
                found += 1
            elif result.chars >= HUGE:
                missing.append(tool)
        seen.update(part.digest for part in case.call(i).prompt or ())
    return missing if found else []


def _dropped(case: Case, chat: list[int]) -> Iterator[int]:
    last, longest = _appearances(case, chat)
    for k, i in enumerate(chat[:-1]):
        call, after = case.call(i), case.call(chat[k + 1])
        if call.answer is None or call.answer.chars < LARGE or not call.prompt or after.prompt is None:
            continue
        if call.tool_calls or case.span(i).error is not None or after.prompt[: len(call.prompt)] != call.prompt:
            continue
        if last.get(call.answer.digest, -1) <= k and longest[k + 1] < call.answer.chars:
            yield i


def _appearances(case: Case, chat: list[int]) -> tuple[dict[str, int], list[int]]:
    """In which call of the chat a message was read last; and how long the longest is that is new from a call on.

    Whatever is new and no shorter than an answer may quote it.
    """
    last: dict[str, int] = {}
    longest = [0] * len(chat)
    for k, i in enumerate(chat):
        for part in case.call(i).prompt or ():
            if part.digest not in last:
                longest[k] = max(longest[k], part.chars)
            last[part.digest] = k
    for k in range(len(chat) - 2, -1, -1):
        longest[k] = max(longest[k], longest[k + 1])
    return last, longest


def _written(case: Case, calls: Iterable[int]) -> MicroUsd | None:
    parts: list[int | None] = []
    for i in calls:
        price, out = case.prices(case.call(i), case.span(i).start), case.call(i).usage.output_tokens
        parts.append(None if price is None or out is None else price.output * out)
    cost = total(parts)
    return None if cost is None else MicroUsd(cost // 1_000_000)
