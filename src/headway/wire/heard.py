"""What an answer says beside its text: how likely its tokens were, and whether its model declined.

Logprobs are told only where they are asked for, so a request can be made to ask, and the answer be told without them.
"""

from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct

_CHAT: Final = "openai-chat"
_RESPONSES: Final = "openai-responses"
_INCLUDED: Final = "message.output_text.logprobs"
_DONE: Final = b"[DONE]"
_DECLINED: Final = frozenset({"content_filter", "refusal"})


class Heard(Struct, frozen=True):
    """Of one answer."""

    logprobs: tuple[float, ...] | None
    """Natural logarithms of its tokens' probabilities; ``None``: not told."""
    declined: bool
    """It bears its API's own mark of a refusal."""


class _Token(Struct):
    logprob: float


class _Logprobs(Struct):
    content: list[_Token] | None = None


class _Words(Struct):
    refusal: str | None = None


class _Choice(Struct):
    index: int = 0
    message: _Words | None = None
    delta: _Words | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Part(Struct):
    type: str = ""
    logprobs: list[_Token] | None = None


class _Item(Struct):
    content: list[_Part] | None = None


class _Reason(Struct):
    reason: str | None = None
    stop_reason: str | None = None


class _Response(Struct):
    output: list[_Item] | None = None
    incomplete_details: _Reason | None = None


class _Document(Struct):
    """A whole answer, or an event of one, in any of the dialects: their fields' names do not meet."""

    choices: list[_Choice] | None = None
    response: _Response | None = None
    output: list[_Item] | None = None
    incomplete_details: _Reason | None = None
    delta: _Reason | str | None = None
    stop_reason: str | None = None


_decoder: Final = msgspec.json.Decoder(_Document)


class _Asking(Struct):
    logprobs: bool | None = None
    top_logprobs: int | None = None
    include: list[str] | None = None


def asking_for_logprobs(dialect: str, body: bytes) -> bytes | None:
    """``body``, a request in this dialect, that asks for logprobs; all else in it stays as it was.

    Returns:
        ``None``: it asks already, or the API does not tell them.
    """
    try:
        asked = msgspec.json.decode(body, type=_Asking)
    except msgspec.DecodeError:
        return None  # for the engine to refuse
    if dialect == _CHAT and not asked.logprobs:
        added: dict[str, Any] = {"logprobs": True, "top_logprobs": asked.top_logprobs or 1}  # llama.cpp: not with 0
    elif dialect == _RESPONSES and _INCLUDED not in (asked.include or ()):
        added = {"include": [*(asked.include or ()), _INCLUDED]}
    else:
        return None
    members = msgspec.json.decode(body, type=dict[str, Raw])
    return msgspec.json.encode(members | {name: Raw(msgspec.json.encode(value)) for name, value in added.items()})


def without_logprobs(dialect: str, document: bytes) -> bytes:
    """A whole answer, or the data of an event, as it is where logprobs were not asked for."""
    if b'"logprobs"' not in document:
        return document
    try:
        value = msgspec.json.decode(document)
    except msgspec.DecodeError:
        return document
    _forget(value, None if dialect == _CHAT else [])
    return msgspec.json.encode(value)


def _forget(value: object, nothing: list[Any] | None) -> None:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        for name, member in members.items():
            if name == "logprobs":
                members[name] = nothing
            else:
                _forget(member, nothing)
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            _forget(member, nothing)


def hear(documents: Iterable[bytes]) -> Heard:
    """Read an answer of any dialect: its body, or the data of all its events. What is no JSON teaches nothing."""
    logprobs, told, declined = list[float](), False, False
    for document in documents:
        if document == _DONE:
            continue
        try:
            said = _decoder.decode(document)
        except msgspec.DecodeError:
            continue
        found = _logprobs(said)
        if found is not None:
            told = True
            logprobs += [token.logprob for token in found]
        declined = declined or _declined(said)
    return Heard(tuple(logprobs) if told else None, declined)


def _logprobs(said: _Document) -> list[_Token] | None:
    for choice in said.choices or ():
        if not choice.index and choice.logprobs is not None:
            return choice.logprobs.content
    items = said.output if said.response is None else said.response.output
    found = [part.logprobs for item in items or () for part in item.content or () if part.logprobs]
    return [token for part in found for token in part] if found else None


def _declined(said: _Document) -> bool:
    choice = next((one for one in said.choices or () if not one.index), None)
    if choice is not None:
        words = choice.message or choice.delta
        return choice.finish_reason in _DECLINED or (words is not None and bool(words.refusal))
    whole = said if said.response is None else said.response
    details = whole.incomplete_details
    if details is not None and details.reason in _DECLINED:
        return True
    if any(part.type == "refusal" for item in whole.output or () for part in item.content or ()):
        return True
    ended = said.delta.stop_reason if isinstance(said.delta, _Reason) else said.stop_reason
    return ended in _DECLINED
