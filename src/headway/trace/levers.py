"""Levers: what each change would save on this task, predicted by replaying its graph with the change."""

from msgspec import Struct

from headway.core.money import MicroUsd


class Lever(Struct, frozen=True, kw_only=True):
    """A change and its predicted saving on one task."""

    name: str
    """Short imperative, e.g. "one iteration fewer"."""
    seconds: float
    """E2E now - E2E of the replay; never negative."""
    share: float
    """``seconds`` / E2E."""
    tokens: int | None
    """Tokens not computed (input and output); unknown stays unknown."""
    cost: MicroUsd | None
    assumes: str
    rule: str
    """The rule of thumb behind it."""
    how: str
    """How to do it."""
