"""A person's word against the rules: from now until then, this goes there. Each has an end, a reason and an author."""

from msgspec import Struct

from headway.core.errors import BadInputError, NotFoundError


class Pin(Struct, frozen=True, kw_only=True):
    """One override."""

    to: str
    """The model that answers, as replicas serve it."""
    by: str
    """Who said so: a key's id, ``cli:USER``."""
    reason: str
    since: float
    """Epoch seconds."""
    until: float
    tenant: str = ""
    """What it is about; empty: of any tenant, any task, any name asked for."""
    task: str = ""
    model: str = ""

    def __post_init__(self) -> None:
        """Check what a person said.

        Raises:
            BadInputError: it has no reason, or ends before it begins.
        """
        if not self.reason.strip():
            raise BadInputError("A pin needs a reason.", fix="Say in a few words why the rules do not do.")
        if not self.since < self.until:
            raise BadInputError("A pin ends after it begins.", fix="Give it a length of time, e.g. 2 h.")

    def about(self) -> tuple[str, str, str]:
        """What it is about, as one value: task, model, tenant."""
        return self.task, self.model, self.tenant


class Pins:
    """Those that hold. The most particular wins: about a task before about a model, that before about a tenant."""

    def __init__(self) -> None:
        self.any = False
        """Whether there are some: mostly there are none, and then a call is asked nothing."""
        self._pins: dict[tuple[str, str, str], Pin] = {}

    def put(self, pin: Pin) -> Pin | None:
        """Let a pin hold, in place of any other about the same, which is returned."""
        before = self._pins.get(pin.about())
        self._pins[pin.about()] = pin
        self.any = True
        return before

    def take(self, *, tenant: str = "", task: str = "", model: str = "") -> Pin:
        """Let a pin hold no more.

        Raises:
            NotFoundError: there is none about this.
        """
        try:
            pin = self._pins.pop((task, model, tenant))
        except KeyError as error:
            raise NotFoundError("There is no such pin.", fix="See those that hold: headway pins.") from error
        self.any = bool(self._pins)
        return pin

    def drop(self, *, tenant: str = "", task: str = "", model: str = "") -> None:
        """As `take`, where there is one."""
        self._pins.pop((task, model, tenant), None)
        self.any = bool(self._pins)

    def find(self, *, tenant: str, task: str, model: str, now: float) -> Pin | None:
        """The pin for a call at ``now`` (epoch seconds). Those that have ended are forgotten as they are met."""
        for its_task in (task, "") if task else ("",):
            for its_model in (model, ""):
                for its_tenant in (tenant, "") if tenant else ("",):
                    about = (its_task, its_model, its_tenant)
                    pin = self._pins.get(about)
                    if pin is None:
                        continue
                    if pin.since <= now < pin.until:
                        return pin
                    if now >= pin.until:
                        del self._pins[about]
                        self.any = bool(self._pins)
        return None

    def holding(self, now: float) -> tuple[Pin, ...]:
        """All that hold at ``now``, the next to end first."""
        return tuple(sorted((pin for pin in self._pins.values() if now < pin.until), key=lambda pin: pin.until))
