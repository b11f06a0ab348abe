"""Hedging as configured: which calls are sent to a second replica when their first token is late."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from headway.gateway.exposition import family
from headway.policy.resend.budget import RATIO, ResendBudget
from headway.policy.resend.hedge import Hedger

_TALKS: Final = frozenset({b"/chat/completions", b"/messages", b"/responses"})


class HedgeRules(Struct, frozen=True, kw_only=True):
    """Which calls, and how many."""

    paths: frozenset[bytes] = frozenset({b"/chat/completions", b"/messages", b"/embeddings", b"/messages/count_tokens"})
    """Where they come in, below /v1: calls that, made twice, do nothing twice."""
    models: frozenset[str] = frozenset()
    """As replicas serve them; none: all."""
    ratio: float = RATIO
    """Second sends for each call, in the long run and all calls together."""


class Hedging:
    """What all calls of a gateway share that may be hedged."""

    def __init__(self, rules: HedgeRules) -> None:
        self._rules = rules
        self.hedger = Hedger(ResendBudget(ratio=rules.ratio))
        self.won = 0
        self.lost = 0

    def kind(self, path: bytes, model: str, *, streams: bool) -> str | None:
        """Among which calls the delay of this one counts; ``None``: it is not hedged.

        A talk that is not streamed shows no first token, and how long its answer takes is up to its length.
        """
        rules = self._rules
        if path not in rules.paths or (rules.models and model not in rules.models):
            return None
        if streams:
            return model
        return None if path in _TALKS else f"{path.decode()} {model}"

    def settled(self, *, won: bool) -> None:
        """A second send came first, or did not."""
        self.won += won
        self.lost += not won

    def families(self) -> Iterator[str]:
        """For the page of metrics."""
        yield from family(
            "headway_hedges_total",
            "counter",
            "Calls sent to a second replica because their first token was late, by which of the two began first.",
            [({"first": "second_replica"}, self.won), ({"first": "first_replica"}, self.lost)],
        )
