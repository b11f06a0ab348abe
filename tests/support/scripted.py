"""Agents whose model is scripted."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine, Reply, ToolCall
from headway.runtime import Models, Run, Runtime, Started, task

_UNTOLD = Usage()
"""What a call read and wrote: the fake counts words, of which a test's texts may have one in a thousand letters."""


def calls(*asked: tuple[str, str], first: int = 0) -> Reply:
    """A model that asks for tools, each by name and arguments; their ids are numbered on from ``first``."""
    made = tuple(ToolCall(f"c{at}", name, arguments) for at, (name, arguments) in enumerate(asked, first))
    return Reply(tool_calls=made, usage=_UNTOLD)


def says(text: str) -> Reply:
    """A model that answers."""
    return Reply(content=text, usage=_UNTOLD)


@asynccontextmanager
async def engine_and_runtime(
    script: Iterable[Reply] | Callable[[dict[str, Any]], Reply], store: Path | None = None
) -> AsyncGenerator[tuple[FakeEngine, Runtime]]:
    """A runtime whose model answers by a script: one reply after the other, or by the request."""
    if not callable(script):
        replies = iter(script)
        script = lambda _: next(replies)  # noqa: E731 - nothing to name
    async with (
        FakeEngine(script) as engine,
        Models(engine.url) as models,
        Runtime(models=models, store=store) as runtime,
    ):
        yield engine, runtime


def start(runtime: Runtime, f: Callable[..., Any], *args: object) -> Started[Any]:
    """Start an async function of a run and ``args`` as a task."""

    @task()
    async def asks(run: Run) -> Any:  # noqa: ANN401 - whatever it gives
        return await f(run, *args)

    return runtime.start(asks)
