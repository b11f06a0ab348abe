"""What a cache has done, rule by rule, and as a page of Prometheus' text format."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from headway.core.span import AnswerSource
from headway.gateway.exposition import family
from headway.policy.cache.kept import CacheFigures, Kept
from headway.policy.cache.shadow import ShadowFigures

_MICRO: Final = 1_000_000


class RuleFigures(Struct, kw_only=True):
    """What became of the calls that a rule covers."""

    hits: dict[str, int] = msgspec.field(default_factory=Counter[str])
    """By `AnswerSource`."""
    misses: int = 0
    """Calls made because no answer was there."""
    refreshes: int = 0
    """Calls made to have a stale answer anew."""
    bypassed: dict[str, int] = msgspec.field(default_factory=Counter[str])
    """Calls that the cache had nothing to do with, by why."""
    kept: int = 0
    not_kept: dict[str, int] = msgspec.field(default_factory=Counter[str])
    """Answers that were not kept, by why."""
    bytes_served: int = 0
    seconds_saved: float = 0.0
    cost_saved: int = 0
    """Micro-USD, of the answers whose cost is known."""
    cost_unknown: int = 0
    """Answers given whose cost is not."""

    def gave(self, kept: Kept, source: AnswerSource, waited: float) -> None:
        """An answer was given, after ``waited`` seconds."""
        self.hits[source] += 1
        self.bytes_served += len(kept.body)
        self.seconds_saved += max(0.0, kept.seconds - waited)
        if kept.cost is None:
            self.cost_unknown += 1
        else:
            self.cost_saved += kept.cost


class Memory(Struct, frozen=True, kw_only=True):
    """What is kept in this process now."""

    entries: int
    bytes: int
    limit: int
    """Most bytes."""
    worth: float
    """Seconds that what is kept now has saved."""
    waiting: int
    """Calls under way for whose answers others may wait."""
    waiters: int
    """Calls that wait for those."""


class Shared(Struct, frozen=True, kw_only=True):
    """How it goes with the store that several workers share."""

    lookups: int
    found: int
    troubles: int
    """Times it could not be used."""
    turned_away: int
    """Lookups and answers that were given up because too many were under way."""
    up: bool


class Report(Struct, frozen=True, kw_only=True):
    """Everything at one moment."""

    memory: Memory
    changes: CacheFigures
    rules: Mapping[str, RuleFigures]
    shadows: Mapping[str, ShadowFigures]
    """By rule, of all tenants together."""
    shared: Shared | None
    """``None``: nothing is shared."""


def removed(changes: CacheFigures) -> dict[str, int]:
    """Answers that are kept no more, by why."""
    return {"evicted": changes.evicted, "expired": changes.expired, "dropped": changes.invalidated}


def together(reports: Sequence[Report]) -> Report:
    """Those of several workers, at least one, as one: figures are summed, and true is what is true of all."""
    return cast("Report", _added(reports))


def _added(parts: Sequence[Any]) -> Any:  # noqa: ANN401 - whatever a report is made of
    known = [part for part in parts if part is not None]
    if not known:
        return None
    first = known[0]
    if isinstance(first, Struct):
        fields = first.__struct_fields__
        return type(first)(**{name: _added([getattr(part, name) for part in known]) for name in fields})
    if isinstance(first, Mapping):
        keys = dict.fromkeys(key for part in known for key in part)
        return {key: _added([part[key] for part in known if key in part]) for key in keys}
    return all(known) if isinstance(first, bool) else sum(known)


def page(report: Report) -> bytes:
    """The families of ``headway_cache_…``, version 0.0.4 of the format."""
    return ("\n".join(_lines(report)) + "\n").encode()


def _lines(report: Report) -> Iterator[str]:
    rules = report.rules.items()
    hits = [({"rule": name, "source": source}, n) for name, one in rules for source, n in one.hits.items()]
    yield from _family("hits_total", "counter", "Answers given again, by where they came from.", hits)
    misses = [({"rule": name}, one.misses) for name, one in rules]
    yield from _family("misses_total", "counter", "Calls made because no answer was there.", misses)
    anew = [({"rule": name}, one.refreshes) for name, one in rules]
    yield from _family("refreshes_total", "counter", "Calls made to have a stale answer anew.", anew)
    passed = [({"rule": name, "reason": reason}, n) for name, one in rules for reason, n in one.bypassed.items()]
    yield from _family("bypassed_total", "counter", "Calls that were to pass the cache by, or had to.", passed)
    kept = [({"rule": name}, one.kept) for name, one in rules]
    yield from _family("kept_total", "counter", "Answers that were kept.", kept)
    lost = [({"rule": name, "reason": reason}, n) for name, one in rules for reason, n in one.not_kept.items()]
    yield from _family("not_kept_total", "counter", "Answers that were not kept, by why.", lost)
    served = [({"rule": name}, one.bytes_served) for name, one in rules]
    yield from _family("served_bytes_total", "counter", "Bytes of answers given again.", served)
    seconds = [({"rule": name}, one.seconds_saved) for name, one in rules]
    yield from _family("saved_seconds_total", "counter", "Seconds that the calls not made would have taken.", seconds)
    money = [({"rule": name}, one.cost_saved / _MICRO) for name, one in rules]
    yield from _family("saved_usd_total", "counter", "Money not spent, where the cost is known.", money)
    unknown = [({"rule": name}, one.cost_unknown) for name, one in rules]
    yield from _family("cost_unknown_total", "counter", "Answers given again whose cost is not known.", unknown)
    yield from _memory(report)
    yield from _shadows(report.shadows)
    if report.shared is not None:
        yield from _shared(report.shared)


def _memory(report: Report) -> Iterator[str]:
    memory, changes = report.memory, report.changes
    gone = [({"reason": reason}, n) for reason, n in removed(changes).items()]
    yield from _family("removed_total", "counter", "Answers that are kept no more: for room, by age, by order.", gone)
    yield from _family("entries", "gauge", "Answers kept in memory.", [({}, memory.entries)])
    yield from _family("bytes", "gauge", "Memory that they take.", [({}, memory.bytes)])
    yield from _family("limit_bytes", "gauge", "Memory that they may take.", [({}, memory.limit)])
    what = "Seconds saved so far by what is kept now; by its bytes, it is the value density."
    yield from _family("worth_seconds", "gauge", what, [({}, memory.worth)])
    yield from _family("flights", "gauge", "Calls under way that others may wait for.", [({}, memory.waiting)])
    yield from _family("waiting", "gauge", "Calls that wait for another's answer.", [({}, memory.waiters)])


def _shadows(shadows: Mapping[str, ShadowFigures]) -> Iterator[str]:
    counts = [
        ({"rule": name, "outcome": outcome}, n)
        for name, one in shadows.items()
        for outcome, n in (
            ("asked", one.asked),
            ("found", one.would_serve),
            ("same", one.agreed),
            ("other", one.differed),
        )
    ]
    what = "Questions compared by meaning: asked, an answer found, and whether the fresh one said the same."
    yield from _family("shadow_total", "counter", what, counts)
    bounds = [({"rule": name}, error[2]) for name, one in shadows.items() if (error := one.error()) is not None]
    what = "Share of answers found by meaning that are wrong, upper bound of its 95 % interval."
    yield from _family("shadow_error_upper", "gauge", what, bounds)


def _shared(shared: Shared) -> Iterator[str]:
    yield from _family("shared_up", "gauge", "Processes that the shared store answers.", [({}, int(shared.up))])
    yield from _family("shared_lookups_total", "counter", "Answers looked for there.", [({}, shared.lookups)])
    yield from _family("shared_found_total", "counter", "Answers found there.", [({}, shared.found)])
    yield from _family("shared_troubles_total", "counter", "Times it could not be used.", [({}, shared.troubles)])
    what = "Looks and answers given up because too many were under way."
    yield from _family("shared_turned_away_total", "counter", what, [({}, shared.turned_away)])


def _family(name: str, kind: str, what: str, samples: Sequence[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    return family(f"headway_cache_{name}", kind, what, samples)
