"""Tokens: what a call read and wrote, and what its engine says about the time that took."""

from msgspec import Struct


class Usage(Struct, frozen=True, kw_only=True, gc=False):
    """Token counts of one call. ``None`` is unknown, which is never the same as 0.

    ``input_tokens`` INCLUDES ``cache_read`` and ``cache_write``; ``output_tokens`` includes ``reasoning``.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


class EngineTimings(Struct, frozen=True, kw_only=True, gc=False):
    """What the engine itself measured for one call (llama.cpp's ``timings``); seconds and tokens."""

    prefill_tokens: int
    """Prompt tokens computed, i.e. not taken from the cache."""
    prefill_seconds: float
    decode_tokens: int
    decode_seconds: float
    cached_tokens: int | None = None
