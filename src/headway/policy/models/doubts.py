"""What counts against an answer."""

from msgspec import Struct

from headway.core.errors import BadInputError


class Doubts(Struct, frozen=True, kw_only=True):
    """What counts against an answer; what is ``None`` or False is not looked at."""

    mean_logprob: float | None = None
    """Below this an answer is uncertain: the mean natural logarithm of its tokens' probabilities, 0 at most."""
    schema: bool = True
    refused: bool = True
    judge: float | None = None
    """Below this score, 0 to 1, a judge finds an answer wanting."""

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            BadInputError: a threshold is out of its range.
        """
        if self.mean_logprob is not None and not self.mean_logprob <= 0:
            raise BadInputError(
                f"A mean logprob of {self.mean_logprob} is above 0.", fix="Probabilities' logarithms are 0 at most."
            )
        if self.judge is not None and not 0 <= self.judge <= 1:
            raise BadInputError(f"A judge's score of {self.judge} is not from 0 to 1.", fix="Give e.g. 0.7.")
