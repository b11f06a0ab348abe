"""What the gateway may be told: limits and places, with defaults that suit one machine."""

from pathlib import Path

from msgspec import Struct
from platformdirs import user_cache_path, user_data_path


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds that keep one client or one engine from harming the rest. Sizes in bytes, times in seconds."""

    header_bytes: int = 64 * 1024
    body_bytes: int = 16 * 1024 * 1024
    response_bytes: int = 64 * 1024 * 1024
    """Largest non-streamed answer, and largest single event of a stream."""
    header_seconds: float = 10.0
    """From a connection's first byte of a request to the end of its header."""
    body_seconds: float = 60.0
    idle_seconds: float = 75.0
    """A kept-alive connection with nothing to do."""
    connect_seconds: float = 5.0
    first_byte_seconds: float = 600.0
    """From a request sent to the first byte of the engine's answer; long prefills are legal."""
    stall_seconds: float = 120.0
    """Between two bytes of an engine's answer."""
    write_buffer_bytes: int = 256 * 1024
    """A client slower than its stream is buffered up to here; then the engine is read no further."""
    connections: int = 10_000


class Recording(Struct, frozen=True, kw_only=True):
    """What is kept of a call, and how much may wait to be written."""

    enabled: bool = True
    buffer_spans: int = 100_000
    keep_text: bool = False
    """Store prompts and answers too. Off: only times, counts and identities are kept."""


def default_store() -> Path:
    """Where spans go unless told otherwise: the user's data directory."""
    return user_data_path("headway") / "headway.db"


def model_cache() -> Path:
    """Where pulled model weights are kept: the user's cache directory."""
    return user_cache_path("headway") / "models"
