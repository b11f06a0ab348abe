"""For which calls answers are kept, and how: one rule for a path and models, the first that fits counts."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final, Literal

from msgspec import Struct

from headway.core.errors import BadInputError

Mode = Literal["off", "exact", "semantic", "shadow"]
"""``exact``: the same question, to the byte. ``semantic``: one that means the same, too, once it was measured how often
that is wrong. ``shadow``: measured only."""

LARGEST_BYTES: Final = 1 << 20
_FIX: Final = "Put it right in the rule."


class CacheRule(Struct, frozen=True, kw_only=True):
    """What is kept of the calls to one path for some models."""

    name: str
    """By which figures and people know it."""
    path: str = "/v1/chat/completions"
    models: tuple[str, ...] = ("*",)
    """Patterns as of file names, of models after aliases."""
    mode: Mode = "exact"
    ttl: float = 600.0
    """Seconds for which an answer is fresh."""
    stale: float = 0.0
    """Seconds after those in which it may be given while it is asked for anew."""
    wait: float = 30.0
    """Seconds that a call waits at most for the answer of another with the same question."""
    tags: frozenset[str] = frozenset()
    """Of every answer, beside those that a request names."""
    version: str = ""
    """Another version knows nothing of what was kept under this one."""
    largest: int = LARGEST_BYTES
    """Bytes of an answer beyond which it is not kept."""
    threshold: float = 0.95
    """Cosine from which on two questions may mean the same."""
    error: float = 0.02
    """Share of wrong answers below which, at the upper bound of its interval of 95 %, answers may be given for
    questions that mean the same."""

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            BadInputError: a field is out of its range.
        """
        ranges = (
            ("ttl", self.ttl, self.ttl > 0, "a time that is not nothing"),
            ("stale", self.stale, self.stale >= 0, "no negative time"),
            ("wait", self.wait, self.wait >= 0, "no negative time"),
            ("largest", self.largest, self.largest > 0, "a size that is not nothing"),
            ("threshold", self.threshold, 0 < self.threshold <= 1, "above 0, at most 1"),
            ("error", self.error, 0 < self.error < 1, "between 0 and 1"),
        )
        for field, value, fits, wanted in ranges:
            if not fits:
                raise BadInputError(f"Cache rule {self.name!r}: {field} is {value}, and must be {wanted}.", fix=_FIX)

    def covers(self, path: str, model: str) -> bool:
        """Whether it is for this call."""
        return path == self.path and any(fnmatchcase(model, pattern) for pattern in self.models)


class CacheRules:
    """All rules, in the order in which they count.

    Raises:
        BadInputError: two have one name.
    """

    def __init__(self, rules: Iterable[CacheRule]) -> None:
        self.all = tuple(rules)
        seen = set[str]()
        for rule in self.all:
            if rule.name in seen:
                raise BadInputError(f"Two cache rules are called {rule.name!r}.", fix="Tell them apart by their names.")
            seen.add(rule.name)

    def find(self, path: str, model: str) -> CacheRule | None:
        """The first that covers a call; ``None``: none does, or that one says ``off``."""
        rule = next((rule for rule in self.all if rule.covers(path, model)), None)
        return None if rule is None or rule.mode == "off" else rule
