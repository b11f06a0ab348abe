"""The noun: one thing that is wrong with a task, what it costs, and how one would know for sure."""

from typing import Literal

from msgspec import Struct

from headway.core.money import MicroUsd
from headway.core.task import SpanId, TaskId

Confidence = Literal[
    "certain",  # measured, and nothing else could be meant by it
    "likely",  # measured, but it can be read another way
    "possible",  # the record fits it; only the check tells
]


class Finding(Struct, frozen=True, kw_only=True):
    """One failure mode, found. Findings overlap: what two of them cost does not add up."""

    name: str
    """A slug that never changes, e.g. ``cache-prefix-broken``."""
    title: str
    """One sentence with the figures."""
    seconds: float | None = None
    """What it costs on the critical path, at most E2E; unknown where that cannot be told."""
    cost: MicroUsd | None = None
    """What it costs in money, as recorded or by list price."""
    tokens: int | None = None
    """Tokens read or written because of it."""
    cost_least: MicroUsd | None = None
    """What of the cost is known, also where some of the calls do not tell theirs; unknown where nothing is."""
    tokens_least: int | None = None
    confidence: Confidence
    evidence: tuple[str, ...]
    """Plain sentences with figures and the names of spans."""
    check: str
    """What would confirm it."""
    remedy: str
    """What to change."""
    spans: tuple[SpanId, ...] = ()
    """Where it shows, in order of time; all of them are in the record."""
    tasks: tuple[TaskId, ...] = ()
    """Where it shows, for findings about a set of tasks."""
