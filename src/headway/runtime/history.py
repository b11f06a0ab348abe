"""What earlier calls of a model tell, those of this process and those in the store, and what follows for a plan."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Unpack

from headway.core.money import MicroUsd
from headway.core.span import ModelCall, Span
from headway.core.usage import Usage
from headway.runtime.estimate import Estimate, Known, Planned, counted, estimated
from headway.runtime.models import Message, Models, texts
from headway.runtime.spans import Spans
from headway.trace.follow import Follower
from headway.trace.scaling.speed import measured

_ROWS: Final = 20_000
"""Of the store, the newest; reading and fitting them takes about a second of a thread."""
_MAX_TOKENS: Final = 4_096
_AT_ONCE: Final = 2_000


async def known_of(spans: Spans, model: str, provider: str | None) -> Known:
    """How fast a model has been lately.

    Raises:
        StoreError: the store cannot be read.
    """
    recent, store = tuple(spans.calls), spans.store

    def look() -> Known:
        recorded = [] if store is None else list(_recorded(store))
        return Known(*measured([*recorded, *recent], model, provider))

    return await asyncio.to_thread(look)


async def foretold(
    spans: Spans, models: Models, prompts: Iterable[str | Sequence[Message]], model: str, **plan: Unpack[Planned]
) -> Estimate:
    """`headway.runtime.Run.estimate`, for a task that records its calls in ``spans`` and asks ``models``."""
    known = await known_of(spans, model, models.provider)
    sizes = counted([texts(prompt) for prompt in prompts], known.speed, plan.get("measure"))
    usual = plan.get("output_tokens", known.speed.output_tokens)
    longest = plan.get("max_tokens", _MAX_TOKENS)
    now = spans.clock.now()

    def cost(usage: Usage) -> MicroUsd | None:
        return models.cost(model, usage, now)

    return estimated(model, sizes, None if usual is None else min(usual, longest), plan.get("width"), known, cost)


def _recorded(store: Path) -> Iterator[Span]:
    with Follower(store) as follower:
        place = max(follower.begin(), follower.end() - _ROWS)
        while (stretch := follower.after(place, _AT_ONCE)).place > place:
            yield from (span for span in stretch.spans if isinstance(span.work, ModelCall))
            place = stretch.place
