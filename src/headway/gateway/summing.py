"""Pages of metrics of several workers made one: the sum of each sample, over those that are there and those that were.

What has died is counted on with what it told last, so that no counter ever goes back.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

_SAME: Final = frozenset({"headway_replica_up"})
"""Gauges that all workers agree on."""
_LARGEST: Final = frozenset({"headway_cache_shadow_error_upper", "headway_replica_breaker"})
"""Gauges that are bounds or states, of which the largest counts."""


class _Family(Struct):
    head: list[str]
    gauge: bool
    samples: dict[str, float]
    """By name and labels, as they are written."""


class Figures:
    """Samples of one page or of several."""

    def __init__(self, *pages: bytes) -> None:
        self._families: dict[str, _Family] = {}
        for page in pages:
            self.add(page)

    def add(self, page: bytes, *, gauges: bool = True) -> None:
        """Add the samples of a page in Prometheus' text format; without ``gauges``, only what it counted."""
        family: _Family | None = None
        head: list[str] = []
        skipped = same = largest = False
        for line in page.decode().splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ", 3)
                skipped = kind == "gauge" and not gauges
                family = self._families.setdefault(name, _Family([*head, line], kind == "gauge", {}))
                head = []
                same, largest = name in _SAME, name in _LARGEST
            elif line.startswith("#"):
                head = [line]
            elif family is not None and line and not skipped:
                sample, _, value = line.rpartition(" ")
                before = family.samples.get(sample)
                number = _number(value)
                if before is not None and not same:
                    number = max(before, number) if largest else before + number
                family.samples[sample] = number

    def page(self) -> bytes:
        """All of it as a page."""
        lines = list[str]()
        for family in self._families.values():
            lines += family.head
            lines += [f"{sample} {value!r}" for sample, value in family.samples.items()]
        return ("\n".join(lines) + "\n").encode() if lines else b""


def summed(pages: Iterable[bytes], departed: bytes) -> bytes:
    """One page of those of all workers, and of what those counted that are gone."""
    figures = Figures(*pages)
    figures.add(departed, gauges=False)
    return figures.page()


def counted(*pages: bytes) -> bytes:
    """What these pages counted; how things stood is left out."""
    figures = Figures()
    for page in pages:
        figures.add(page, gauges=False)
    return figures.page()


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)
