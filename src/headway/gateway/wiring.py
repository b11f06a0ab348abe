"""What all calls of one gateway share."""

from msgspec import Struct

from headway.core.clock import Clock
from headway.core.config import Limits
from headway.gateway.breakers import Breakers
from headway.gateway.caches.opening import Opening
from headway.gateway.caches.station import ResponseCache
from headway.gateway.door import Door
from headway.gateway.fleet import LiveFleet
from headway.gateway.hedging import Hedging
from headway.gateway.journal import Journal
from headway.gateway.leading import Leading
from headway.gateway.naming import Naming
from headway.gateway.retrying import Retrying
from headway.gateway.siblings import Siblings
from headway.gateway.tariff import Tariff
from headway.gateway.turns import Turns
from headway.gateway.unforeseen import Unforeseen
from headway.gateway.upstream import Upstream
from headway.gateway.whereabouts import Whereabouts
from headway.policy.route import RouteEvent, RoutePolicy


class Passes(Struct, frozen=True, kw_only=True, eq=False):
    """What a call passes before it is sent; what is ``None`` is not configured, and skipped."""

    door: Door | None = None
    """Whom to let in, started and closed by whoever made it; ``None``: everybody."""
    naming: Naming | None = None
    """What names of models stand for; ``None``: for themselves."""
    siblings: Siblings | None = None
    """What other workers know of tasks, closed with the gateway; ``None``: there are none."""
    whereabouts: Whereabouts | None = None
    """Where other workers send calls, opened and closed with the gateway; ``None``: there are none, or no turns."""
    turns: Turns | None = None
    """Whose turn it is and where it goes, started and closed with the gateway; ``None``: everybody's, by the policy."""
    batch: frozenset[str] = frozenset()
    """Tenants and keys, by id, whose calls are batch where they do not say otherwise."""
    cache: Opening | None = None
    """Opens the answers that are kept, which the gateway starts and closes; ``None``: none are."""
    tariff: Tariff | None = None
    """What it saves to give an answer again; ``None``: unknown."""
    retries: Retrying | None = None
    """How often calls are sent again that a model could not serve; ``None``: never to the same model."""
    breakers: Breakers | None = None
    """Which replicas are left alone because they fail calls; ``None``: none."""
    leading: Leading | None = None
    """Which calls wait for another that begins alike; ``None``: none."""
    hedging: Hedging | None = None
    """Which calls are sent to a second replica when the first is late; ``None``: none."""

    @property
    def heeded(self) -> bool:
        """Whether somebody heeds when an answer begins."""
        return self.retries is not None or self.hedging is not None or self.leading is not None


class Wiring(Struct, frozen=True, kw_only=True, eq=False):
    """The parts that a call meets on its way."""

    fleet: LiveFleet
    policy: RoutePolicy
    upstream: Upstream
    journal: Journal
    limits: Limits
    clock: Clock
    unforeseen: Unforeseen
    passes: Passes
    cache: ResponseCache | None
    heeded: bool
    """Somebody heeds when an answer begins, and until then none of it is passed on."""

    def observe(self, event: RouteEvent) -> None:
        """Tell the policy; that it cannot bear the news is no reason to fail a call."""
        try:
            self.policy.observe(event)
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way
            self.unforeseen.met(error)
