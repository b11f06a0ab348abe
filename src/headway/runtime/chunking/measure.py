"""How long a text is in tokens: counted by the model's tokenizer where the caller has it, else estimated."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from headway.core.errors import BadInputError


class Measure(Struct, frozen=True, kw_only=True):
    """A way to count tokens."""

    count: Callable[[str], int]
    """Tokens of a text; of a longer text never fewer."""
    name: str
    """The tokenizer's name, or what the estimate goes by."""
    exact: bool = True
    """Whether it counts as the model does."""

    def fits(self, text: str, budget: int) -> bool:
        """Whether a text has no more than ``budget`` tokens."""
        return self.count(text) <= budget


def _third(text: str) -> int:
    return -(-len(text.encode()) // 3)


ESTIMATE: Final = Measure(count=_third, name="an estimate, a token for 3 bytes of UTF-8", exact=False)
"""For an unknown tokenizer. English prose has about 4 bytes a token, source code 3 to 4, Korean 3 or a little more, so
it is mostly too high; long runs of digits, base64 and rare scripts have fewer bytes a token, and pass it."""


def check(budget: int) -> None:
    """Refuse a budget that nothing fits.

    Raises:
        BadInputError: it is below 1.
    """
    if budget < 1:
        raise BadInputError(f"A budget of {budget} tokens holds nothing.", fix="Give the tokens that a chunk may have.")
