"""A summary of the gaps between a stream's tokens in constant memory, however long the stream."""

from collections import Counter
from math import ceil, log
from typing import Final

from headway.core.span import Itl

_GROWTH: Final = 1.02
"""Each bucket's upper edge over its lower one: quantiles are right within 1 %, as in DDSketch (arXiv 1908.10693)."""
_LOG_GROWTH: Final = log(_GROWTH)
_SHORTEST: Final = 1e-6
"""Seconds; tokens that came in one read have no gap to speak of."""
_AT_ONCE: Final = 512
"""Gaps that are counted together: this runs once a token, and counting many in one go takes a third of the time."""


class Gaps:
    """Counts gaps in buckets of logarithmic width; count, mean and maximum are exact."""

    __slots__ = ("_buckets", "_count", "_fresh", "_max", "_sum")

    def __init__(self) -> None:
        self._fresh: list[float] = []
        """Not counted yet."""
        self._buckets: Counter[int | None] = Counter()
        self._count = 0
        self._sum = 0.0
        self._max = 0.0

    def add(self, gap: float) -> None:
        """One gap, in seconds."""
        fresh = self._fresh
        fresh.append(gap)
        if len(fresh) == _AT_ONCE:
            self._fold()

    def summary(self) -> Itl | None:
        """The summary in seconds; ``None`` when there was no gap. Quantiles are by nearest rank."""
        self._fold()
        if not self._count:
            return None
        return Itl(
            count=self._count,
            mean=self._sum / self._count,
            p50=self._quantile(0.50),
            p95=self._quantile(0.95),
            max=self._max,
        )

    def _fold(self) -> None:
        fresh, self._fresh = self._fresh, []
        self._buckets.update([None if gap < _SHORTEST else ceil(log(gap) / _LOG_GROWTH) for gap in fresh])
        self._count += len(fresh)
        self._sum += sum(fresh)
        self._max = max(self._max, *fresh, 0.0)

    def _quantile(self, q: float) -> float:
        rank = ceil(q * self._count)
        seen = self._buckets.get(None, 0)
        if seen >= rank:
            return 0.0
        for bucket in sorted(bucket for bucket in self._buckets if bucket is not None):
            seen += self._buckets[bucket]
            if seen >= rank:
                return min(self._max, 2 * _GROWTH**bucket / (_GROWTH + 1))
        return self._max
