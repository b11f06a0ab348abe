"""What-ifs in words, and on a terminal."""

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from headway.app.report.figures import UNKNOWN, amount, at_least, dollars, per_cent, plural, seconds
from headway.app.report.layout import bullets
from headway.trace.set_study import ChangedSet
from headway.trace.whatif import Outcome


def outcome_lines(outcome: Outcome, decimals: int) -> Iterable[RenderableType]:
    """One task as recorded and replayed."""
    yield _line("E2E", outcome.before, outcome.after, decimals).append(without(outcome))
    yield Text(spared(outcome))
    yield from bullets(outcome.notes)


def changed_lines(changed: ChangedSet, decimals: int) -> Iterable[RenderableType]:
    """A set as recorded and replayed."""
    for name, before, after in quantiles_of(changed):
        yield _line(f"E2E at {name}", before, after, decimals).append(without(changed))
    yield Text(f"Per task: {spared(changed)}")
    yield from bullets(f"{note} ({plural(tasks, 'task')})" for note, tasks in changed.notes)


def without(changed: Outcome | ChangedSet) -> str:
    """What is said where a replay leaves out what cannot be told; empty where it holds all."""
    if not changed.partly or changed.after is None:
        return ""
    whose = "" if isinstance(changed, Outcome) else f" of {plural(changed.partly, 'task')}"
    return f", without what cannot be told{whose}"


def quantiles_of(changed: ChangedSet) -> list[tuple[str, float, float | None]]:
    """A set's E2E by quantile, as recorded and replayed."""
    after = [None] * len(changed.before) if changed.after is None else [one.value for one in changed.after]
    return [(f"p{one.q * 100:.0f}", one.value, new) for one, new in zip(changed.before, after, strict=True)]


def moved(before: float, after: float | None, decimals: int) -> str:
    """From what to what, and by how much of it."""
    if after is None:
        return f"{seconds(before, decimals)} to {UNKNOWN}"
    return f"{seconds(before, decimals)} to {seconds(after, decimals)} ({_by(before, after)})"


def _line(what: str, before: float, after: float | None, decimals: int) -> Text:
    if after is None:
        return Text(f"{what}  {seconds(before, decimals)} -> {UNKNOWN}")
    new = (seconds(after, decimals), "bold green")
    return Text.assemble(f"{what}  {seconds(before, decimals)} -> ", new, f"  ({_by(before, after)})")


def _by(before: float, after: float) -> str:
    share = per_cent((after - before) / before) if before else UNKNOWN
    return f"{'+' if after > before else ''}{share}"


def spared(changed: Outcome | ChangedSet) -> str:
    """What a change saves beside seconds."""
    tokens = at_least(changed.tokens, changed.tokens_least, _tokens)
    cost = at_least(changed.cost, changed.cost_least, _money)
    return f"{'tokens unknown' if tokens == UNKNOWN else tokens}, {'cost unknown' if cost == UNKNOWN else cost}"


def _tokens(saved: float) -> str:
    noun = "token" if abs(saved) == 1 else "tokens"
    return f"{amount(-saved)} {noun} more" if saved < 0 else f"{amount(saved)} {noun} saved"


def _money(saved: float) -> str:
    return f"{dollars(-saved)} more" if saved < 0 else f"{dollars(saved)} saved"
