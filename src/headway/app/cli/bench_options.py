"""What `headway bench run` and `sweep` have in common: what is played, against what."""

from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.core.errors import BadInputError

if TYPE_CHECKING:
    from headway.bench.endpoint import Endpoint
    from headway.bench.slo import Slo
    from headway.bench.workload import Workload

Url = Annotated[str, typer.Argument(help="Base URL, up to and including /v1.", show_default=False)]
Model = Annotated[str, typer.Option(help="Model to ask for.")]
Shape = Annotated[str, typer.Option(help="single, chat, react, plan, scatter, pipeline or sub-agents.")]
File = Annotated[Path | None, typer.Option("--workload", help="Sessions from a file instead of a shape.")]
Slos = Annotated[list[str] | None, typer.Option("--slo", help="'task 20s', 'task_ttft 3s', 'ttft 500ms', …")]
System = Annotated[int, typer.Option(min=0, help="Tokens that all tasks begin with.")]
Input = Annotated[str, typer.Option("--input", help="Tokens that a call adds: 512, 200..800, ~500x3.")]
Output = Annotated[str, typer.Option("--output", help="Tokens of an answer, likewise.")]
Tool = Annotated[str, typer.Option(help="Seconds of a tool, likewise.")]
Think = Annotated[str, typer.Option(help="Seconds that a person thinks, likewise.")]
Steps = Annotated[str, typer.Option(help="Iterations, turns or stages, likewise.")]
Width = Annotated[int, typer.Option(min=1, help="Branches side by side.")]
Stream = Annotated[bool, typer.Option(help="Whether answers are streamed.")]
Exact = Annotated[bool, typer.Option(help="Ask for answers of exactly their length (ignore_eos).")]
Repeat = Annotated[bool, typer.Option(help="The texts of every run with this seed, not new ones.")]
Seed = Annotated[int, typer.Option(help="Of lengths and arrivals.")]
Patience = Annotated[float, typer.Option(min=0.001, help="Seconds that a call may take.")]
KeyEnv = Annotated[str | None, typer.Option(help="Environment variable with the API key.")]


def workload_of(  # noqa: PLR0913 - each is one of a shape's numbers
    shape: str,
    file: Path | None,
    seed: int,
    *,
    system: int,
    tokens_in: str,
    tokens_out: str,
    tool: str,
    think: str,
    steps: str,
    width: int,
) -> "Workload":
    """What is played.

    Raises:
        BadParameter: there is no such shape.
        BadInputError: a length is none, or the file is no workload.
    """
    from headway.bench.lengths import length
    from headway.bench.shapes import SHAPES, Sizes
    from headway.bench.workload import of_file, of_shape

    if file is not None:
        return of_file(file)
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
    return of_shape(shape, sizes, seed)


def endpoint_of(url: str, model: str, key_env: str | None, *, stream: bool, exact: bool) -> "Endpoint":
    """What is asked.

    Raises:
        BadInputError: it cannot be, or the key's variable is not set.
    """
    from headway.bench.endpoint import endpoint

    if key_env is not None and not environ.get(key_env):
        raise BadInputError(f"The environment variable {key_env} is not set.", fix="Set it to the API key.")
    key = None if key_env is None else environ[key_env]
    return endpoint(url, model, key=key, stream=stream, exact=exact)


def slos_of(texts: list[str] | None) -> "tuple[Slo, ...]":
    """What tasks are held to.

    Raises:
        BadInputError: one is no SLO.
    """
    from headway.bench.slo import slo

    return tuple(slo(text) for text in texts or ())
