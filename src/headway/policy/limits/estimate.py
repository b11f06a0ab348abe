"""What a call may use, told before it is made: by the size of its request and what it lets the model write."""

import re
from typing import Final

from msgspec import Struct

from headway.core.money import MicroUsd, Price

BYTES_PER_TOKEN: Final = 3
"""English has four to five bytes a token, code three to four, Chinese about three: rather too many than too few."""
DEFAULT_OUTPUT_TOKENS: Final = 4096
"""Reserved for a call that sets no bound on its answer."""
IMAGE_TOKENS: Final = 2048
"""Reserved for an image or a file within a message, whatever its size in bytes: more than most models count for one."""
_DATA: Final = re.compile(b";base64,")


class Estimate(Struct, frozen=True):
    """What to reserve."""

    tokens: int
    """Input and output."""
    money: MicroUsd | None
    """``None``: the price is unknown."""


def estimate(
    prompt: bytes | memoryview, *, max_output: int | None, choices: int = 1, price: Price | None, added: int = 0
) -> Estimate:
    """What a call may use.

    Input is charged as uncached, or as written to the cache where that is dearer.

    Args:
        prompt: messages and tools, as they were sent.
        max_output: the request's bound on output tokens (``max_completion_tokens``, ``max_tokens``); ``None``: none.
        choices: how many answers it asks for (``n``).
        price: of the model's tokens.
        added: tokens of input that come to the prompt.
    """
    size, images = _sizes(prompt)
    tokens_in = -(-size // BYTES_PER_TOKEN) + images * IMAGE_TOKENS + added
    tokens_out = (DEFAULT_OUTPUT_TOKENS if max_output is None else max(max_output, 0)) * max(choices, 1)
    if price is None:
        return Estimate(tokens_in + tokens_out, None)
    dearest = max(price.input, price.cache_write or 0)
    total = tokens_in * dearest + tokens_out * price.output
    return Estimate(tokens_in + tokens_out, MicroUsd(-(-total // 1_000_000)))


def _sizes(prompt: bytes | memoryview) -> tuple[int, int]:
    """Bytes of text, and the number of data URLs, whose bytes are no text."""
    text = bytes(prompt)
    size, images = len(text), 0
    if b";" not in text:  # one byte is looked for at a hundred times the speed of several
        return size, 0
    found = _DATA.search(text)
    while found is not None:
        at = found.start()
        end = text.find(b'"', at)
        end = len(text) if end < 0 else end
        size -= end - at
        images += 1
        found = _DATA.search(text, end)
    return size, images
