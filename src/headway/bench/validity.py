"""Whether a campaign measured its endpoint, or its client: numbers that the client has spoiled are refused."""

from collections.abc import Sequence
from typing import Final

from headway.bench.arrivals import Arrivals, Open
from headway.bench.calibrate import Calibration
from headway.bench.campaign import Campaign
from headway.bench.figures import Figures, Spread

_LAG: Final = 0.01
"""Of the median TTFT that the 99th percentile of the client's lag may be."""
_ERROR: Final = 0.03
"""Of the median TTFT that the client's own error may be at p99."""
_LEAST_LAG: Final = 0.0005
"""Seconds that are within what a timer can do."""
_RATE: Final = 0.02
_CPU: Final = 0.7
_FEW: Final = 50
"""Arrivals below which their rate says nothing: of fifty, chance alone moves a Poisson's by a seventh."""


def troubles(campaign: Campaign, figures: Figures, load: Arrivals, calibration: Calibration) -> tuple[str, ...]:
    """What the client did to the numbers, a sentence each; none: they are the endpoint's."""
    found: list[str] = []
    lag, ttft = (_at(figures.spreads, name) for name in ("lag", "TTFT"))
    if lag is not None and ttft is not None:
        most = max(_LAG * ttft[0], _LEAST_LAG)
        if lag[1] > most:
            found.append(
                f"The client was late: at p99 it turned to a call {lag[1] * 1e3:.1f} ms after it should have, more than"
                f" the {most * 1e3:.1f} ms that would not matter. Use fewer tasks at a time, or a faster machine."
            )
    if ttft is not None and calibration.p99 > max(_ERROR * ttft[0], _LEAST_LAG):
        found.append(
            f"The client reads late: before the load it read {calibration.p99 * 1e3:.1f} ms (p99) after a known engine"
            f" had sent, more than {_ERROR:.0%} of the median TTFT. Other work on this machine may be the reason."
        )
    share = campaign.cpu / campaign.seconds if campaign.seconds else 0.0
    if share > _CPU:
        found.append(
            f"The client used {share:.0%} of a core, more than {_CPU:.0%}: it may have been the limit. Use fewer tasks"
            " at a time, or a faster machine."
        )
    if isinstance(load, Open) and load.rate is not None and load.written.startswith("constant"):
        missed = _missed(campaign.begun, load.rate)
        if missed is not None and abs(missed) > _RATE:
            found.append(f"The load missed its rate by {missed:+.1%}, more than {_RATE:.0%}.")
    return tuple(found)


def _at(spreads: Sequence[Spread], name: str) -> tuple[float, float] | None:
    """Median and 99th percentile."""
    for spread in spreads:
        if spread.name == name and spread.quantiles:
            return spread.quantiles[0].value, spread.quantiles[-1].value
    return None


def _missed(began: Sequence[float], rate: float) -> float | None:
    """By how much the rate at which sessions began differs from what was asked for."""
    if len(began) < _FEW:
        return None
    seconds = began[-1] - began[0]
    return (len(began) - 1) / seconds / rate - 1 if seconds else None
