"""How often a semantic cache would have been wrong, measured before it serves anybody."""

from math import sqrt
from typing import Final

from msgspec import Struct

_Z: Final = 1.959963984540054
"""Of a two-sided interval of 95 %."""


class ShadowFigures(Struct, kw_only=True):
    """What was found while every question was still asked."""

    asked: int = 0
    would_serve: int = 0
    """Questions for which a kept answer was found."""
    agreed: int = 0
    """Of these, those whose fresh answer said the same as the kept one."""
    differed: int = 0
    """Of these, those whose fresh answer did not. The rest failed, so nothing is known of them."""

    def error(self) -> tuple[float, float, float] | None:
        """The share of kept answers that would have been wrong, with its interval of 95 % (Wilson 1927).

        Returns:
            Estimate, lower and upper bound, each 0 to 1; ``None``: nothing was compared yet.
        """
        compared = self.agreed + self.differed
        if not compared:
            return None
        share, spread = self.differed / compared, _Z * _Z / compared
        centre = share + spread / 2
        reach = _Z * sqrt(share * (1 - share) / compared + spread / (4 * compared))
        return share, max(0.0, (centre - reach) / (1 + spread)), min(1.0, (centre + reach) / (1 + spread))

    def may_serve(self, most: float) -> bool:
        """Whether the error is below ``most`` (0 to 1) even at its interval's upper bound."""
        error = self.error()
        return error is not None and error[2] < most
