"""Which requests may be answered from what is kept, and which answers may be kept."""

import re
from typing import Final, Literal

from msgspec import Raw

from headway.wire.openai import Answer

Wish = Literal["usual", "anew", "never"]
"""``anew``: the answer is to be made, and may be kept; ``never``: neither given nor kept."""

TAGS_HEADER: Final = b"x-headway-cache-tags"
MOST_TAGS: Final = 16
"""That one request may name."""
TAG: Final = "^[A-Za-z0-9._:/@+-]{1,64}$"
"""What a tag looks like, as a pattern."""
_TAG: Final = re.compile(TAG[1:-1])
_NO_TAGS: Final = frozenset[str]()
_STATE: Final = {
    "n": (b"1", b"null"),
    "background": (b"false", b"null"),
    "conversation": (b"null",),
    "container": (b"null",),
}
"""Fields by which an answer hangs on more than the request, but for these values."""
_COMPLETE: Final = frozenset(
    {
        *("stop", "tool_calls", "function_call"),  # chat completions
        *("end_turn", "tool_use", "stop_sequence"),  # Anthropic's messages
        "completed",  # responses
    }
)


def wish_of(fields: dict[bytes, bytes]) -> Wish:
    """What the request's ``Cache-Control`` (RFC 9111, 5.2.1) asks for; directives that ask for neither are ignored."""
    control = fields.get(b"cache-control")
    if control is None:
        return "usual"
    directives = {part.partition(b"=")[0].strip().lower() for part in control.split(b",")}
    if b"no-store" in directives:
        return "never"
    return "anew" if b"no-cache" in directives else "usual"


def tags_of(fields: dict[bytes, bytes]) -> frozenset[str] | None:
    """The tags that the request gives its answer; ``None``: they cannot be read, so it could not be found by them."""
    given = fields.get(TAGS_HEADER)
    if given is None:
        return _NO_TAGS
    tags = [tag.strip() for tag in given.decode("latin-1").split(",")]
    tags = [tag for tag in tags if tag]
    if len(tags) > MOST_TAGS or not all(map(_TAG.fullmatch, tags)):
        return None
    return frozenset(tags)


def is_tag(text: str) -> bool:
    """Whether it is a tag: up to 64 letters, digits and ``. _ : / @ + -``."""
    return _TAG.fullmatch(text) is not None


def stands_alone(fields: dict[str, Raw]) -> bool:
    """Whether the answer depends on the request alone and is one answer.

    It is not where the engine keeps a conversation or a container that changes, answers later, or gives several
    choices, of which only the first would be looked at.
    """
    return _STATE.keys().isdisjoint(fields) or all(
        name not in fields or bytes(fields[name]) in plain for name, plain in _STATE.items()
    )


def is_complete(dialect: str, answer: Answer) -> bool:
    """Whether an answer says that it came to its own end: neither cut short, nor filtered, nor refused."""
    match dialect:
        case "openai-embeddings":
            return answer.usage.input_tokens is not None
        case "anthropic-count-tokens":
            return True
        case _:
            return answer.finish_reason in _COMPLETE
