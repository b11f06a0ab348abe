"""What went wrong, as a short stable word, out of whatever a product wrote of it."""

import re
from typing import Final

from headway.core.span import ErrorType

FAILED: Final = ErrorType("error")
"""Something went wrong, and the record has no word for it."""
_CLASS: Final = re.compile(r"\b([A-Z][A-Za-z0-9]*(?:Error|Exception|Timeout|Interrupt|Exceeded|Exit))\b")
_LOOKED_AT: Final = 2000


def failure(text: object) -> ErrorType:
    """The first name of an exception in a text, e.g. ``RateLimitError``; else `FAILED`. The text itself is not kept."""
    found = _CLASS.search(text[:_LOOKED_AT]) if isinstance(text, str) else None
    return FAILED if found is None else ErrorType(found[1])
