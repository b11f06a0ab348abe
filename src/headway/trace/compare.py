"""Two sets of tasks against each other: what moved, by how much, and whether that is more than chance."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct, structs

from headway.core.spent import Sum
from headway.trace.facts import TaskFacts
from headway.trace.phases import Phase
from headway.trace.stats import LEVEL, Bootstrap, Difference

QUANTILES: Final = (0.5, 0.95)
BETTER_KNOWN: Final = 30
"""Tasks on each side below which a difference of medians is shown only with a word of warning."""

TOOLS: Final = 8
"""Tools that are compared: those whose mean moved most."""

Figure = Callable[[TaskFacts], float | None]
Summed = Callable[[TaskFacts], Sum]


_FIGURES: Final[tuple[tuple[str, str, Figure], ...]] = (
    ("task TTFT", "s", lambda row: row.task_ttft),
    ("N", "calls", lambda row: float(row.n)),
)
_SUMS: Final[tuple[tuple[str, str, Summed], ...]] = (
    ("input tokens", "tokens", lambda row: row.spent.input_tokens),
    ("cached tokens", "tokens", lambda row: row.spent.cache_read),
    ("output tokens", "tokens", lambda row: row.spent.output_tokens),
    ("cost", "µUSD", lambda row: row.spent.cost),
)


class _Chance(Struct, frozen=True):
    """How many figures are looked at together, and so how wide each one's interval must be."""

    bootstrap: Bootstrap
    figures: int

    @property
    def level(self) -> float:
        return 1 - (1 - LEVEL) / (self.figures * len(QUANTILES))


class Moved(Struct, frozen=True, kw_only=True):
    """One figure in both sets."""

    name: str
    unit: str
    """``s``, ``tokens``, ``µUSD`` or ``calls``."""
    known: tuple[int, int]
    """Of how many tasks it is known, before and after."""
    mean: tuple[float, float] | None
    at: tuple[Difference, ...]
    """At p50 and p95; empty where it is unknown on either side."""
    partial: tuple[int, int] = (0, 0)
    """Tasks whose calls tell only a part of it: they are not compared, for a lower bound proves no difference."""
    least: tuple[float | None, float | None] = (None, None)
    """Where there are such tasks: what its mean over all tasks that tell anything comes to at least."""

    @property
    def shown(self) -> bool:
        """Whether the sets show a difference at p50 or at p95."""
        return any(one.shown for one in self.at)


class Comparison(Struct, frozen=True, kw_only=True):
    """All figures of two sets."""

    tasks: tuple[int, int]
    failed: tuple[int, int]
    e2e: Moved
    figures: tuple[Moved, ...]
    """Task TTFT, N, tokens, cost."""
    phases: tuple[Moved, ...]
    """Path seconds by phase; what moved most in the mean comes first."""
    tools: tuple[Moved, ...]
    """Path seconds by tool, likewise; at most `TOOLS`."""
    warnings: tuple[str, ...]
    """Why the two may not be comparable; plain sentences."""

    @property
    def shown(self) -> bool:
        """Whether any figure shows a difference."""
        return any(one.shown for one in (self.e2e, *self.figures, *self.phases, *self.tools))


def compare(before: Sequence[TaskFacts], after: Sequence[TaskFacts], bootstrap: Bootstrap) -> Comparison:
    """Compare two sets, each in any order.

    The intervals of E2E hold together at 95 %, and so do all others together (Bonferroni): of two equal sets, one in
    twenty is said to show a difference, however many figures are looked at.
    """
    sides = (before, after)
    timed = tuple([row for row in side if row.e2e is not None] for side in sides)
    phases, tools = _phases(timed), _tools(timed)
    parts = _Chance(bootstrap, len(_FIGURES) + len(_SUMS) + len(phases) + len(tools))
    sums = tuple(_moved_sum(name, unit, sides, figure, parts) for name, unit, figure in _SUMS)
    return Comparison(
        tasks=(len(before), len(after)),
        failed=(sum(row.failed for row in before), sum(row.failed for row in after)),
        e2e=_moved("E2E", "s", sides, lambda row: row.e2e, _Chance(bootstrap, 1)),
        figures=(*(_moved(name, unit, sides, figure, parts) for name, unit, figure in _FIGURES), *sums),
        phases=_by_size(_moved(phase.value, "s", timed, _phase(phase), parts) for phase in phases),
        tools=_by_size(_moved(name, "s", timed, _tool(name), parts) for name in tools),
        warnings=(*_warnings(sides), *_left_out(sums), *_silent(sums, (len(before), len(after)))),
    )


