"""Why calls went where they went, on a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headway.app.report.decisions_document import CallDecisions
from headway.app.report.figures import moment, printable, seconds
from headway.app.report.layout import Page, bullets, definitions, section

_DECIMALS = 3
_UNDECIDED = (
    "not recorded: it was turned away before (if by a key or a limit, `headway audit` has it),"
    " or another program recorded it"
)


def decisions_page(calls: Sequence[CallDecisions]) -> Page:
    """One section for each call: what was chosen, among whom, and what else was decided."""
    parts: list[RenderableType] = []
    for call in calls:
        parts += section(f"call {call.call}", f"{call.name}, {moment(call.started_at)}", *_body(call))
    return Page(*(parts or [Text("No call of this task was decided about.")]))


def _body(call: CallDecisions) -> Iterator[RenderableType]:
    yield definitions(_told(call))
    if call.candidates:
        yield Text()
        yield _candidates(call)
    said = [
        *(
            f"{one.replica} was asked first and failed after {seconds(one.took_s, _DECIMALS)}: {one.error}."
            for one in call.setbacks
        ),
        *call.notes,
    ]
    if said:
        yield Text()
        yield from bullets(said)


def _told(call: CallDecisions) -> Iterator[tuple[str, str]]:
    yield "task", call.task
    if call.policy is None:
        yield "decided", _UNDECIDED
    else:
        yield "went to", call.winner or "nowhere"
        yield "because", call.reason or ""
        yield "decided by", call.policy
    if call.queued_s:
        yield "waited", f"{seconds(call.queued_s, _DECIMALS)} for its turn"
    if call.attempts is not None and call.attempts > 1:
        yield "sent", f"{call.attempts} times"
    if call.error is not None:
        yield "ended with", call.error


def _candidates(call: CallDecisions) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column()
    grid.add_row("candidate", "score", "", style="dim")
    for one in sorted(call.candidates, key=lambda one: one.score):
        mark = "chosen" if one.name == call.winner else ""
        grid.add_row(printable(one.name), f"{one.score:.4g}", mark)
    return grid
