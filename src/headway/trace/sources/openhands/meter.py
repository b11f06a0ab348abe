"""What OpenHands metered: sums that grow with every call, and each call's own counts where the state was kept."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from headway.core.money import MicroUsd
from headway.core.usage import Usage
from headway.trace.sources.fields.completions import micro_usd
from headway.trace.sources.openhands.rows import Metrics, Stats, Tokens

_NOTHING: Final = Tokens(
    prompt_tokens=0, completion_tokens=0, cache_read_tokens=0, cache_write_tokens=0, reasoning_tokens=0
)


class Metered(Struct, frozen=True):
    """One call, as its sum grew by it."""

    use: str
    """What the model was used for."""
    model: str
    usage: Usage
    cost: MicroUsd | None
    alone: bool
    """Whether it is certain that the sum grew by one call only."""


class Meter:
    """Sums by use, and how they grow."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[Tokens, float | None]] = {}

    def read(self, stats: Stats) -> Iterator[Metered]:
        """What has been added since the sums were last read."""
        for use, metrics in stats.usage_to_metrics.items():
            tokens = metrics.accumulated_token_usage or Tokens()
            before, spent = self._sums.get(use, (_NOTHING, 0.0))
            now = metrics.accumulated_cost
            self._sums[use] = (tokens, now)
            grown = _difference(tokens, before)
            cost = None if now is None or spent is None else max(now - spent, 0.0)
            if grown.prompt_tokens or grown.completion_tokens:
                yield Metered(
                    use,
                    metrics.model_name,
                    grown.usage(),
                    micro_usd(cost or None),
                    tokens.per_turn_token in {0, (grown.prompt_tokens or 0) + (grown.completion_tokens or 0)},
                )


class Account(Struct, frozen=True):
    """One call by its own counts."""

    id: str
    model: str
    usage: Usage
    seconds: float | None
    cost: MicroUsd | None


def accounts(stats: Stats) -> Iterator[Account]:
    """Each call that the state keeps, in order; a cost only where every call has one."""
    for metrics in stats.usage_to_metrics.values():
        yield from _accounts(metrics)


def _accounts(metrics: Metrics) -> Iterator[Account]:
    lasted = {one.response_id: one.latency for one in metrics.response_latencies}
    priced = len(metrics.costs) == len(metrics.token_usages)
    for number, tokens in enumerate(metrics.token_usages):
        yield Account(
            tokens.response_id,
            tokens.model or metrics.model_name,
            tokens.usage(),
            lasted.get(tokens.response_id),
            micro_usd(metrics.costs[number].cost) if priced else None,
        )


def _difference(now: Tokens, before: Tokens) -> Tokens:
    if now.prompt_tokens is not None and now.prompt_tokens < (before.prompt_tokens or 0):
        return now  # a new count
    return Tokens(
        prompt_tokens=_growth(now.prompt_tokens, before.prompt_tokens),
        completion_tokens=_growth(now.completion_tokens, before.completion_tokens),
        cache_read_tokens=_growth(now.cache_read_tokens, before.cache_read_tokens),
        cache_write_tokens=_growth(now.cache_write_tokens, before.cache_write_tokens),
        reasoning_tokens=_growth(now.reasoning_tokens, before.reasoning_tokens),
    )


def _growth(now: int | None, before: int | None) -> int | None:
    return None if now is None or before is None else max(now - before, 0)
