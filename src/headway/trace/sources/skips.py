"""What an import could not use: counted and shown, never dropped in silence."""

from msgspec import Struct


class Skip(Struct, frozen=True, kw_only=True):
    """One reason for leaving something out, and how often it occurred."""

    reason: str
    count: int
    first: str
    """Where it occurred first: ``file:line``."""


class Skips:
    """Counts by reason. A reason is a short sentence without particulars, so that equal ones add up."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str]] = {}

    def add(self, reason: str, where: str) -> None:
        """Something at ``where`` was left out."""
        count, first = self._found.get(reason, (0, where))
        self._found[reason] = (count + 1, first)

    def join(self, others: "Skips") -> None:
        """What was left out of what comes after."""
        for reason, (more, where) in others._found.items():  # noqa: SLF001 - of its own kind
            count, first = self._found.get(reason, (0, where))
            self._found[reason] = (count + more, first)

    def __bool__(self) -> bool:
        return bool(self._found)

    def all(self) -> tuple[Skip, ...]:
        """The most frequent reason first."""
        found = sorted(self._found.items(), key=lambda item: -item[1][0])
        return tuple(Skip(reason=reason, count=count, first=first) for reason, (count, first) in found)
