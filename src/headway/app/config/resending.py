"""The tables about calls that are sent again, and from them to what the gateway does; see docs/resending.md."""

from typing import Annotated, Final, Literal

from pydantic import Field

from headway.app.config.values import Seconds, Table, Wait
from headway.gateway.breakers import BreakerRules
from headway.gateway.hedging import HedgeRules
from headway.gateway.leading import LeadRules
from headway.policy.resend.retry import RetryRules

_RETRIES: Final = RetryRules()
_BREAKERS: Final = BreakerRules()
_HEDGING: Final = HedgeRules()
CallPath = Literal[
    "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/v1/messages/count_tokens"
]
_FANOUT: Final = LeadRules()
Share = Annotated[float, Field(gt=0, le=1)]


class Retries(Table):
    """Calls are sent again that their model could not serve; without this table they are not."""

    attempts: Annotated[int, Field(ge=2, le=20)] = _RETRIES.attempts
    """Sends of one model, the first among them."""
    base: Seconds = _RETRIES.base
    """Before the second send at most, doubled for each further one; how much of it is drawn."""
    cap: Seconds = _RETRIES.cap
    """What such a wait is at most."""
    patience: Seconds = _RETRIES.patience
    """An engine's own Retry-After up to here is waited for; after a longer one its refusal is the answer."""
    ratio: Share = _RETRIES.ratio
    """Retries for each call, in the long run and all calls together."""


class Breakers(Table):
    """A replica that fails calls is left alone for a while; without this table it is not."""

    failures: Share = _BREAKERS.failures
    """Share of a replica's calls within 30 s that failed."""
    calls: Annotated[int, Field(ge=1, le=1000)] = _BREAKERS.calls
    """Calls within 30 s below which nothing is concluded."""
    rest: Wait = _BREAKERS.rest
    """Until one call tries whether it is well again; doubled each time that this fails, up to 2 min."""


class Hedging(Table):
    """A call whose first token is late is sent to a second replica; without this table it is not."""

    paths: Annotated[list[CallPath], Field(min_length=1)] = Field(
        default=["/v1/chat/completions", "/v1/messages", "/v1/embeddings", "/v1/messages/count_tokens"]
    )
    """Where the calls come in: only those that, made twice, do nothing twice."""
    models: list[str] = Field(default=[])
    """As replicas serve them; left out: all."""
    ratio: Share = _HEDGING.ratio
    """Second sends for each call, in the long run and all calls together."""


class Fanout(Table):
    """Of calls that begin alike one goes first, the rest once it begins to answer; without this table none waits."""

    tokens: Annotated[int, Field(ge=1)] = _FANOUT.tokens
    """Tokens of a common beginning below which nobody waits."""
    longest: Wait = _FANOUT.longest
    """How long a call waits at most."""


def fanout_of(written: Fanout | None) -> LeadRules | None:
    """Which calls wait for another that begins alike; ``None``: none."""
    return None if written is None else LeadRules(**dict(written))


def retries_of(written: Retries | None) -> RetryRules | None:
    """How often calls are sent again; ``None``: never to the same model."""
    return None if written is None else RetryRules(**dict(written))


def breakers_of(written: Breakers | None) -> BreakerRules | None:
    """When a replica is left alone; ``None``: never."""
    return None if written is None else BreakerRules(**dict(written))


def hedging_of(written: Hedging | None) -> HedgeRules | None:
    """Which calls are sent to a second replica; ``None``: none."""
    if written is None:
        return None
    paths = frozenset([path.removeprefix("/v1").encode() for path in written.paths])
    return HedgeRules(paths=paths, models=frozenset(written.models), ratio=written.ratio)
