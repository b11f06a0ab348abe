"""Reports of what was found, as files and as text."""

from pathlib import Path

from headway.app.explaining import Found
from headway.app.report.document import task_json
from headway.app.report.exports.markdown import markdown_set, markdown_task
from headway.app.report.exports.target import write_text
from headway.app.report.html import html_task
from headway.app.report.html_set import html_set
from headway.app.report.set_document import set_json
from headway.trace.account import account_of
from headway.trace.prices import PriceOf


def write_html(found: Found, path: Path, prices: PriceOf) -> Path:
    """Write the report for a browser; into a directory, as a file named for the task or the set.

    Returns:
        Where it is.

    Raises:
        BadInputError: it cannot be written.
    """
    if path.is_dir():
        task = "set" if found.task is None else found.task.anatomy.task
        name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in task)
        path = path / f"headway-{name[:32]}.html"
    skipped, refused = ((), ()) if found.intake is None else (found.intake.skipped, tuple(found.intake.refused))
    if found.task is None:
        slowest = [account_of(one.spans, one.verdict, one.title, prices=prices) for one in found.slowest]
        e2e = [row.e2e for row in found.study.rows if row.e2e is not None]
        page = html_set(found.study.report(), slowest, e2e, skipped=skipped, refused=refused)
    else:
        page = html_task(found.task, found.outcome, skipped=skipped, refused=refused, note=found.note)
    return write_text(path, page, "--html")


def write_markdown(found: Found, path: Path) -> Path:
    """Write the account for a ticket.

    Returns:
        Where it is.

    Raises:
        BadInputError: it cannot be written.
    """
    return write_text(path, markdown_of(found), "--markdown")


def markdown_of(found: Found) -> str:
    """The account for a ticket."""
    skipped, refused = ((), ()) if found.intake is None else (found.intake.skipped, tuple(found.intake.refused))
    if found.task is None:
        return markdown_set(found.study.report(), skipped, refused)
    return markdown_task(found.task, found.outcome, skipped, refused, found.note)


def document_of(found: Found) -> str:
    """The account for machines, as JSON: schema headway.explain/1 of one task, headway.set/1 of many."""
    if found.task is None:
        return set_json(found.study.report(), found.intake)
    return task_json(found.task, found.intake, found.outcome, found.note)
