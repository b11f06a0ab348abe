"""`headway bench`: put an endpoint under a load of tasks, and compare what two loads found."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import json

from headway.app.cli.bench_options import (
    Exact,
    File,
    Input,
    KeyEnv,
    Model,
    Output,
    Patience,
    Repeat,
    Seed,
    Shape,
    Slos,
    Steps,
    Stream,
    System,
    Think,
    Tool,
    Url,
    Width,
    endpoint_of,
    slos_of,
    workload_of,
)
from headway.core.errors import BadInputError

if TYPE_CHECKING:
    from headway.app.benching import Measured


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    bench = typer.Typer(help="Loads whose unit is the task, and what came of them.", no_args_is_help=True)
    bench.command("run")(run)
    bench.command("sweep")(sweep)
    bench.command("compare")(compare)
    app.add_typer(bench, name="bench")


def run(  # noqa: PLR0913, PLR0917 - one load, and each of these is a part of what it is
    url: Url,
    model: Model,
    shape: Shape = "react",
    file: File = None,
    arrivals: Annotated[str, typer.Option(help="'closed 8', 'constant 5/s', 'poisson 5/s', … see docs.")] = "closed 1",
    sessions: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Begin none after so long.")] = None,
    warm_up: Annotated[int, typer.Option(min=0, help="Sessions, from the first, that do not count.")] = 0,
    slo: Slos = None,
    system: System = 500,
    tokens_in: Input = "~200x2",
    tokens_out: Output = "64",
    tool: Tool = "0.5",
    think: Think = "2",
    steps: Steps = "5",
    width: Width = 4,
    stream: Stream = True,
    exact: Exact = False,
    repeat: Repeat = False,
    seed: Seed = 0,
    patience: Patience = 600.0,
    key_env: KeyEnv = None,
    store: Annotated[Path | None, typer.Option(help="Keep the spans here, for `headway explain --store`.")] = None,
    out: Annotated[Path | None, typer.Option(help="Keep the report here, for `headway bench compare`.")] = None,
    why: Annotated[bool, typer.Option(help="Say how each figure was measured.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For a machine: schema headway.bench/1.")] = False,
) -> None:
    """Play tasks against an endpoint, and say how long they took, why, and how sure that is.

    Exit status 1 when the client spoiled the numbers.

    [bold]Example[/]

    headway bench run http://127.0.0.1:8080/v1 --model embedded --arrivals 'closed 4' --sessions 20 --slo 'task 20s'
    """
    from headway.app.bench_progress import playing
    from headway.app.benching import Plan, measure
    from headway.bench.arrivals import arrivals as read_arrivals
    from headway.bench.campaign import Stop
    from headway.bench.report import encode

    plan = Plan(
        endpoint=endpoint_of(url, model, key_env, stream=stream, exact=exact),
        workload=workload_of(
            shape,
            file,
            seed,
            system=system,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            tool=tool,
            think=think,
            steps=steps,
            width=width,
        ),
        load=read_arrivals(arrivals),
        stop=Stop(sessions=sessions, seconds=seconds),
        slos=slos_of(slo),
        warm_up=warm_up,
        seed=seed,
        repeat=repeat,
        patience=patience,
    )
    if sessions is None and seconds is None:
        raise typer.BadParameter("say when to stop: --sessions or --seconds", param_hint="--sessions")
    with playing(sessions, seconds) as told:
        measured = measure(plan, told, store)
    if out is not None:
        out.write_bytes(encode(measured.report))
    _show(measured, as_json=as_json, why=why)
    if not measured.report.valid:
        raise typer.Exit(1)


def sweep(  # noqa: PLR0913, PLR0917 - as `run`
    url: Url,
    model: Model,
    shape: Shape = "react",
    file: File = None,
    tasks: Annotated[str, typer.Option(help="How many at once, level by level.")] = "1,2,4,8,16",
    rounds: Annotated[int, typer.Option(min=1, help="Sessions of a level for each of its tasks, after a warm-up.")] = 3,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Begin none of a level after so long.")] = None,
    slo: Slos = None,
    system: System = 500,
    tokens_in: Input = "~200x2",
    tokens_out: Output = "64",
    tool: Tool = "0.5",
    think: Think = "2",
    steps: Steps = "5",
    width: Width = 4,
    stream: Stream = True,
    exact: Exact = False,
    repeat: Repeat = False,
    seed: Seed = 0,
    patience: Patience = 600.0,
    key_env: KeyEnv = None,
    as_json: Annotated[bool, typer.Option("--json", help="For a machine: schema headway.bench.sweep/1.")] = False,
) -> None:
    """How many tasks at once an endpoint holds: throughput and its knee, and the last level that keeps the SLOs.

    Each level is a closed load. With SLOs it ends after the first level at which fewer than 95 % of the tasks keep
    them, and tries the levels between that one and the last that did.

    [bold]Example[/]

    headway bench sweep http://127.0.0.1:8080/v1 --model embedded --tasks 1,2,4,8 --slo 'task 20s'
    """
    from headway.app.bench_progress import playing
    from headway.app.benching import Plan
    from headway.app.benching import sweep as swept
    from headway.app.report.sweep_terminal import SweepTable, told_level
    from headway.bench.arrivals import Closed
    from headway.bench.campaign import Stop

    plan = Plan(
        endpoint=endpoint_of(url, model, key_env, stream=stream, exact=exact),
        workload=workload_of(
            shape,
            file,
            seed,
            system=system,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            tool=tool,
            think=think,
            steps=steps,
            width=width,
        ),
        load=Closed(1),
        stop=Stop(seconds=seconds),
        slos=slos_of(slo),
        warm_up=0,
        seed=seed,
        repeat=repeat,
        patience=patience,
    )
    with playing(None, None) as told:
        found = swept(plan, _levels(tasks), rounds, told, lambda level: typer.echo(told_level(level), err=True))
    if as_json:
        typer.echo(json.format(json.encode(found), indent=2))
    else:
        from headway.app.report.layout import console

        console().print(SweepTable(found, slo or ()))


def compare(
    before: Annotated[Path, typer.Argument(help="A report that `headway bench run --out` kept.")],
    after: Annotated[Path, typer.Argument(help="Another.")],
) -> None:
    """Two reports side by side, or why they cannot be compared (exit status 1).

    One run a side tells how large a difference is, not whether it is more than chance.

    [bold]Example[/]

    headway bench compare before.json after.json
    """
    from headway.app.report.bench_terminal import side_by_side
    from headway.app.report.layout import console
    from headway.bench.report import read
    from headway.bench.statement import differences

    first, second = read(before), read(after)
    different = differences(first.statement, second.statement)
    if different:
        raise BadInputError(
            f"{before} and {after} were made under different conditions: {'; '.join(different)}.",
            fix="Run both under the same: what differs would be measured too.",
        )
    spoiled = [str(path) for path, one in ((before, first), (after, second)) if not one.valid]
    if spoiled:
        raise BadInputError(
            f"The client spoiled the numbers of {' and '.join(spoiled)}.", fix="Run again with a smaller load."
        )
    console().print(side_by_side(first, second))


def _show(measured: "Measured", *, as_json: bool, why: bool) -> None:
    from headway.app.report.bench_terminal import BenchTable
    from headway.app.report.layout import console
    from headway.app.report.set_terminal import render_set
    from headway.bench.report import encode

    if as_json:
        typer.echo(encode(measured.report))
        return
    console().print(BenchTable(measured.report, why=why))
    if measured.report.figures.tasks:
        console().print()
        console().print(render_set(measured.study.report(), why=why))


def _levels(text: str) -> list[int]:
    try:
        levels = [int(one) for one in text.split(",")]
    except ValueError:
        levels = []
    if not levels or min(levels) < 1:
        raise typer.BadParameter(f"{text!r} is no list of numbers above 0, like 1,2,4,8", param_hint="--tasks")
    return levels
