"""Do the report's tokens match what the engines counted themselves?"""

import asyncio
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from headway.app.service import ReadyReplica
from headway.core.usage import Usage

TIMEOUT: Final = 5.0
NAMES: Final = ("prompt_tokens_total", "prompt_tokens_cached_total", "tokens_predicted_total")
"""llama.cpp's counters since its start: tokens of prompts computed, taken from the cache, and written."""


class Counters(Struct, frozen=True, kw_only=True):
    """What engines counted, as tokens."""

    computed: int
    cached: int
    written: int


class Verdict(Struct, frozen=True, kw_only=True):
    """Whether two accounts agree, in words."""

    agree: bool | None
    """``None``: they cannot be compared."""
    words: str


def read_counters(metrics: str) -> Counters | None:
    """Counters from an engine's Prometheus page; ``None`` where one of them is missing."""
    found: dict[str, int] = {}
    for line in metrics.splitlines():
        name, _, value = line.removeprefix("llamacpp:").partition(" ")
        if name in NAMES:
            found[name] = int(float(value))
    if len(found) < len(NAMES):
        return None
    computed, cached, written = (found[name] for name in NAMES)
    return Counters(computed=computed, cached=cached, written=written)


async def fetch_counters(replicas: Sequence[ReadyReplica]) -> dict[str, Counters | None]:
    """Counters by the replica's id; ``None`` where it does not answer or does not count."""
    pages = await asyncio.gather(*(asyncio.to_thread(_fetch, replica.url) for replica in replicas))
    return {replica.id: page for replica, page in zip(replicas, pages, strict=True)}


def _fetch(url: str) -> Counters | None:
    try:
        with urllib.request.urlopen(f"{url.removesuffix('/v1')}/metrics", timeout=TIMEOUT) as page:  # noqa: S310 - an http URL of our own child
            return read_counters(page.read().decode(errors="replace"))
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return None  # the verdict says which


def restarted(replicas: Sequence[ReadyReplica]) -> tuple[str, ...]:
    """Replicas whose first process is gone: their counters began anew."""
    return tuple(replica.id for replica in replicas if replica.pid is not None and not _alive(replica.pid))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def judge(
    before: Mapping[str, Counters | None],
    after: Mapping[str, Counters | None],
    gone: Sequence[str],
    report: Usage,
) -> Verdict:
    """Compare the report's tokens with the growth of the engines' counters between two readings."""
    if gone:
        return Verdict(agree=None, words=f"restarted meanwhile, so counts began anew: {', '.join(gone)}")
    silent = [name for name in before if before[name] is None or after.get(name) is None]
    if silent:
        return Verdict(agree=None, words=f"{', '.join(silent)} gave no counters")
    if report.input_tokens is None or report.output_tokens is None or report.cache_read is None:
        return Verdict(agree=None, words="the report does not know the tokens of some calls (did one break off?)")
    engines = _growth(before, after)
    told = Counters(
        computed=report.input_tokens - report.cache_read, cached=report.cache_read, written=report.output_tokens
    )
    if engines == told:
        return Verdict(
            agree=True,
            words=f"{told.computed:,} prompt tokens computed, {told.cached:,} from the cache, {told.written:,} written",
        )
    return Verdict(
        agree=False,
        words="; ".join(
            f"{name}: report {ours:,}, engines {theirs:,}"
            for name, ours, theirs in (
                ("prompt tokens computed", told.computed, engines.computed),
                ("from the cache", told.cached, engines.cached),
                ("written", told.written, engines.written),
            )
            if ours != theirs
        ),
    )


def _growth(before: Mapping[str, Counters | None], after: Mapping[str, Counters | None]) -> Counters:
    pairs = [(old, new) for name, old in before.items() if old is not None and (new := after.get(name)) is not None]
    return Counters(
        computed=sum(new.computed - old.computed for old, new in pairs),
        cached=sum(new.cached - old.cached for old, new in pairs),
        written=sum(new.written - old.written for old, new in pairs),
    )
