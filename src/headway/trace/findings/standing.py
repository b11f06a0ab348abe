"""A prompt that is huge before anything was done: tools and instructions that every call reads again."""

from collections.abc import Iterable, Sequence
from typing import Final

from headway.core.prompt import Part
from headway.trace.findings.case import Case, total
from headway.trace.findings.figures import plural, share
from headway.trace.findings.finding import Confidence, Finding
from headway.trace.findings.growth import CHARS, MONEY, nearly_all, paid_for
from headway.trace.phases import PREFILL

HUGE: Final = 20_000
"""Tokens: several times what instructions and a dozen tools with their descriptions take."""
WEIGHT: Final = 0.25
"""Of all input tokens of the conversation: what is less is not what the task reads."""
SAID: Final = frozenset({"user", "assistant", "tool"})
"""Roles of what was said in the conversation, unlike instructions."""


def standing_prompt(case: Case) -> Iterable[Finding]:
    """The first call reads very much that nobody has said yet, and all that follow read it with it."""
    chat = next((chat for chat in case.chats if not case.study.in_tool[chat[0]]), list[int]())
    read = case.call(chat[0]).usage.input_tokens if chat else None
    if read is None or case.anatomy.waited_before is not None:  # an earlier task's conversation is in it
        return
    prompt = case.call(chat[0]).prompt
    standing = read if prompt is None else read - sum(part.chars for part in _said(prompt)) // CHARS
    if standing < HUGE:
        return
    calls = [i for i in chat if (case.call(i).usage.input_tokens or 0) >= standing]
    each = [case.call(i).usage.input_tokens or 0 for i in calls]
    again = [standing] * len(calls)
    paid, whole = paid_for(case, calls, again), case.anatomy.cost
    cached = total([case.call(i).usage.cache_read for i in calls])
    if sum(again) < WEIGHT * sum(each) or (
        paid < MONEY * whole if paid is not None and whole else nearly_all(cached, sum(each))
    ):
        return
    rest = standing if prompt is None else max(read - sum(part.chars for part in prompt) // CHARS, 0)
    confidence: Confidence = "likely" if rest <= standing / 2 else "possible"
    reading = case.spent(chat[0], PREFILL) * standing / read if case.timed else 0.0
    yield Finding(
        name="standing-prompt",
        title=f"The first call reads about {round(standing, -3):,} tokens that nobody said in this task, such as"
        f" instructions and tools; {plural(len(calls), 'call')} read them.",
        seconds=reading or None,
        cost=paid,
        tokens=sum(again),
        confidence=confidence,
        evidence=(
            (
                f"{case.span(chat[0]).name}: {read:,} input tokens in the first call"
                + (
                    f", {share(cached, sum(each))} of all its calls' input from the cache."
                    if cached is not None
                    else "."
                )
            ),
            _made_of(prompt, rest),
        ),
        check="Print the first request: count the tools and the length of their descriptions and of the system text;"
        " see that it holds no earlier conversation.",
        remedy="Offer only the tools that the task can need (by stage, or by a search for tools), shorten their"
        ' descriptions, and load instructions when they are needed; `--what-if "prefill 0.5x"` tells what reading half'
        " would save. What has to stay belongs at the very beginning, unchanged, so that caches keep it.",
        spans=case.ids(calls),
    )


def _said(prompt: Sequence[Part]) -> Iterable[Part]:
    return (part for part in prompt if part.role in SAID)


def _made_of(prompt: Sequence[Part] | None, rest: int) -> str:
    if prompt is None:
        return "What the prompt is made of is not in the record: a long text of the user's may be in it, too."
    said = sum(part.chars for part in _said(prompt))
    told = sum(part.chars for part in prompt) - said
    return (
        f"Instructions are {told:,} characters, what was said {said:,}, at about {CHARS} characters a token; the rest,"
        f" about {round(rest, -3):,} tokens, is in no message on record: tools, or an earlier conversation."
    )
