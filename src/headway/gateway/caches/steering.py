"""How the cache is looked at and cleared while the gateway runs: ``/admin/cache``."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from headway.gateway.admin import Admin, Changed, Order
from headway.gateway.caches.figures import Memory, Report, RuleFigures, Shared, removed, together
from headway.gateway.caches.station import ResponseCache
from headway.policy.cache.labels import Drop

PATH: Final = "/admin/cache"


class Error(Struct, frozen=True, kw_only=True):
    """How often answers by meaning would have been wrong: 0 to 1, with an interval of 95 %."""

    share: float
    lower: float
    upper: float


class Shadow(Struct, frozen=True, kw_only=True):
    """What was measured of a rule that compares by meaning."""

    asked: int
    found: int
    same: int
    other: int
    error: Error | None
    """``None``: nothing was compared yet."""


class Shown(Struct, frozen=True, kw_only=True):
    """A `Report` for a machine."""

    schema: str = "headway.cache/1"
    workers: int
    """How many serve and have told theirs: it is of all these together."""
    memory: Memory
    removed: dict[str, int]
    rules: Mapping[str, RuleFigures]
    shadows: dict[str, Shadow]
    shared: Shared | None


class Dropped(Struct, frozen=True, kw_only=True):
    """What has gone."""

    schema: str = "headway.cache-drop/1"
    dropped: int
    """Answers that were kept, by all these workers together."""
    workers: int
    """How many have dropped theirs and said so; the others drop theirs as well."""


def offer(
    cache: ResponseCache,
    admin: Admin,
    reports: Callable[[], Awaitable[Sequence[Report]]],
    elsewhere: Callable[[bytes], Awaitable[Sequence[int]]],
) -> None:
    """Answer requests to look at the cache and to drop answers.

    Args:
        cache: this worker's.
        admin: where they come in.
        reports: those of all workers.
        elsewhere: has the other workers drop what this message names (`dropped_as_told`), and tells their counts.
    """

    async def show(order: Order) -> Shown:
        del order
        return shown(await reports())

    async def drop(order: Order) -> Changed:
        what = order.read(Drop)
        counts = [cache.drop(what), *await elsewhere(msgspec.json.encode(what))]
        answer = Dropped(dropped=sum(counts), workers=len(counts))
        return Changed(answer=answer, subject=_subject(what), detail=f"{answer.dropped} dropped")

    admin.on_show(PATH, show)
    admin.on_change("POST", f"{PATH}/drop", "cache.drop", drop)


def dropped_as_told(cache: ResponseCache, message: bytes) -> int:
    """Drop what another worker says; how many answers were kept."""
    return cache.dropped(msgspec.json.decode(message, type=Drop).labels())


def shown(reports: Sequence[Report]) -> Shown:
    """The workers' reports, at least one, for a machine."""
    report = together(reports)
    shadows: dict[str, Shadow] = {}
    for name, one in report.shadows.items():
        error = one.error()
        shadows[name] = Shadow(
            asked=one.asked,
            found=one.would_serve,
            same=one.agreed,
            other=one.differed,
            error=None if error is None else Error(share=error[0], lower=error[1], upper=error[2]),
        )
    return Shown(
        workers=len(reports),
        memory=report.memory,
        removed=removed(report.changes),
        rules=report.rules,
        shadows=shadows,
        shared=report.shared,
    )


def _subject(what: Drop) -> str:
    named = {"rule": what.rule, "version": what.version, "tenant": what.tenant}
    parts = [f"tag {tag}" for tag in what.tags] + [f"{name} {value}" for name, value in named.items() if value]
    return "answers: " + (", ".join(parts) or "all")
