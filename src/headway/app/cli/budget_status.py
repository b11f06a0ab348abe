"""How a command ends that held tasks to a budget: with a status of its own for each answer, none of them an error's."""

from collections.abc import Sequence
from typing import Final

from headway.trace.budgets import Line

BROKEN: Final = 3
"""A limit is broken. An error is 1, a wrong use of the command 2."""
UNJUDGED: Final = 4
"""No limit is known to be broken, but of one or more the record does not tell."""


def status(lines: Sequence[Line]) -> int:
    """0 where every limit is kept."""
    states = {line.state for line in lines}
    return BROKEN if "broken" in states else UNJUDGED if "unknown" in states else 0
