"""Ends that are a flush's and not the work's: spans that were all closed together when their trace was exported."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

TOGETHER: Final = 0.005
"""Seconds within which ends are one moment."""
FEWEST: Final = 4
"""Spans that have to end in one moment: fewer may do so by chance, or be cut off together by a timeout."""


def ended_by_flush(leaves: Sequence[tuple[float, float]], last: float) -> bool:
    """Whether at least half of them end in one moment, the last, though they started apart.

    Args:
        leaves: start and end of what holds nothing and has an end in the record; seconds.
        last: when the last span of all ended.
    """
    together = sorted(start for start, end in leaves if last - end <= TOGETHER)
    apart = sum(later - earlier > TOGETHER for earlier, later in pairwise(together))
    return apart + 1 >= FEWEST and 2 * len(together) >= len(leaves)
