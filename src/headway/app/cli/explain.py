"""`headway explain`: where the time, the tokens and the money of one task went."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.core.errors import BadInputError

if TYPE_CHECKING:
    from headway.core.task import TaskId
    from headway.trace.store import Store


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("explain")(explain)


def explain(
    task: Annotated[str | None, typer.Argument(help="The task's id, or as much of its beginning as is unique.")] = None,
    last: Annotated[bool, typer.Option("--last", help="The task that was active last.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a report for a browser to this file; into a directory, as headway-TASK.html."),
    ] = None,
    why: Annotated[bool, typer.Option("--why", help="Say how each number was measured.")] = False,
    store: Annotated[
        Path | None, typer.Option(help="The store of spans; default: where `headway serve` puts it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For a machine: schema headway.explain/1.")] = False,
) -> None:
    """Explain one task: waterfall, formula, critical path, tokens and money, and what would make it faster.

    [bold]Examples[/]

    headway explain --last

    headway explain 3f2a9c1e --html report.html
    """
    from headway.app.report.document import task_json
    from headway.core.config import default_store
    from headway.trace.anatomy import dissect
    from headway.trace.levers import rank
    from headway.trace.store import Store

    if html is not None:
        from headway.app.report.html import check_target

        check_target(html)
    with Store(store or default_store(), readonly=True) as opened:
        spans = opened.spans(_wanted(opened, task, last=last))
    anatomy, levers = dissect(spans), rank(spans)
    if as_json:
        typer.echo(task_json(anatomy, levers))
    else:
        from headway.app.report.terminal import console, render_task

        console().print(render_task(anatomy, levers, why=why))
    if html is not None:
        from headway.app.report.html import html_task, write_report

        written = write_report(html, anatomy.task, html_task(anatomy, levers))
        typer.echo(f"HTML report: {written}", err=as_json)


def _wanted(store: "Store", task: str | None, *, last: bool) -> "TaskId":
    from headway.app.naming import resolve
    from headway.trace.store import nothing_recorded

    if last and task is None:
        found = store.last()
        if found is None:
            raise nothing_recorded(store.path)
        return found
    if task is not None and not last:
        return resolve(store, task)
    raise BadInputError(
        "Name one task: either its id, or --last." if task is None else f"Give either {task!r} or --last, not both.",
        fix="See the recorded tasks with `headway tasks`.",
    )
