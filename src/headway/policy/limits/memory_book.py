"""The book in memory: for one process that need not remember, for simulation, and as the measure of the other books."""

from collections.abc import Callable

from headway.policy.limits.book import (
    LEASE_SECONDS,
    RATE_SECONDS,
    Exchange,
    Held,
    Kind,
    LeftError,
    Reply,
    Standing,
    Use,
    Want,
    counted_at,
    portion,
    rate_wait,
)


class _Holder:
    __slots__ = ("held", "number", "seen", "settled")

    def __init__(self, now: float) -> None:
        self.held: dict[tuple[Kind, str], int] = {}
        self.number = 0
        self.settled = 0
        self.seen = now


class MemoryBook:
    """Counters in dictionaries.

    Args:
        now: seconds on an axis that never runs backwards.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._used: dict[str, int] = {}
        self._since: dict[str, float] = {}
        self._touched: dict[str, float] = {}
        self._slots: dict[str, dict[int, int]] = {}
        self._holders: dict[str, _Holder] = {}
        self._warned: set[str] = set()

    def join(self, holder: str) -> None:
        """A worker begins."""
        self._holders[holder] = _Holder(self._now())

    def exchange(self, holder: str, exchange: Exchange) -> Reply:
        """Take a report, then answer wishes in order."""
        now = self._now()
        known = self._holders.get(holder)
        if known is None:
            raise LeftError(holder)
        known.seen = now
        if exchange.number > known.number:
            known.number, known.settled = exchange.number, exchange.settled
            for held in exchange.held:
                self._report(known, held)
            for correction in exchange.corrections:
                slots = self._slots.get(correction.counter, {})
                if correction.at in slots:
                    slots[correction.at] = max(slots[correction.at] - correction.unused, 0)
        first = tuple(counter for counter in exchange.warned if counter not in self._warned)
        self._warned.update(first)
        return Reply(tuple([self._answer(known, want, now) for want in exchange.wants]), first)

    def settled(self, holder: str) -> int | None:
        """How many settlements of this holder are in the book; ``None``: it has left."""
        known = self._holders.get(holder)
        return None if known is None else known.settled

    def leave(self, holder: str, charges: dict[str, int]) -> bool:
        """A worker has ended."""
        if self._holders.pop(holder, None) is None:
            return False
        for counter, amount in charges.items():
            self._add(counter, amount)
        return True

    def uses(self, counters: tuple[str, ...]) -> tuple[Use, ...]:
        """Where totals stand."""
        return tuple([Use(self._used.get(counter, 0), self._held("total", counter)) for counter in counters])

    def forget(self, untouched: float) -> None:
        """Forget totals that nothing was added to for so many seconds."""
        before = self._now() - untouched
        for counter in [counter for counter, at in self._touched.items() if at < before]:
            for kept in (self._touched, self._used, self._since):
                kept.pop(counter, None)
            self._warned.discard(counter)

    def close(self) -> None:
        """Nothing to let go of."""

    def _report(self, holder: _Holder, report: Held) -> None:
        if report.used:
            self._add(report.counter, report.used)
        if report.held:
            holder.held[report.kind, report.counter] = report.held
        else:
            holder.held.pop((report.kind, report.counter), None)

    def _add(self, counter: str, amount: int) -> None:
        self._used[counter] = self._used.get(counter, 0) + amount
        self._touched[counter] = self._now()

    def _answer(self, holder: _Holder, want: Want, now: float) -> Standing:
        match want.kind:
            case "total":
                used = self._used.get(want.counter, 0)
                return self._draw(holder, want, used, self._held("total", want.counter))
            case "gauge":
                alive = now - LEASE_SECONDS
                return self._draw(holder, want, 0, self._held("gauge", want.counter, alive))
            case "rate":
                return self._draw_rate(want, now)
            case "elapsed":
                self._touched[want.counter] = now
                return Standing(0, 0, 0, age=max(now - self._since.setdefault(want.counter, now), 0.0))

    def _held(self, kind: Kind, counter: str, seen: float = float("-inf")) -> int:
        return sum(one.held.get((kind, counter), 0) for one in self._holders.values() if one.seen >= seen)

    def _draw(self, holder: _Holder, want: Want, used: int, held: int) -> Standing:
        given = portion(want.limit - used - held, want.least, want.need)
        if given:
            key = (want.kind, want.counter)
            holder.held[key] = holder.held.get(key, 0) + given
        return Standing(given, used, held + given)

    def _draw_rate(self, want: Want, now: float) -> Standing:
        slots = self._slots.setdefault(want.counter, {})
        for at in [at for at in slots if at <= now - RATE_SECONDS]:
            del slots[at]
        used = sum(slots.values())
        left = want.limit - used
        given = portion(left, want.least, want.need)
        at = counted_at(now)
        if given:
            slots[at] = slots.get(at, 0) + given
            return Standing(given, used + given, 0, at)
        return Standing(0, used, 0, at, wait=rate_wait(sorted(slots.items()), want.least - left, now))
