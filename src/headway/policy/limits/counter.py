"""One worker's part of one counter, and the set of them that one caller's calls are reserved on."""

from math import inf

from msgspec import Struct, field

from headway.core.access import Caller
from headway.core.limits import Limit, Measure, Window
from headway.policy.limits.book import Kind


class Counter(Struct, eq=False):
    """What this worker has of a counter. Of what it holds, ``open`` is reserved for calls and ``free`` is not.

    ``open + free + spent`` is what was drawn and not reported yet, whatever calls do.
    """

    name: str
    kind: Kind
    owner: str
    """For a person: ``key k1``, ``tenant acme``, ``task 3f2a``."""
    measure: Measure
    window: Window
    ends: float | None = None
    """When the day or the month is over; epoch seconds."""
    warn: int | None = None
    free: int = 0
    """Below zero after a call used more than was reserved for it."""
    open: int = 0
    spent: int = 0
    """Settled and not reported yet."""
    seen: int = 0
    """Use by all workers as far as this one knows, its own reservations included."""
    warned: bool = False
    expires: float = inf
    """Until when ``free`` may be handed out: of a rate, for a second."""
    at: int = 0
    """Of a rate: which second ``free`` counts from."""
    back: dict[int, int] = field(default_factory=dict[int, int])
    """Of a rate: by second, what was drawn and not used."""
    opened: float | None = None
    """Of elapsed time: its beginning."""
    touched: float = 0.0
    answered: int = 0
    """The number of the report that the book last told of it in answer to."""
    used: int = 0
    """As the book last told, like ``held`` and ``wait``."""
    held: int = 0
    wait: float | None = None

    @property
    def at_rest(self) -> bool:
        """Whether nothing of it would be lost if it were forgotten."""
        return not (self.open or self.free or self.spent or self.back)

    def give_up(self) -> None:
        """Hand back what is free; a debt stands in what is reported as used."""
        if self.kind == "rate" and self.free > 0:
            self.back[self.at] = self.back.get(self.at, 0) + self.free
        self.free = 0


Row = tuple[Counter, int, int, int | None]
"""A counter, which of a call's amounts it counts (0: one, 1: tokens, 2: money), where it stops, where it warns."""


class Plan(Struct, eq=False):
    """Every counter that one caller's calls in one task are reserved on, for one day."""

    number: int
    caller: Caller
    since: float
    """Epoch seconds from which it is right, up to ``until``."""
    until: float
    rows: list[Row] = field(default_factory=list[Row])
    totals: list[tuple[Counter, int]] = field(default_factory=list[tuple[Counter, int]])
    rates: list[tuple[Counter, int]] = field(default_factory=list[tuple[Counter, int]])
    gauges: list[Counter] = field(default_factory=list[Counter])
    elapsed: tuple[Counter, Limit] | None = None
    open: int = 0
    """Grants that are not settled."""
    touched: float = 0.0

    def add(self, counter: Counter, which: int, limit: Limit) -> None:
        """Reserve on ``counter`` too."""
        counter.warn = limit.warn
        match counter.kind:
            case "total":
                self.totals.append((counter, which))
            case "rate":
                self.rates.append((counter, which))
            case "gauge":
                self.gauges.append(counter)
            case "elapsed":
                self.elapsed = (counter, limit)
                return
        self.rows.append((counter, which, limit.stop, limit.warn))

    def counters(self) -> list[Counter]:
        """All of them."""
        found = [row[0] for row in self.rows]
        return found if self.elapsed is None else [*found, self.elapsed[0]]


class Warned(Struct, frozen=True, kw_only=True):
    """A level that warns was reached; told once, and again only after use had fallen below it."""

    counter: str
    owner: str
    measure: Measure
    window: Window
    warn: int
    stop: int
    used: int
