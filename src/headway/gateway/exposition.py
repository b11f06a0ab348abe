"""Prometheus' text format, version 0.0.4: how figures are counted and written."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate


class Histogram:
    """Counts per bucket; the last one is for values above every bound."""

    __slots__ = ("_bucket", "_counts", "bounds", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.total = 0.0
        self._bucket = partial(bisect_left, bounds)
        self._counts: Counter[int] = Counter()

    @property
    def counts(self) -> list[int]:
        """By bucket, the one above every bound last."""
        return [self._counts[bucket] for bucket in range(len(self.bounds) + 1)]

    def observe(self, values: Sequence[float]) -> None:
        """Count ``values``."""
        self._counts.update(map(self._bucket, values))
        self.total += sum(values)


def head(name: str, kind: str, what: str) -> Iterator[str]:
    """What a family begins with."""
    yield f"# HELP {name} {what}"
    yield f"# TYPE {name} {kind}"


def family(name: str, kind: str, what: str, samples: Sequence[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """A family of counters or gauges: each label set with its value."""
    yield from head(name, kind, what)
    for labels, value in samples:
        yield f"{name}{braces(labels)} {value!r}"


def histograms(name: str, what: str, samples: Sequence[tuple[Mapping[str, str], Histogram]]) -> Iterator[str]:
    """A family of histograms; the bounds are part of each."""
    yield from head(name, "histogram", what)
    for labels, histogram in samples:
        for bound, count in zip((*histogram.bounds, "+Inf"), accumulate(histogram.counts), strict=True):
            yield f"{name}_bucket{braces({**labels, 'le': str(bound)})} {count}"
        yield f"{name}_sum{braces(labels)} {histogram.total!r}"
        yield f"{name}_count{braces(labels)} {sum(histogram.counts)}"


def braces(labels: Mapping[str, str]) -> str:
    """Labels as they stand after a name."""
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
