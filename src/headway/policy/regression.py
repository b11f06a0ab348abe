"""A straight line learnt as it goes: recursive least squares that outliers move little and old data less and less."""

from collections.abc import Sequence
from typing import Final

_FORGET: Final = 0.99
"""Weight of an observation that one newer one makes older: half after 69."""
_TUNING: Final = 1.345
"""Residuals beyond this many standard deviations count linearly: Huber's constant, 95 % efficient on normal noise."""
_UPPER_QUARTILE: Final = 1.15
"""Of the absolute value of normal noise, in standard deviations."""
_UP: Final = 1.1**0.75
_DOWN: Final = 1.1**-0.25
"""Steps that balance where a quarter of the residuals is larger."""
_LEAST: Final = 1e-9
_WIDEST: Final = 1e6
"""Bound of the uncertainty, so that forgetting what is never seen again does not blow it up."""


class Regression:
    """y = coefficients · x, from observations that come one by one.

    Ljung's recursive least squares with exponential forgetting; each observation is weighted by Huber's function of its
    residual. Until enough is seen it says what the prior says. It is written out for three coefficients, since every
    call that ends is learnt from; where there are fewer, the rest are 0 and stay so.

    Args:
        prior: coefficients to begin with, three at most.
        spread: standard deviation of each around its prior, against that of the noise: larger learns faster.
    """

    __slots__ = ("_covariance", "_scale", "_size", "_solution", "count")

    def __init__(self, prior: Sequence[float], spread: Sequence[float]) -> None:
        self._size = len(prior)
        a, b, c = (*prior, 0.0, 0.0)[:3]
        self._solution = (a, b, c)
        u, v, w = (*spread, 0.0, 0.0)[:3]
        self._covariance = (u * u, 0.0, 0.0, v * v, 0.0, w * w)
        """Its upper triangle, row by row."""
        self._scale: float | None = None
        self.count = 0
        """Observations so far."""

    @property
    def coefficients(self) -> tuple[float, ...]:
        """As they are known now."""
        return self._solution[: self._size]

    def predict(self, x: Sequence[float]) -> float:
        """What y is expected to be at ``x``."""
        return sum(c * v for c, v in zip(self.coefficients, x, strict=True))

    def observe(self, x: Sequence[float], y: float) -> None:
        """``y`` was seen at ``x``."""
        x0, x1, x2 = x if self._size == len(self._solution) else (*x, 0.0, 0.0)[:3]
        c0, c1, c2 = self._solution
        p00, p01, p02, p11, p12, p22 = self._covariance
        residual = y - c0 * x0 - c1 * x1 - c2 * x2
        s0, s1, s2 = p00 * x0 + p01 * x1 + p02 * x2, p01 * x0 + p11 * x1 + p12 * x2, p02 * x0 + p12 * x1 + p22 * x2
        noise = _FORGET / self._weight(abs(residual)) + s0 * x0 + s1 * x1 + s2 * x2
        gain = residual / noise
        self._solution = (c0 + s0 * gain, c1 + s1 * gain, c2 + s2 * gain)
        g0, g1 = s0 / noise, s1 / noise
        covariance = (p00 - g0 * s0, p01 - g0 * s1, p02 - g0 * s2, p11 - g1 * s1, p12 - g1 * s2, p22 - s2 / noise * s2)
        p00, p01, p02, p11, p12, p22 = covariance
        self._covariance = (
            min(p00 / _FORGET, _WIDEST),
            min(p01 / _FORGET, _WIDEST),
            min(p02 / _FORGET, _WIDEST),
            min(p11 / _FORGET, _WIDEST),
            min(p12 / _FORGET, _WIDEST),
            min(p22 / _FORGET, _WIDEST),
        )
        self.count += 1

    def _weight(self, size: float) -> float:
        """Huber's, by a scale that follows a quartile of the residuals: an outlier is one step to it."""
        scale = self._scale
        if scale is None:
            self._scale = max(size, _LEAST)
            return 1.0
        self._scale = scale * _UP if size > scale else max(scale * _DOWN, _LEAST)
        limit = _TUNING * scale / _UPPER_QUARTILE
        return 1.0 if size <= limit else limit / size
