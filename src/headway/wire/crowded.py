"""Messages of so many pieces that reading them would hold everybody up: a body of some MiB can hold a million."""

from typing import Final

_LONG_BYTES: Final = 512 * 1024
"""Shorter ones cannot hold enough."""
MOST: Final = 60_000
"""Objects: to read so many takes about 0.2 s. A long conversation has some thousands; braces within texts count too."""


def crowded(messages: bytes) -> bool:
    """Whether JSON text holds more than `MOST` objects, told by its braces without reading it."""
    return len(messages) > _LONG_BYTES and messages.count(b"{") > MOST
