"""Large outputs that nobody reads: they cost time and tokens and appear in no later prompt."""

from collections.abc import Iterable, Iterator
from typing import Final

from headway.core.money import MicroUsd
from headway.trace.findings.case import Case, total
from headway.trace.findings.figures import named, plural, seconds, share
from headway.trace.findings.finding import Finding
from headway.trace.phases import DECODE

LARGE: Final = 400
"""Characters, about a hundred tokens; a shorter answer costs little."""


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


def _dropped(case: Case, chat: list[int]) -> Iterator[int]:
    for k, i in enumerate(chat[:-1]):
        call, after = case.call(i), case.call(chat[k + 1])
        if call.answer is None or call.answer.chars < LARGE or not call.prompt or after.prompt is None:
            continue
        if call.tool_calls or case.span(i).error is not None or after.prompt[: len(call.prompt)] != call.prompt:
            continue
        later = (part for j in chat[k + 1 :] for part in case.call(j).prompt or ())
        if not any(_holds(part.digest, part.chars, call.answer.digest, call.answer.chars) for part in later):
            yield i


def _holds(digest: str, chars: int, answer: str, length: int) -> bool:
    """Whether a message may be the answer, or long enough to quote it."""
    return digest == answer or chars >= length


def _written(case: Case, calls: Iterable[int]) -> MicroUsd | None:
    parts: list[int | None] = []
    for i in calls:
        price, out = case.prices(case.call(i), case.span(i).start), case.call(i).usage.output_tokens
        parts.append(None if price is None or out is None else price.output * out)
    cost = total(parts)
    return None if cost is None else MicroUsd(cost // 1_000_000)
