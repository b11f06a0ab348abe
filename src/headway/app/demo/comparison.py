"""Two tasks side by side: what one way cost against the other."""

from collections.abc import Callable
from typing import Final

from rich.table import Table

from headway.app.report.figures import count, money, seconds
from headway.app.report.formula import formula
from headway.trace.anatomy import Anatomy
from headway.trace.path import Phase

DECIMALS: Final = 2

ROWS: Final[tuple[tuple[str, Callable[[Anatomy], float | None], Callable[[float | None], str]], ...]] = (
    ("model calls", lambda a: a.calls, lambda v: count(_whole(v))),
    ("input tokens", lambda a: a.usage.input_tokens, lambda v: count(_whole(v))),
    ("  of them from the cache", lambda a: a.usage.cache_read, lambda v: count(_whole(v))),
    ("output tokens", lambda a: a.usage.output_tokens, lambda v: count(_whole(v))),
    ("end to end", lambda a: a.e2e, lambda v: seconds(v, DECIMALS)),
    ("  reading prompts (prefill)", lambda a: _phase(a, Phase.PREFILL), lambda v: seconds(v, DECIMALS)),
    ("  writing (decode)", lambda a: _phase(a, Phase.DECODE), lambda v: seconds(v, DECIMALS)),
    ("first visible output", lambda a: a.task_ttft, lambda v: seconds(v, DECIMALS)),
)


def compare(direct: Anatomy, planning: Anatomy) -> Table:
    """A table of both, and how many times the first the second is."""
    table = Table("", box=None, padding=(0, 3, 0, 0), header_style="bold")
    for name in ("direct", "planning", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, value, show in ROWS:
        left, right = value(direct), value(planning)
        table.add_row(name, show(left), show(right), _ratio(left, right))
    if direct.cost is not None or planning.cost is not None:
        table.add_row("cost", money(direct.cost), money(planning.cost), _ratio(direct.cost, planning.cost))
    return table


def _phase(anatomy: Anatomy, phase: Phase) -> float | None:
    """Seconds of ``phase`` as the task's own account prints them; unknown where some model time could not be split."""
    table = formula(anatomy, 1)
    return None if anatomy.phases.get(Phase.MODEL) else table.phases.get(phase, 0) / 10**table.decimals


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _ratio(left: float | None, right: float | None) -> str:
    return "" if not left or right is None else f"{right / left:.1f}x"