def _phases(sides: Sequence[Sequence[TaskFacts]]) -> list[Phase]:
    return [phase for phase in Phase if any(phase in row.phases for side in sides for row in side)]


def _tools(sides: Sequence[Sequence[TaskFacts]]) -> list[str]:
    means: dict[str, list[float]] = {}
    for which, side in enumerate(sides):
        for row in side:
            for name, tool in row.tools.items():
                means.setdefault(name, [0.0, 0.0])[which] += tool.on_path / len(side)
    return sorted(means, key=lambda name: -abs(means[name][1] - means[name][0]))[:TOOLS]


def _phase(phase: Phase) -> Figure:
    return lambda row: row.phases.get(phase, 0.0)


def _tool(name: str) -> Figure:
    return lambda row: row.tools[name].on_path if name in row.tools else 0.0


def _moved(name: str, unit: str, sides: Sequence[Sequence[TaskFacts]], figure: Figure, chance: _Chance) -> Moved:
    first, second = (sorted(value for row in side if (value := figure(row)) is not None) for side in sides)
    both = bool(first and second)
    return Moved(
        name=name,
        unit=unit,
        known=(len(first), len(second)),
        mean=(sum(first) / len(first), sum(second) / len(second)) if both else None,
        at=tuple(chance.bootstrap.difference(first, second, q, chance.level) for q in QUANTILES) if both else (),
    )


def _moved_sum(name: str, unit: str, sides: Sequence[Sequence[TaskFacts]], figure: Summed, chance: _Chance) -> Moved:
    found = _moved(name, unit, sides, lambda row: figure(row).exact, chance)
    before, after = ([figure(row) for row in side] for side in sides)
    return structs.replace(
        found,
        partial=(sum(one.partial for one in before), sum(one.partial for one in after)),
        least=(_least(before), _least(after)),
    )


def _least(sums: Sequence[Sum]) -> float | None:
    if not any(one.partial for one in sums):
        return None
    known = [one.least for one in sums if one.least is not None]
    return sum(known) / len(known)


def _left_out(sums: Sequence[Moved]) -> Iterator[str]:
    alike: dict[tuple[int, int], list[str]] = {}
    for one in sums:
        if any(one.partial):
            alike.setdefault(one.partial, []).append(one.name)
    for (before, after), names in alike.items():
        yield (
            f"Left out of {', '.join(names)}: {before:,} and {after:,} tasks, some of whose calls do not report it, so"
            " that their sums are only lower bounds."
        )


def _silent(sums: Sequence[Moved], tasks: tuple[int, int]) -> Iterator[str]:
    """Which sums some tasks tell nothing of, so that others alone are compared."""
    for one in sums:
        silent = any(all_ - known - part for all_, known, part in zip(tasks, one.known, one.partial, strict=True))
        if silent and all(one.known):
            sides = (f"{known:,} of {all_:,}" for known, all_ in zip(one.known, tasks, strict=True))
            yield f"Only tasks that tell all of their {one.name} are compared: {' and '.join(sides)}."


def _by_size(moved: Iterable[Moved]) -> tuple[Moved, ...]:
    return tuple(sorted(moved, key=lambda one: -abs(one.mean[1] - one.mean[0]) if one.mean else 0.0))


def _warnings(sides: Sequence[Sequence[TaskFacts]]) -> Iterator[str]:
    sources = [{row.source for row in side} for side in sides]
    if sources[0] != sources[1]:
        yield f"The sets come from different sources: {_names(sources[0])} and {_names(sources[1])}."
    models = [{name for row in side for name in row.models} for side in sides]
    if models[0] != models[1]:
        yield f"The sets used different models: {_names(models[0])} and {_names(models[1])}."
    for side, which in zip(sides, ("first", "second"), strict=True):
        timed = sum(row.e2e is not None for row in side)
        if timed < BETTER_KNOWN:
            tasks = "1 timed task" if timed == 1 else f"{timed} timed tasks"
            yield f"The {which} set has {tasks}: {BETTER_KNOWN} or more would say much more."


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
