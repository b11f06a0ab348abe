"""How far a record can be trusted, and what of it was left out: on a terminal."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from headway.app.report.figures import count, plural, printable
from headway.app.report.grid import Grid
from headway.trace.account import TaskAccount
from headway.trace.sources.intake import Refused
from headway.trace.sources.skips import Skip
from headway.trace.sources.verdict import Aspect, Quality, Subject

SUBJECTS: Final[dict[Subject, str]] = {
    "times": "times",
    "ttft": "first token",
    "tools": "tool times",
    "tokens": "tokens",
    "cache": "cached tokens",
    "cost": "cost",
    "retries": "retries",
    "prompts": "prompts",
}
STYLES: Final[dict[Quality, str]] = {"measured": "green", "derived": "yellow", "unknown": "red"}
_NAMED: Final = 8


def aspects_table(aspects: Sequence[Aspect]) -> RenderableType:
    """A line per subject: its quality, of how much it is known, and how."""
    rows = [
        (
            SUBJECTS[aspect.subject],
            Text(aspect.quality, STYLES[aspect.quality]),
            f"{count(aspect.known)} of {count(aspect.of)}" if aspect.of else "",
            aspect.how,
        )
        for aspect in aspects
        if aspect.of or aspect.subject == "times"
    ]
    return Grid(("", "", "known", "how"), rows, words=True)


def left_out(skipped: Sequence[Skip], refused: Sequence[Refused]) -> Iterable[str]:
    """Sentences on what was not used; none where all was."""
    for skip in skipped:
        yield f"Skipped {skip.count:,}: {printable(skip.reason)} (first at {printable(skip.first)})."
    for one in refused[:_NAMED]:
        yield f"Not read: {printable(one.name)}. {printable(one.why)}"
    if len(refused) > _NAMED:
        yield f"And {plural(len(refused) - _NAMED, 'more file')} in no known format; --json lists all."


def unknowns(account: TaskAccount) -> tuple[str, ...]:
    """What the account cannot know, and what the record's importer has to say; each sentence once."""
    return tuple(dict.fromkeys((*account.verdict.remarks, *account.anatomy.unknowns)))
