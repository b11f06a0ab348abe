"""Figures of loads, for tests that change some of them."""

from headway.bench.calibrate import Calibration
from headway.bench.figures import Figures

NOTHING = Figures(
    sessions=0,
    tasks=0,
    failed=0,
    unfinished=0,
    warm_up=0,
    seconds=0.0,
    calls=0,
    errors={},
    spreads=(),
    n=None,
    input_tokens=None,
    output_tokens=None,
    cached_tokens=None,
    tokens_told_by=0,
    tasks_per_second=0.0,
    calls_per_second=0.0,
    output_per_second=None,
    goodput=None,
    attained=None,
)
"""Of a load in which nothing happened."""

PROMPT = Calibration(p50=0.0001, p99=0.0002, worst=0.0003, chunks=300)
"""Of a client that reads at once."""
