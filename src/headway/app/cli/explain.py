"""`headway explain`: where the time, the tokens and the money of a task or of many went."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import structs

from headway.core.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from headway.app.explaining import Found, Question
    from headway.core.budget import Budget
    from headway.trace.prices import PriceOf
    from headway.trace.whatif_text import WhatIf


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("explain")(explain)


def explain(  # noqa: PLR0913, PLR0917 - one command, and each of these changes what it explains or how it is shown
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="A recorded task's id (its beginning will do), or trace files, folders, patterns, - .",
            show_default=False,
        ),
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="The recorded task that was active last.")] = False,
    whole: Annotated[bool, typer.Option("--all", help="All recorded tasks, as a set.")] = False,
    task: Annotated[str | None, typer.Option(help="Of the tasks in the files, the one with this id.")] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if", help='Replay with a change: "iterations -3", "cache 100%", "tpot 0.5x, tools parallel" …'
        ),
    ] = None,
    budget: Annotated[
        bool,
        typer.Option(
            "--budget", help="Check against the budget in headway.toml; status 3 when broken, 4 when unknown."
        ),
    ] = False,
    config: Annotated[Path | None, typer.Option(help="Budget and own prices; default: headway.toml here.")] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a report for a browser to this file; into a directory, as headway-TASK.html."),
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write a short account for a ticket to this file.")] = None,
    perfetto: Annotated[
        Path | None, typer.Option(help="Write a trace that ui.perfetto.dev reads to this file.")
    ] = None,
    otlp: Annotated[Path | None, typer.Option(help="Write OTLP as JSON, a line per task, to this file.")] = None,
    why: Annotated[bool, typer.Option("--why", help="Say how each number was measured.")] = False,
    store: Annotated[
        Path | None, typer.Option(help="The store of spans; default: where `headway serve` puts it.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes that read large files; default: one for each processor.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="For a machine: schema headway.explain/1 or headway.set/1.")
    ] = False,
) -> None:
    """Explain a task, or many: where time, tokens and money went, what is wrong, and what would make it faster.

    Files may be of any known format, packed or not; the format is told by the content, not by the name.

    [bold]Examples[/]

    headway explain --last

    headway explain 3f2a9c1e --html report.html

    headway explain ~/.claude/projects/my-project

    headway explain 'traces/*.json' --what-if "tools parallel"

    headway explain traces/ --budget

    headway explain traces/ --html report.html --perfetto trace.json
    """
    from headway.app.explaining import Question, are_files
    from headway.app.report.exports.traces import trace_files
    from headway.app.settings import load

    _check_targets({"--html": html, "--markdown": markdown, "--perfetto": perfetto, "--otlp": otlp})
    settings = load(config)
    limits, code = settings.budget() if budget else None, 0
    question = Question(task=task, changes=_changes(what_if, budget=budget), prices=settings.prices)
    with trace_files(perfetto, otlp, settings.prices) as files:
        question = structs.replace(question, each=files.take if perfetto or otlp else None)
        if names and are_files(names):
            if last or whole or store is not None:
                raise UsageError(
                    "Files were given, and a recorded task too.", fix="Leave --last, --all and --store out."
                )
            found = _read(names, question, jobs)
        else:
            if names:
                question = structs.replace(question, task=_only(names, task))
            found = _recorded(store, question, names, last=last, whole=whole)
    if limits is None:
        _work_out(found)
    # Before the page, which whoever reads it may break off.
    written = _write(found, html, markdown, settings.prices) | _traces(perfetto, otlp, files.said())
    if limits is None:
        _show(found, as_json=as_json, why=why)
    else:
        code = _hold(found, limits, str(settings.path), as_json=as_json)
    for name, where in written.items():
        typer.echo(f"{name}: {where}", err=as_json)
    if code:
        raise typer.Exit(code)


def _changes(what_if: "Sequence[str] | None", *, budget: bool) -> "tuple[WhatIf, ...]":
    from headway.app.cli.values import values
    from headway.trace.whatif_text import parse

    if not what_if:
        return ()
    if budget:
        raise UsageError("A budget is checked against tasks as they were.", fix="Leave --budget or --what-if out.")
    with values():
        return parse(",".join(what_if))


def _check_targets(targets: "Mapping[str, Path | None]") -> None:
    from headway.app.report.exports.target import check_target

    taken: dict[Path, str] = {}
    for option, path in targets.items():
        if path is None:
            continue
        check_target(path, option, directory=option == "--html")
        if (other := taken.setdefault(path.resolve(), option)) != option:
            raise UsageError(f"{other} and {option} both name {path}.", fix="Give each a file of its own.")


def _traces(perfetto: Path | None, otlp: Path | None, said: str) -> dict[str, str]:
    wanted = {"Perfetto trace": perfetto, "OTLP": otlp}
    return {name: f"{path.resolve()} ({said})" for name, path in wanted.items() if path is not None}


def _only(names: "Sequence[str]", task: str | None) -> str:
    if len(names) > 1 or task is not None:
        raise UsageError("Of recorded tasks, one is explained at a time.", fix="Name one, or all of them with --all.")
    return names[0]


@contextmanager
def _no_file_either(names: "Sequence[str] | None") -> "Generator[None]":
    """A name that means no task may have been meant as a file."""
    try:
        yield
    except NotFoundError as error:
        if not names:
            raise
        raise NotFoundError(f"There is no file {names[0]!r}, and no such task: {error.what}", fix=error.fix) from error


def _read(names: "Sequence[str]", question: "Question", jobs: int | None) -> "Found":
    from headway.app.explaining import read_files
    from headway.app.gathering import processors
    from headway.app.progress import reading

    with reading() as heard:
        return read_files(names, question, heard, processes=jobs or processors())


def _recorded(
    path: Path | None, question: "Question", names: "Sequence[str] | None", *, last: bool, whole: bool
) -> "Found":
    from headway.app.explaining import read_last, read_store
    from headway.core.config import default_store
    from headway.trace.store import Store

    ways = last + whole + (question.task is not None)
    if ways != 1:
        raise UsageError(
            "Name what to explain: a recorded task's id, --last, --all, or files" + (", not both." if ways else "."),
            fix="See the recorded tasks with `headway tasks`.",
        )
    with _no_file_either(names), Store(path or default_store(), readonly=True) as store:
        return read_last(store, question) if last else read_store(store, question)


def _work_out(found: "Found") -> None:
    from headway.app.progress import working
    from headway.trace.workers import rarely_collected

    if found.task is None:
        with working("working out levers and findings"), rarely_collected():
            found.study.report()


def _show(found: "Found", *, as_json: bool, why: bool) -> None:
    from headway.app.report.layout import console

    intake = found.intake
    if as_json:
        from headway.app.writing import document_of

        typer.echo(document_of(found))
        return
    skipped, refused = ((), ()) if intake is None else (intake.skipped, intake.refused)
    if found.task is None:
        from headway.app.report.set_terminal import render_set

        console().print(render_set(found.study.report(), skipped, refused, why=why))
    else:
        from headway.app.report.terminal import render_task

        console().print(
            render_task(found.task, outcome=found.outcome, note=found.note, why=why, skipped=skipped, refused=refused)
        )


def _hold(found: "Found", limits: "Budget", name: str, *, as_json: bool) -> int:
    """Show the budget instead of the account; the status to end with."""
    from headway.app.cli.budget_status import status
    from headway.app.report.budget_table import render_budget
    from headway.app.report.compare_document import budget_json
    from headway.app.report.figures import plural
    from headway.app.report.layout import console
    from headway.trace.budgets import check, unknown_stages

    one = found.record
    rows = [row for row in found.study.rows if one is None or row.task == one.task]
    lines, absent = check(limits, rows), unknown_stages(limits, rows)
    if as_json:
        typer.echo(budget_json(lines, absent))
    else:
        title = f"{name} against {plural(len(rows), 'task')}"
        console().print(render_budget(lines, absent, title, [found.note] if found.note else []))
    return status(lines)


def _write(found: "Found", html: Path | None, markdown: Path | None, prices: "PriceOf") -> dict[str, str]:
    from headway.app.writing import write_html, write_markdown

    written: dict[str, str] = {}
    if html is not None:
        written["HTML report"] = str(write_html(found, html, prices))
    if markdown is not None:
        written["Markdown"] = str(write_markdown(found, markdown))
    return written
