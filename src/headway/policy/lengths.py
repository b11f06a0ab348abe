"""How long prompts are in tokens, message by message, before any engine has counted them.

Tokens are estimated from characters at a rate that is learnt for each model from the counts that engines report. Once a
call has ended, the length of its prompt is what the engine said, and what continues it is counted from there.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from xxhash import xxh3_64_intdigest

Prefix = tuple[int, int]
"""The beginning of a prompt up to the end of one of its messages: a digest of all of it, and its length in tokens."""

_RATE: Final = 0.25
"""Tokens a character until a model's engine has counted any: English text and code have a little less."""
_SMOOTHING: Final = 0.1
_MODELS: Final = 1_000
_HIGHEST: Final = 4.0
"""Tokens a character: an image that is one URL to us may be thousands of tokens, and says nothing about text."""


class Beginning(Struct, frozen=True, gc=False):
    """What all prompts of one tenant, model and set of tools begin with."""

    seed: int
    """With this all digests of their prefixes begin."""
    size: int
    """Characters before the first message: the tools."""
    rate: float
    """Tokens a character."""


class Lengths:
    """Tokens a character, by model."""

    def __init__(self) -> None:
        self._rates: dict[str, float] = {}

    def beginning(self, tenant: str, model: str, tools: bytes | None) -> Beginning:
        """What the prompt of a call begins with."""
        seed = hash((tenant, model, 0 if tools is None else xxh3_64_intdigest(tools)))
        return Beginning(seed, 0 if tools is None else len(tools), self._rates.get(model, _RATE))

    def counted(self, model: str, size: int, tokens: int) -> None:
        """An engine has counted ``tokens`` in a prompt of ``size`` characters."""
        rate = tokens / size if size else 0.0
        if 0.0 < rate <= _HIGHEST:
            known = self._rates.get(model)
            if known is None and len(self._rates) >= _MODELS:
                return
            self._rates[model] = rate if known is None else known + _SMOOTHING * (rate - known)


def prefixes(
    beginning: Beginning, links: Sequence[tuple[int, int]], before: tuple[Prefix, ...] = (), size: int = 0
) -> tuple[tuple[Prefix, ...], int]:
    """The prompt that ``before``, of ``size`` characters, and then ``links`` make, with its characters.

    Args:
        beginning: of both.
        links: a digest and the characters of each message.
        before: none: it begins here.
        size: of ``before``.
    """
    if before:
        digest, tokens = before[-1]
    else:
        digest, size = beginning.seed, beginning.size
        tokens = int(size * beginning.rate)
    rate, base, grown = beginning.rate, size, list[Prefix]()
    for link, characters in links:
        digest = hash((digest, link))
        size += characters
        grown.append((digest, tokens + int((size - base) * rate)))
    return (*before, *grown), size


def corrected(prompt: tuple[Prefix, ...], tokens: int) -> tuple[Prefix, ...]:
    """``prompt`` with the length that an engine has counted; no shorter one is longer than that."""
    if not prompt or prompt[-1][1] == tokens:
        return prompt
    last = len(prompt) - 1
    if last and prompt[last - 1][1] > tokens:
        prompt = tuple([(digest, min(length, tokens)) for digest, length in prompt])
    return (*prompt[:last], (prompt[last][0], tokens))
