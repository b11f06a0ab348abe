"""What OpenHands metered: sums that grow with every call, and each call's own counts where the state was kept."""

from collections.abc import Iterator

from msgspec import Struct

from headway.core.money import MicroUsd
from headway.core.usage import Usage
from headway.trace.sources.fields.completions import micro_usd
from headway.trace.sources.openhands.rows import Metrics, Stats, Tokens


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
        self._sums: dict[str, tuple[Tokens, float]] = {}

    def read(self, stats: Stats) -> Iterator[Metered]:
        """What has been added since the sums were last read."""
        for use, metrics in stats.usage_to_metrics.items():
            tokens = metrics.accumulated_token_usage or Tokens()
            before, spent = self._sums.get(use, (Tokens(), 0.0))
            self._sums[use] = (tokens, metrics.accumulated_cost)
            grown = _difference(tokens, before)
            if grown.prompt_tokens or grown.completion_tokens:
                yield Metered(
                    use,
                    metrics.model_name,
                    grown.usage(),
                    micro_usd(max(metrics.accumulated_cost - spent, 0.0) or None),
                    tokens.per_turn_token in {0, grown.prompt_tokens + grown.completion_tokens},
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
    if now.prompt_tokens < before.prompt_tokens:
        return now  # a new count
    return Tokens(
        prompt_tokens=now.prompt_tokens - before.prompt_tokens,
        completion_tokens=max(now.completion_tokens - before.completion_tokens, 0),
        cache_read_tokens=max(now.cache_read_tokens - before.cache_read_tokens, 0),
        cache_write_tokens=max(now.cache_write_tokens - before.cache_write_tokens, 0),
        reasoning_tokens=max(now.reasoning_tokens - before.reasoning_tokens, 0),
    )
