"""What-ifs on a terminal."""

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from headway.app.report.figures import UNKNOWN, money, per_cent, plural, seconds
from headway.app.report.layout import bullets
from headway.core.money import MicroUsd
from headway.trace.set_study import ChangedSet
from headway.trace.whatif import Outcome


def outcome_lines(outcome: Outcome, decimals: int) -> Iterable[RenderableType]:
    """One task as recorded and replayed."""
    yield _line("E2E", outcome.before, outcome.after, decimals)
    yield Text(_saved(outcome.tokens, outcome.cost))
    yield from bullets(outcome.notes)


def changed_lines(changed: ChangedSet, decimals: int) -> Iterable[RenderableType]:
    """A set as recorded and replayed."""
    for name, before, after in zip(("p50", "p95"), changed.before, changed.after, strict=True):
        yield _line(f"E2E at {name}", before.value, after.value, decimals)
    yield Text(f"Per task: {_saved(changed.tokens, changed.cost)}")
    yield from bullets(f"{note} ({plural(tasks, 'task')})" for note, tasks in changed.notes)


def _line(what: str, before: float, after: float, decimals: int) -> Text:
    share = per_cent((after - before) / before) if before else UNKNOWN
    moved = f"  ({'+' if after > before else ''}{share})"
    return Text.assemble(f"{what}  {seconds(before, decimals)} -> ", (seconds(after, decimals), "bold green"), moved)


def _saved(tokens: float | None, cost: float | None) -> str:
    spared = "tokens unknown" if tokens is None else f"{tokens:,.0f} tokens saved"
    return f"{spared}, {'cost unknown' if cost is None else f'{money(MicroUsd(round(cost)))} saved'}"
