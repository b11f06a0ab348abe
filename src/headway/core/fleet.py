"""The engines a gateway serves from, and what it knows of their load."""

from typing import Literal, NewType

from msgspec import Struct

ReplicaId = NewType("ReplicaId", str)
EngineKind = Literal["llama.cpp", "openai"]
"""``openai`` is anything that speaks the protocol and tells nothing more about itself."""


class Replica(Struct, frozen=True, kw_only=True):
    """One engine, reachable at one URL."""

    id: ReplicaId
    url: str
    """Base URL up to and including ``/v1``, e.g. ``http://127.0.0.1:8001/v1``."""
    engine: EngineKind = "openai"
    slots: int | None = None
    """Calls that it serves side by side, each from a memory of its own; ``None``: unknown."""
    models: tuple[str, ...] = ()
    """Model names it serves; empty: any name is passed through to it."""
    speaks: tuple[str, ...] = ("openai-chat", "openai-embeddings")
    """Dialects that it can be asked in, by name, the best first."""
    api_key: str | None = None
    """Sent upstream as a bearer token in place of the caller's own; never logged."""

    def __repr__(self) -> str:
        """Without the key."""
        return f"Replica(id={self.id!r}, url={self.url!r}, engine={self.engine!r}, models={self.models!r})"


class ReplicaLoad(Struct, kw_only=True):
    """What is known of one replica now.

    Whoever keeps the fleet counts on in it, for a call that begins or ends is no reason to make a view anew. So nobody
    else changes it, or keeps it beyond a decision.
    """

    replica: Replica
    healthy: bool
    in_flight: int
    """Calls that the gateway has sent and not yet seen the end of."""


class FleetView(Struct, frozen=True):
    """All replicas as a policy sees them."""

    loads: tuple[ReplicaLoad, ...]
