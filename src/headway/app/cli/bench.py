"""`headway bench`: put an endpoint under a load of tasks, and compare what two loads found."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.core.errors import BadInputError

if TYPE_CHECKING:
    from headway.app.benching import Measured


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    bench = typer.Typer(help="Loads whose unit is the task, and what came of them.", no_args_is_help=True)
    bench.command("run")(run)
    bench.command("compare")(compare)
    app.add_typer(bench, name="bench")


def run(  # noqa: PLR0913, PLR0917 - one load, and each of these is a part of what it is
    url: Annotated[str, typer.Argument(help="Base URL, up to and including /v1.", show_default=False)],
    model: Annotated[str, typer.Option(help="Model to ask for.")],
    shape: Annotated[str, typer.Option(help="single, chat, react, plan, scatter, pipeline or sub-agents.")] = "react",
    workload: Annotated[Path | None, typer.Option(help="Sessions from a file instead of a shape.")] = None,
    arrivals: Annotated[str, typer.Option(help="'closed 8', 'constant 5/s', 'poisson 5/s', … see docs.")] = "closed 1",
    sessions: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Begin none after so long.")] = None,
    warm_up: Annotated[int, typer.Option(min=0, help="Sessions, from the first, that do not count.")] = 0,
    slo: Annotated[list[str] | None, typer.Option(help="'task 20s', 'task_ttft 3s', 'ttft 500ms', …")] = None,
    system: Annotated[int, typer.Option(min=0, help="Tokens that all tasks begin with.")] = 500,
    tokens_in: Annotated[
        str, typer.Option("--input", help="Tokens that a call adds: 512, 200..800, ~500x3.")
    ] = "~200x2",
    tokens_out: Annotated[str, typer.Option("--output", help="Tokens of an answer, likewise.")] = "64",
    tool: Annotated[str, typer.Option(help="Seconds of a tool, likewise.")] = "0.5",
    think: Annotated[str, typer.Option(help="Seconds that a person thinks, likewise.")] = "2",
    steps: Annotated[str, typer.Option(help="Iterations, turns or stages, likewise.")] = "5",
    width: Annotated[int, typer.Option(min=1, help="Branches side by side.")] = 4,
    stream: Annotated[bool, typer.Option(help="Whether answers are streamed.")] = True,
    exact: Annotated[bool, typer.Option(help="Ask for answers of exactly their length (ignore_eos).")] = False,
    repeat: Annotated[bool, typer.Option(help="The texts of every run with this seed, not new ones.")] = False,
    seed: Annotated[int, typer.Option(help="Of lengths and arrivals.")] = 0,
    patience: Annotated[float, typer.Option(min=0.001, help="Seconds that a call may take.")] = 600.0,
    key_env: Annotated[str | None, typer.Option(help="Environment variable with the API key.")] = None,
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
    from headway.bench.endpoint import endpoint
    from headway.bench.lengths import length
    from headway.bench.report import encode
    from headway.bench.shapes import SHAPES, Sizes
    from headway.bench.slo import slo as read_slo
    from headway.bench.workload import of_file, of_shape

    if shape not in SHAPES:
        raise typer.BadParameter(f"{shape!r} is none of {', '.join(SHAPES)}", param_hint="--shape")
    sizes = Sizes(
        system=system,
        input=length(tokens_in, "--input"),
        output=length(tokens_out, "--output"),
        tool=length(tool, "--tool"),
        think=length(think, "--think"),
        steps=length(steps, "--steps"),
        width=width,
    )
    plan = Plan(
        endpoint=endpoint(url, model, key=_key(key_env), stream=stream, exact=exact),
        workload=of_shape(shape, sizes, seed) if workload is None else of_file(workload),
        load=read_arrivals(arrivals),
        stop=Stop(sessions=sessions, seconds=seconds),
        slos=tuple(read_slo(one) for one in slo or ()),
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


def _key(name: str | None) -> str | None:
    from os import environ

    if name is None:
        return None
    if not environ.get(name):
        raise BadInputError(f"The environment variable {name} is not set.", fix="Set it to the API key.")
    return environ[name]
