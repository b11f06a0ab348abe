"""Pins of a gateway that runs: made, taken and listed over its admin face, and told to all its workers."""

from typing import Final

import msgspec
from msgspec import Struct

from headway.core.clock import Clock
from headway.core.errors import BadInputError
from headway.gateway.admin import Admin, Changed, Order
from headway.gateway.bus import Bus
from headway.gateway.fleet import LiveFleet
from headway.policy.models.pins import Pin, Pins

PATH: Final = "/admin/pins"
_TOPIC: Final = "pins"
_LONGEST: Final = 366 * 24 * 3600.0
_ASKED: Final = "pins.asked"


class Wanted(Struct, frozen=True, forbid_unknown_fields=True):
    """A pin as it is asked for."""

    to: str
    """The model that is to answer, as replicas serve it."""
    seconds: float
    """How long; a year at most."""
    model: str = ""
    """The name asked for; empty: any."""
    tenant: str = ""
    task: str = ""
    reason: str = "not said"


class About(Struct, frozen=True, forbid_unknown_fields=True):
    """Which pin."""

    model: str = ""
    tenant: str = ""
    task: str = ""


class _News(Struct, frozen=True):
    put: tuple[Pin, ...] = ()
    taken: tuple[About, ...] = ()


class Pinning:
    """The pins that hold, and who may change them.

    Args:
        fleet: whose models may be pinned to.
        bus: tells other workers.
        clock: for when pins end.
    """

    def __init__(self, fleet: LiveFleet, bus: Bus, clock: Clock) -> None:
        self.pins = Pins()
        self._fleet = fleet
        self._bus = bus
        self._clock = clock
        bus.on(_TOPIC, self._hear)
        bus.on(_ASKED, self._tell)

    def offer(self, admin: Admin) -> None:
        """Let them be seen and changed."""
        admin.on_show(PATH, self._show)
        admin.on_change("POST", PATH, "pin.put", self._put)
        admin.on_change("DELETE", PATH, "pin.taken", self._take)

    def ask(self) -> None:
        """Other workers may know of pins that were made before this one was there."""
        self._bus.publish(_ASKED, b"")

    async def _show(self, order: Order) -> object:
        del order
        return {"pins": self.pins.holding(self._clock.now())}

    async def _put(self, order: Order) -> Changed:
        wanted, now = order.read(Wanted), self._clock.now()
        declared = [load.replica.models for load in self._fleet.view().loads]
        if all(declared) and not any(wanted.to in models for models in declared):
            known = ", ".join(self._fleet.models()) or "none"
            raise BadInputError(f"No replica serves the model {wanted.to!r}.", fix=f"Pin to one of: {known}.")
        if not 0 < wanted.seconds <= _LONGEST:
            raise BadInputError(
                f"A pin for {wanted.seconds:g} s cannot be: it lasts at least a moment and at most a year.",
                fix="Say how long in seconds, e.g. 3600.",
            )
        pin = Pin(
            to=wanted.to,
            by=order.actor,
            reason=wanted.reason,
            since=now,
            until=now + wanted.seconds,
            tenant=wanted.tenant,
            task=wanted.task,
            model=wanted.model,
        )
        self._bus.publish(_TOPIC, msgspec.json.encode(_News(put=(pin,))))
        return Changed(answer=pin, subject=_named(pin), detail=f"to {pin.to} for {pin.until - now:g} s: {pin.reason}")

    async def _take(self, order: Order) -> Changed:
        about = order.read(About)
        pin = self.pins.take(tenant=about.tenant, task=about.task, model=about.model)
        self._bus.publish(_TOPIC, msgspec.json.encode(_News(taken=(about,))))
        return Changed(answer=pin, subject=_named(pin))

    def _hear(self, payload: bytes) -> None:
        news = msgspec.json.decode(payload, type=_News)
        for pin in news.put:
            self.pins.put(pin)
        for about in news.taken:
            self.pins.drop(tenant=about.tenant, task=about.task, model=about.model)

    def _tell(self, payload: bytes) -> None:
        del payload
        if self.pins.any:
            self._bus.publish(_TOPIC, msgspec.json.encode(_News(put=self.pins.holding(self._clock.now()))))


def _named(pin: Pin) -> str:
    about = (("model", pin.model), ("tenant", pin.tenant), ("task", pin.task))
    return ", ".join([f"{what} {name}" for what, name in about if name]) or "all calls"
