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
    residual. Until enough is seen it says what the prior says.

    Args:
        prior: coefficients to begin with.
        spread: standard deviation of each around its prior, against that of the noise: larger learns faster.
    """

    def __init__(self, prior: Sequence[float], spread: Sequence[float]) -> None:
        self.coefficients = list(prior)
        size = len(self.coefficients)
        self._covariance = [[spread[i] ** 2 if i == j else 0.0 for j in range(size)] for i in range(size)]
        self._scale: float | None = None
        self.count = 0
        """Observations so far."""

    def predict(self, x: Sequence[float]) -> float:
        """What y is expected to be at ``x``."""
        return sum(c * v for c, v in zip(self.coefficients, x, strict=True))

    def observe(self, x: Sequence[float], y: float) -> None:
        """``y`` was seen at ``x``."""
        residual = y - self.predict(x)
        weight = self._weight(abs(residual))
        spread = [sum(c * v for c, v in zip(row, x, strict=True)) for row in self._covariance]
        noise = _FORGET / weight + sum(s * v for s, v in zip(spread, x, strict=True))
        self.coefficients = [c + s / noise * residual for c, s in zip(self.coefficients, spread, strict=True)]
        self._covariance = [
            [min((p - left * right / noise) / _FORGET, _WIDEST) for p, right in zip(row, spread, strict=True)]
            for row, left in zip(self._covariance, spread, strict=True)
        ]
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
