"""A request taken apart into what is asked and the setting in which it is asked."""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from headway.policy.cache.keys import CacheKey, exact_key


class _Text(Struct, tag_field="type", tag="text", frozen=True):
    """A part that is text; one with more to it than that, a cache mark say, is read as well."""

    text: str


class _Message(Struct, frozen=True):
    role: str
    content: str | list[_Text]


_MESSAGES: Final = msgspec.json.Decoder(list[Raw])
_LAST: Final = msgspec.json.Decoder(_Message)


class Question(Struct, frozen=True):
    """What is asked, and where."""

    setting: CacheKey
    """Equal where everything but the question is: tenant, route, instructions, history, tools and parameters."""
    text: str


def question(tenant: str, route: str, fields: dict[str, Raw]) -> Question | None:
    """What a person asks at the end of a request, in OpenAI's chat dialect or Anthropic's.

    Args:
        tenant: whose answers these are.
        route: the path and the model that was asked for, after aliases.
        fields: the request's, as `keys.fields_of` reads them.

    Returns:
        ``None``: it does not end with a person's words alone, so no other question means the same.
    """
    try:
        messages = _MESSAGES.decode(fields["messages"])
        last = _LAST.decode(messages[-1])
    except (msgspec.DecodeError, ValueError, KeyError, IndexError):
        return None
    parts = last.content
    text = parts if isinstance(parts, str) else "\n".join(part.text for part in parts)
    if last.role != "user" or not text.strip():
        return None
    rest = {**fields, "messages": Raw(msgspec.json.encode(messages[:-1]))}
    return Question(exact_key(tenant, route, rest), text)
