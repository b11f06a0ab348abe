"""Asking for a stream's usage on behalf of a client that did not: engines count tokens in streams only when asked."""

from typing import Final

import msgspec
from msgspec import Raw, UnsetType

_ASKING: Final = b'{"stream_options":{"include_usage":true},'
_TRUE: Final = Raw(b"true")


def asking_for_usage(body: bytes, options: Raw | UnsetType) -> tuple[bytes, bytes | memoryview] | None:
    """A request's body with ``stream_options.include_usage`` true; all else in it, known or not, stays as it was.

    Where the body has no ``stream_options``, which is the rule, the option is put in front and nothing is copied or
    read again. Where it has some, the members are joined anew: what they hold is kept byte for byte, but of a member
    that is there twice only the last, as decoders read it.

    Args:
        body: a JSON object that has members.
        options: its ``stream_options``.

    Returns:
        The new body in two pieces; ``None`` where the client asks itself, or its options are no object, which is for
        the engine to refuse.
    """
    if isinstance(options, UnsetType):
        return _ASKING, memoryview(body)[body.index(b"{") + 1 :]
    try:
        asked = msgspec.json.decode(options, type=dict[str, Raw] | None) or {}
    except msgspec.ValidationError:
        return None
    if asked.get("include_usage") == _TRUE:
        return None
    members = msgspec.json.decode(body, type=dict[str, Raw])
    members["stream_options"] = Raw(msgspec.json.encode(asked | {"include_usage": _TRUE}))
    return b"", msgspec.json.encode(members)
