"""An account as Markdown for a ticket: at most 60 lines, and nothing in it that a stranger named can format or link."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from headway.app.report.figures import (
    amount,
    at_least,
    cached,
    counted,
    dollars,
    fixed,
    from_cache,
    paid,
    per_cent,
    plural,
    printable,
    seconds,
    told,
)
from headway.app.report.formula import formula
from headway.app.report.headline import headline
from headway.app.report.legend import SIGNS
from headway.app.report.quality import SUBJECTS, left_out, unknowns
from headway.app.report.replayed import moved, quantiles_of, spared, without
from headway.app.report.set_figures import AT_LEAST, saves, set_decimals, set_headline, spread_rows
from headway.app.report.worth import worth_showing
from headway.core.spent import Spent
from headway.trace.account import TaskAccount
from headway.trace.findings import Finding
from headway.trace.phases import Phase
from headway.trace.set_study import SetReport
from headway.trace.sources.intake import Refused
from headway.trace.sources.skips import Skip
from headway.trace.whatif import Outcome

_FINDINGS: Final = 3
_ROWS: Final = 5
_SENTENCES: Final = 4
_SPREADS: Final = ("E2E, s", "task TTFT, s", "N", "input tokens", "output tokens", "cost per task")
_LONGEST: Final = 300
"""Characters of a sentence."""
_MARKS: Final = re.compile(r"([\\`*_\[\]#|~$<>&]|^[-+](?=\s)|(?<=^\d)[.)](?=\s|$)|(?<=^\d\d)[.)](?=\s|$))")
_LINKS: Final = re.compile(r"(@|:(?=//)|www(?=\.))")
"""Behind these a character without width keeps trackers from calling people and making links."""


def markdown_task(
    account: TaskAccount,
    outcome: Outcome | None = None,
    skipped: Sequence[Skip] = (),
    refused: Sequence[Refused] = (),
    note: str | None = None,
) -> str:
    """The account of one task.

    Args:
        account: the task.
        outcome: it with the changes that were asked for.
        skipped: what inside its documents could not be used.
        refused: documents in no known format.
        note: what is to be known before all else.
    """
    anatomy, timed = account.anatomy, account.verdict.timed
    table = formula(anatomy, 1)
    lines = [f"## Task {escaped(anatomy.task)}", "", f"**{escaped(headline(account))}**", ""]
    if note:
        lines += [escaped(note), ""]
    if account.title:
        lines += [f"Asked: {escaped(account.title)}", ""]
    if timed:
        terms = " + ".join(f"{fixed(table.totals[name], table.decimals)} {name}" for name in table.used)
        lines += [f"`{fixed(table.e2e, table.decimals)} s = {terms}`", ""]
    lines += [_counts(account), ""]
    lines += _section("Findings", _findings([(one, "") for one in account.findings], table.decimals, evidence=2))
    if timed:
        levers = [
            (
                lever.name,
                f"{seconds(lever.seconds, table.decimals)} ({per_cent(lever.share)})",
                at_least(lever.tokens, lever.tokens_least, amount),
                at_least(lever.cost, lever.cost_least, dollars),
                lever.assumes,
            )
            for lever in worth_showing(account.levers).levers
        ]
        lines += _section("Levers", _table(("change", "saves", "tokens", "cost", "assumes"), levers))
    if outcome is not None:
        replayed = f"E2E {moved(outcome.before, outcome.after, table.decimals)}{without(outcome)}; {spared(outcome)}"
        lines += _section("What if", _bullets([replayed, *outcome.notes]))
    lines += _section("Not known", _bullets([*unknowns(account), *left_out(skipped, refused)]))
    return "\n".join([*lines, _by(account.verdict.source), ""])


def markdown_set(report: SetReport, skipped: Sequence[Skip] = (), refused: Sequence[Refused] = ()) -> str:
    """The account of a set.

    Args:
        report: the set, studied.
        skipped: what inside its documents could not be used.
        refused: documents in no known format.
    """
    made, decimals = report.anatomy, set_decimals(report.anatomy)
    lines = [f"## {plural(made.tasks, 'task')}", "", f"**{escaped(set_headline(made))}**", ""]
    spreads = [
        (row.name, row.known, *(row.at(one) for one in row.spread.quantiles))
        for row in spread_rows(made, decimals)
        if row.spread is not None and row.name.removesuffix(AT_LEAST) in _SPREADS
    ]
    lines += _table(("95 % interval in brackets", "known", "p50", "p95", "p99"), spreads, most=2 * len(_SPREADS))
    lines += ["", f"In all: {_sums(made.spent, from_cache(made.spent))}{_known_of(made.spent)}."]
    phases = [
        (SIGNS[Phase(row.name)].label, per_cent(row.share), *(seconds(s, decimals) for s in (row.typical, row.tail)))
        for row in made.phases
    ]
    lines += ["", *_table(("critical path", "share", "typical task", "slowest tenth"), phases)] if phases else []
    found = [(one, "over the set") for one in report.findings]
    found += [
        (row.worst, f"the dearest of {plural(row.tasks, 'task')} like it, of {row.of:,}") for row in report.recurring
    ]
    lines += ["", *_section("Findings", _findings(found, decimals, evidence=1))]
    levers = [
        (
            row.lever.key.replace("-", " "),
            *(
                f"{seconds(before.value, decimals)} to {seconds(after.value, decimals)}"
                for before, after in zip(row.before, row.after, strict=True)
            ),
            at_least(row.tokens, row.tokens_least, amount),
            at_least(row.cost, row.cost_least, dollars),
        )
        for row in report.levers
        if saves(row)
    ]
    titles = ("change", "E2E at p50", "E2E at p95", "tokens saved per task", "saved per task")
    lines += _section("Levers", _table(titles, levers))
    if report.changed is not None:
        changed = quantiles_of(report.changed)
        replayed = "; ".join(f"E2E at {at} {moved(before, after, decimals)}" for at, before, after in changed)
        whole = f"{replayed}{without(report.changed)}; per task {spared(report.changed)}"
        notes = [f"{note} ({plural(tasks, 'task')})" for note, tasks in report.changed.notes]
        lines += _section("What if", _bullets([whole, *notes]))
    unknown = [
        f"{SUBJECTS[one.subject]}: {one.how}"
        for one in report.aspects
        if one.quality == "unknown" and one.of and one.subject != "cost"
    ]
    unknown += ["cost: neither recorded nor known by price"] if made.spent.cost.least is None else []
    lines += _section("Not known", _bullets([*unknown, *left_out(skipped, refused)]))
    return "\n".join([*lines, _by(", ".join(made.sources)), ""])


def escaped(text: str) -> str:
    """One line of plain text, whatever Markdown would make of it; an ``@`` calls nobody, an address is no link."""
    plain = printable(" ".join(text.split()))
    plain = plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"
    return _LINKS.sub("\\1\N{WORD JOINER}", _MARKS.sub(r"\\\1", plain))


def _counts(account: TaskAccount) -> str:
    anatomy = account.anatomy
    return (
        f"{plural(anatomy.calls, 'model call')}, {_sums(anatomy.spent, cached(anatomy.cached_share, anatomy.spent))}"
        f"{_known_of(anatomy.spent)}."
    )


def _sums(spent: Spent, share: str) -> str:
    return (
        f"{counted(spent.input_tokens)} tokens in ({share} from the cache), {counted(spent.output_tokens)} out,"
        f" cost {escaped(paid(spent.cost))}"
    )


def _known_of(spent: Spent) -> str:
    """Of how many calls it is known, where that is not all or none of them."""
    named = {"input": spent.input_tokens, "output": spent.output_tokens, "cost": spent.cost}
    parts = [f"{name}: {told(one)}" for name, one in named.items() if one.partial]
    return f" ({'; '.join(parts)})" if parts else ""


def _section(title: str, body: Iterable[str]) -> list[str]:
    found = list(body)
    return [f"### {title}", "", *found, ""] if found else []


def _findings(found: Sequence[tuple[Finding, str]], decimals: int, *, evidence: int) -> Iterator[str]:
    if not found:
        yield "None of the known failure modes shows in this record."
    for rank, (finding, where) in enumerate(found[:_FINDINGS], 1):
        price = "" if finding.seconds is None else seconds(finding.seconds, decimals)
        aside = ", ".join(part for part in (finding.confidence, price, where) if part)
        yield f"{rank}. **{escaped(finding.title)}** ({aside})"
        for sentence in finding.evidence[:evidence]:
            yield f"   - {escaped(sentence)}"
        yield f"   - To be sure: {escaped(finding.check)}"
        yield f"   - To do: {escaped(finding.remedy)}"
    if len(found) > _FINDINGS:
        yield f"\n{plural(len(found) - _FINDINGS, 'more finding')} of less weight."


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], most: int = _ROWS) -> list[str]:
    if not rows:
        return []
    lines = [f"| {' | '.join(titles)} |", f"|---{'|---:' * (len(titles) - 1)}|"]
    return lines + [f"| {' | '.join(escaped(cell) for cell in row)} |" for row in rows[:most]]


def _bullets(sentences: Sequence[str]) -> Iterator[str]:
    yield from (f"- {escaped(sentence)}" for sentence in sentences[:_SENTENCES])
    if len(sentences) > _SENTENCES:
        yield f"- and {len(sentences) - _SENTENCES:,} more"


def _by(source: str) -> str:
    return f"*Explained by Headway from {escaped(source)}.*"
