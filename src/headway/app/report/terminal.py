"""The account of a task on a terminal: one calm page, 100 columns wide at most, that reads without colour too."""

from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from headway.app.report.figures import (
    cached,
    count,
    counted,
    fixed,
    moment,
    pace,
    paid,
    per_cent,
    plural,
    printable,
    seconds,
    told,
)
from headway.app.report.findings import findings_list
from headway.app.report.formula import Formula, formula
from headway.app.report.headline import headline
from headway.app.report.layout import Page, bullets, definitions, section
from headway.app.report.legend import SIGNS
from headway.app.report.measured import everything
from headway.app.report.quality import aspects_table, left_out, unknowns
from headway.app.report.replayed import outcome_lines
from headway.app.report.waterfall import Waterfall
from headway.app.report.worth import beside_seconds, worth_showing
from headway.core.spent import Spent, Sum
from headway.trace.account import TaskAccount
from headway.trace.anatomy import Anatomy
from headway.trace.levers import Lever
from headway.trace.sources.intake import Refused
from headway.trace.sources.skips import Skip
from headway.trace.whatif import Outcome

_TERMS = 14
"""Rows of the formula's table before it is folded."""
_NAME = len("before call 1")
"""Least width of a model's name in the formula's table: all that stands there and is no model's name fits."""


def render_task(
    account: TaskAccount,
    *,
    outcome: Outcome | None = None,
    note: str | None = None,
    why: bool = False,
    skipped: Sequence[Skip] = (),
    refused: Sequence[Refused] = (),
) -> Page:
    """The page for one task.

    Args:
        account: the task.
        outcome: it with the changes that were asked for.
        note: what is to be known before all else.
        why: end with how each number was measured.
        skipped: what inside its documents could not be used.
        refused: documents in no known format.
    """
    anatomy = account.anatomy
    table = formula(anatomy, _TERMS)
    parts: list[RenderableType] = [Text(printable(note), "yellow"), Text()] if note else []
    parts += [_title(account), Text(), Text(headline(account), style="bold"), Text()]
    if account.verdict.timed:
        parts += section("Waterfall", "● on the critical path   ○ off it", Waterfall(anatomy))
        parts += section("Formula", _equation_in_words(anatomy, table), _equation(table), Text(), FormulaTable(table))
        parts += section("Critical path", "what the task was waiting for, end to end", _phases(table))
    parts += section("Tokens and money", "", _tokens(anatomy))
    parts += section(
        "Findings", "what is wrong with it, the dearest first", *findings_list(account.findings, table.decimals)
    )
    if account.verdict.timed:
        parts += section(
            "Levers", "what each change would save on this task alone", *_levers(account.levers, table.decimals)
        )
    if outcome is not None:
        parts += section("What if", "the task replayed with the changes", *outcome_lines(outcome, table.decimals))
    unknown = unknowns(account) or ("Nothing is missing from this account.",)
    parts += section("Not known", "", *bullets([*unknown, *left_out(skipped, refused)]))
    if why:
        parts += section("How good the record is", account.verdict.source, aspects_table(account.verdict.aspects))
        parts += section("How it was measured", "", definitions(everything(anatomy)))
    return Page(*parts[:-1])


class FormulaTable:
    """The formula, a row per iteration; numbers are never cut, and columns that do not fit are named."""

    def __init__(self, table: Formula) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = self._columns()
        extra = ["ms/token", "in", "out"]
        while extra and self._needed(columns, extra) > options.max_width:
            extra.pop()
        table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column("#", no_wrap=True, style="dim", min_width=_widest(columns["#"]))
        name = options.max_width - self._needed(columns, extra) + _NAME
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(name, 1))
        shown = [column for column in columns if column not in {"#", "call", "ms/token", "in", "out"}] + extra
        for column in shown:
            table.add_column(justify="right", no_wrap=True, min_width=_widest(columns[column]))
        last = len(columns["#"]) - 1
        for i in range(last + 1):
            style = "bold" if i == last - 1 else "dim" if i in {0, last} else ""
            table.add_row(*(Text(columns[column][i], style) for column in ("#", "call", *shown)))
        yield table
        if missing := [name for name in ("ms/token", "in", "out") if name not in extra]:
            yield Text(f"No room for {', '.join(missing)} here: --json and --html have them.", "dim")

    def _needed(self, columns: dict[str, list[str]], extra: Sequence[str]) -> int:
        used = [name for name in columns if name not in {"call", "ms/token", "in", "out"} or name in extra]
        return _NAME + sum(_widest(columns[name]) + 2 for name in used)

    def _columns(self) -> dict[str, list[str]]:
        table, rows = self._table, self._table.rows
        columns = {
            "#": ["", *(row.label for row in rows), "", ""],
            "call": ["call", *(printable(row.model) for row in rows), "E2E, seconds", "% of E2E"],
        }
        for name in table.used:
            cells = [_cell(row.terms[name], table.decimals) for row in rows]
            columns[name] = [name, *cells, _cell(table.totals[name], table.decimals), _tenths(table.shares[name])]
        totals = [fixed(row.total, table.decimals) for row in rows]
        columns["total"] = ["total", *totals, fixed(table.e2e, table.decimals), "100.0" if table.e2e else "·"]
        columns["%"] = ["%", *(_tenths(row.share) for row in rows), "100.0" if table.e2e else "·", ""]
        columns["ms/token"] = [
            "ms/token",
            *("" if r.usage is None else pace(r.tpot, to_end=r.tpot_to_end) for r in rows),
            "",
            "",
        ]
        columns["in"] = ["in", *("" if r.usage is None else count(r.usage.input_tokens) for r in rows), "", ""]
        columns["out"] = ["out", *("" if r.usage is None else count(r.usage.output_tokens) for r in rows), "", ""]
        return columns


