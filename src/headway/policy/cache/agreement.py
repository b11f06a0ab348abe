"""Whether two answers say the same, so that one could have been given for the other."""

import re
from typing import Any, Final, Literal

import msgspec

from headway.policy.cache.guards import disagreement, marks
from headway.wire.openai import Answer, ToolCall

Agreement = Literal["same", "different", "open"]
"""``open``: only their meanings can tell."""

_WORDS: Final = re.compile(r"\w+")


def agreement(kept: Answer, fresh: Answer) -> Agreement:
    """What words, tool calls and marks tell.

    Errs towards ``different``: an answer that names another number or name than the fresh one counts as wrong.
    """
    if _calls(kept) != _calls(fresh):
        return "different"
    if _WORDS.findall(kept.content.lower()) == _WORDS.findall(fresh.content.lower()):
        return "same"
    return "different" if disagreement(marks(kept.content), marks(fresh.content)) else "open"


def _calls(answer: Answer) -> list[tuple[str, object]]:
    return [(call.name, _arguments(call)) for call in answer.tool_calls]


def _arguments(call: ToolCall) -> Any:  # noqa: ANN401 - any JSON
    try:
        return msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return call.arguments
