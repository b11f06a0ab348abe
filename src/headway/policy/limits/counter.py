"""One worker's part of one counter, and the set of them that one caller's calls are reserved on."""

from math import inf

from msgspec import Struct, field

from headway.core.access import Caller
from headway.core.limits import Limit, Measure, Window
from headway.policy.limits.book import Held, Kind


class Counter(Struct, eq=False):
    """What this worker has of a counter.

    Of what was ``drawn`` from the book, ``spent`` is settled, ``free`` can be had by calls, and the rest is reserved
    for calls under way. A reservation takes from ``free`` and touches nothing else: it is what every call of
    everybody pays for.
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
    drawn: int = 0
    """Since the last report; of a rate it is not kept, for the book counts that as used."""
    free: int = 0
    """Below zero after a call used more than was reserved for it."""
    spent: int = 0
    """Settled and not reported yet."""
    base: int = 0
    """Use by all workers as the book told it, with all that this worker had free counted in."""
    warned: bool = False
    expires: float = inf
    """Until when ``free`` may be handed out: of a rate, for a second."""
    at: int = 0
    """Of a rate: which second ``free`` counts from."""
    back: dict[int, int] = field(default_factory=dict[int, int])
    """Of a rate: by second, what was drawn and not used."""
    opened: float | None = None
    """Of elapsed time: its beginning."""
    answered: int = 0
    """The number of the report that the book last told of it in answer to."""
    used: int = 0
    """As the book last told, like ``held`` and ``wait``."""
    held: int = 0
    wait: float | None = None

    @property
    def seen(self) -> int:
        """Use by all workers as far as this one knows, its own reservations included."""
        return self.base - self.free

    @property
    def at_rest(self) -> bool:
        """Whether nothing of it would be lost if it were forgotten."""
        return not (self.drawn or self.free or self.spent or self.back)

    def give_up(self) -> None:
        """Hand back what is free."""
        free = self.free
        if free <= 0:
            return
        if self.kind == "rate":
            self.back[self.at] = self.back.get(self.at, 0) + free
        else:
            self.drawn -= free
        self.base -= free
        self.free = 0

    def report(self) -> Held:
        """What became of what was drawn. A debt is told in what was used, and is none any more."""
        reserved = self.drawn - self.spent - self.free
        if self.free < 0:
            self.base -= self.free
            self.free = 0
        told = Held(self.name, self.kind, self.spent, reserved + self.free)
        self.drawn, self.spent = told.held, 0
        return told


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
    warning: list[Row] = field(default_factory=list[Row])
    """Those of the rows that warn."""
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
        row = (counter, which, limit.stop, limit.warn)
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
        self.rows.append(row)
        if limit.warn is not None:
            self.warning.append(row)

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
