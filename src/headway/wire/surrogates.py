r"""Escapes in JSON that are half of a character: ``\ud83d`` without its other half.

JSON's grammar lets them stand and leaves it open what they mean (RFC 8259, section 8.2). No text in UTF-8 can hold one:
engines refuse it, or fail over it later. A client sends one where it has cut a text in the middle of a character.
"""

import re
from typing import Final

_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)

_HALF: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""An escape, of which the first group is there where it is half of a character; two halves that meet are one."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""Looked for first, and a backslash before that: in most documents there is none."""


def whole_characters(document: bytes) -> bytes:
    """The JSON with the mark for what cannot be read (U+FFFD) in the place of each half of a character."""
    if b"\\" not in document or _SURROGATE.search(document) is None:
        return document
    return _HALF.sub(lambda found: found[0] if found[1] is None else rb"\ufffd", document)


def half_character(body: bytes) -> str | None:
    """The first such escape and where it is, in words; ``None``: there is none."""
    high: re.Match[bytes] | None = None
    for found in _ESCAPE.finditer(body):
        code = int(found[1] or b"0", 16)
        if high is not None and not (high.end() == found.start() and 0xDC00 <= code <= 0xDFFF):  # noqa: PLR2004 - low halves
            break
        if high is None and 0xDC00 <= code <= 0xDFFF:  # noqa: PLR2004 - as above
            high = found
            break
        high = found if 0xD800 <= code <= 0xDBFF else None  # noqa: PLR2004 - high halves
    return None if high is None else f"the escape {high[0].decode()} at byte {high.start()} is half of a character"