def _title(account: TaskAccount) -> Text:
    anatomy = account.anatomy
    task = f"task {printable(anatomy.task)}"
    rest = [moment(anatomy.started_at)] if account.verdict.timed else []
    if anatomy.session == anatomy.task:  # a session is named after its first task
        rest.insert(0, "first of its session")
    elif anatomy.session is not None:
        rest.append(f"\nsession {printable(anatomy.session)}")
    if account.title:
        rest.append(f"\nasked: {printable(account.title)}")
    return Text("   ".join([task, *rest]).replace("   \n", "\n"), style="dim")


def _equation_in_words(anatomy: Anatomy, table: Formula) -> str:
    return f"E2E = sum over {plural(anatomy.n, 'call')} ({' + '.join(table.used)})"


def _equation(table: Formula) -> Text:
    line = Text.assemble((f"{fixed(table.e2e, table.decimals)} s", "bold"), " = ")
    for i, name in enumerate(table.used):
        line.append(" + " if i else "")
        line.append(fixed(table.totals[name], table.decimals)).append(f" {name}", "dim")
    return line


def _phases(table: Formula) -> RenderableType:
    if not table.phases:
        return Text("Nothing took any time.")
    rows = [
        (
            SIGNS[phase].label,
            f"{fixed(units, table.decimals)} s",
            f"{_tenths(table.phase_shares[phase])} %",
            Text(SIGNS[phase].glyph * max(1, round(table.phase_shares[phase] * 20 / 1000)), SIGNS[phase].style),
            Text(SIGNS[phase].meaning, "dim"),
        )
        for phase, units in table.phases.items()
    ]
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, min_width=_widest([row[0] for row in rows]))
    grid.add_column(no_wrap=True, justify="right", min_width=_widest([row[1] for row in rows]))
    grid.add_column(no_wrap=True, justify="right", min_width=_widest([row[2] for row in rows]))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for row in rows:
        grid.add_row(*row)
    return grid


def _tokens(anatomy: Anatomy) -> RenderableType:
    spent, reasoning = anatomy.spent, anatomy.usage.reasoning
    detail = f"{counted(spent.input_tokens)} in, {counted(spent.output_tokens)} out"
    if reasoning:
        detail += f", of which {count(reasoning)} reasoning"
    rows = [
        ("tokens", counted(spent.tokens), _whole(_noted(detail, spent.tokens), own="tokens" in anatomy.own_totals)),
        ("from the cache", cached(anatomy.cached_share, spent), _cached(spent)),
        ("cost", paid(spent.cost), _whole(told(spent.cost), own="cost" in anatomy.own_totals)),
        (
            "calls",
            count(anatomy.calls),
            _failures(anatomy),
        ),
    ]
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(style="dim")
    for row in rows:
        grid.add_row(*row)
    return grid


def _cached(spent: Spent) -> str:
    """What of the input came from the cache, in tokens, where there was any input."""
    if not spent.input_tokens.of:
        return "no model call"
    if spent.input_tokens.exact == 0:
        return "no input"
    if spent.cache_read.least is None:
        return "not on record"
    read = "none" if spent.cache_read.exact == 0 else counted(spent.cache_read)
    whole = counted(spent.input_tokens) if spent.input_tokens.exact is not None else "the"
    return _noted(f"{read} of {whole} tokens of input", spent.cache_read)


def _failures(anatomy: Anatomy) -> str:
    known = plural(anatomy.failures, "failure") if anatomy.failures else "none failed"
    if not anatomy.unseen:
        return known
    return f"{known} as far as is known: how {plural(anatomy.unseen, 'tool')} ended is not in the record"


def _whole(detail: str, *, own: bool) -> str:
    return ", ".join(filter(None, (detail, "as the record's own total"))) if own else detail


def _noted(detail: str, one: Sum) -> str:
    return f"{detail} ({told(one)})" if one.partial else detail


def _levers(levers: Sequence[Lever], decimals: int) -> Iterable[RenderableType]:
    shown = worth_showing(levers)
    if not shown.levers:
        yield Text("None of the known changes would shorten this task noticeably.")
    for rank, lever in enumerate(shown.levers, 1):
        saved = seconds(lever.seconds, decimals)
        rest = f" ({per_cent(lever.share)}), {beside_seconds(lever)}"
        head = Text.assemble((lever.name, "bold"), "  saves ", (saved, "bold green"), rest)
        body = definitions(
            (("how", lever.how), ("assumes", lever.assumes), ("trade-off", lever.tradeoff), ("rule", lever.rule))
        )
        grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
        grid.add_row(str(rank), Group(head, body))
        yield grid
    if shown.rest:
        yield Text(shown.rest, style="dim")


def _cell(units: int, decimals: int) -> str:
    return fixed(units, decimals) if units else "·"


def _tenths(share: int) -> str:
    return f"{share / 10:.1f}"


def _widest(cells: Sequence[str]) -> int:
    return max(Text(cell).cell_len for cell in cells)
