"""The demo from start to end: start, ask twice, explain, compare, check, and show the way on."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from headway.agents.knowledge.agent import WAYS, KnowledgeAnswer, ask
from headway.agents.knowledge.assignment import Mode
from headway.agents.knowledge.embed import E5Embedder
from headway.agents.knowledge.plain_model import BrokenOffError, PlainModel
from headway.agents.knowledge.retrieval.index import Index
from headway.app.asking import Teller, closing, load_index, open_client
from headway.app.demo.account import Account, account, checks, known_tasks, verdict_line
from headway.app.demo.child import ServeProcess
from headway.app.demo.comparison import compare
from headway.app.demo.counters import fetch_counters, restarted
from headway.app.report.exports.target import write_text
from headway.app.report.figures import plural
from headway.app.report.html import html_task
from headway.app.report.terminal import render_task
from headway.app.service import Ready
from headway.trace.store import Store

MODES: Final[tuple[Mode, ...]] = ("direct", "planning")
HOW: Final[dict[Mode, str]] = {
    "direct": "Direct: search once, one call",
    "planning": "Planning: the model writes a plan, the agent takes its steps",
}
WEAK: Final = (
    "Note: the local model is very small (135 million parameters). It shows every mechanism on any machine, but its "
    "answers are often poor or wrong. For good answers put a real endpoint behind the gateway."
)


class Demo(Struct, frozen=True, kw_only=True):
    """What to ask, of which documents, and where to leave the results."""

    question: str
    docs: Path
    out: Path
    """A folder that exists."""
    engines: tuple[str, ...]
    """Options of ``headway serve`` that say what serves."""
    model: str
    keep: bool = False
    """Leave the gateway running afterwards, until Ctrl-C."""


async def run(demo: Demo, console: Console) -> None:
    """Run the demo; when this returns or raises, nothing that it started is left.

    Raises:
        HeadwayError: something failed; the message says what, and what to do.
    """
    began = time.monotonic()
    options = [*demo.engines, "--port", "0", "--store", str(demo.out / "demo.db")]
    async with ServeProcess(options, demo.out / "demo.log") as child:
        index, ready = await _prepare(demo, child, console)
        before = await fetch_counters(ready.replicas)
        with index, Store(demo.out / "demo.db", readonly=True) as store:
            accounts = [await child.guard(_ask(mode, demo, index, ready, store, console)) for mode in MODES]
        after = await fetch_counters(ready.replicas)
        verdicts = checks(accounts, before, after, restarted(ready.replicas))
        reports = _explain(accounts, demo.out, console)
        _heading(console, "What planning cost")
        console.print(compare(*(one.anatomy for one in accounts)))
        console.print("\nDo the numbers add up?", *map(verdict_line, verdicts), sep="\n")
        _heading(console, "Go on from here")
        _ways_on(demo, reports, console)
        console.print(Text(f"\nDone in {time.monotonic() - began:.1f} s.", "dim"))
        if demo.keep:
            console.print(f"The gateway still serves on {ready.url}; Ctrl-C stops it.")
            await child.guard(asyncio.Event().wait())


async def _prepare(demo: Demo, child: ServeProcess, console: Console) -> tuple[Index, Ready]:
    """Start the engines and read the documents at the same time."""
    began = time.monotonic()
    console.print("Starting the gateway and its engines …")
    console.print(Text(f"Reading the documents in {demo.docs} …"))

    async def start() -> Ready:
        ready = await child.ready()
        count = plural(len(ready.replicas), "replica")
        console.print(f"  {count} ready behind {ready.url} after {time.monotonic() - began:.1f} s")
        return ready

    async def read() -> Index:
        index = await load_index([demo.docs], E5Embedder, console)
        console.print(f"  {len(index.chunks)} passages ready to be searched after {time.monotonic() - began:.1f} s")
        return index

    starting = asyncio.create_task(start())
    try:
        return await child.guard(read()), await starting
    finally:
        starting.cancel()
        await asyncio.wait({starting})


async def _ask(mode: Mode, demo: Demo, index: Index, ready: Ready, store: Store, console: Console) -> Account:
    _heading(console, HOW[mode])
    if mode == MODES[0]:
        console.print(Text(WEAK, "yellow"))
    console.print(Text(f"Question: {demo.question}\n", "bold"))
    known = known_tasks(store)
    answer = await _answer(mode, demo, index, ready, console)
    console.print(Text(f"\n{closing(answer)}", "dim"))
    return await account(store, known, answer)


async def _answer(mode: Mode, demo: Demo, index: Index, ready: Ready, console: Console) -> KnowledgeAnswer:
    teller = Teller(console, console)

    def broken(error: BrokenOffError) -> None:
        teller.end()
        console.print(Text(f"  {error.what}\n  Asking once more: another replica may answer.", "yellow"))

    try:
        async with open_client(ready.url, "none") as client:
            return await ask(
                demo.question,
                index,
                PlainModel(client, demo.model, broken),
                on_text=teller.text,
                on_step=teller.step,
                way=WAYS[mode],
            )
    finally:
        teller.end()


def _explain(accounts: Sequence[Account], out: Path, console: Console) -> list[Path]:
    """Print each task's account, and write it for a browser."""
    reports: list[Path] = []
    for one in accounts:
        _heading(console, f"Where the time went: {one.answer.mode}")
        console.print(render_task(one.task))
        reports.append(write_text(out / f"demo-{one.answer.mode}.html", html_task(one.task), "--out"))
    return reports


def _ways_on(demo: Demo, reports: Sequence[Path], console: Console) -> None:
    lines = [
        "The reports, for a browser:",
        *(f"  {report}" for report in reports),
        "Everything recorded is still there:",
        f"  headway tasks --store {demo.out / 'demo.db'}",
        "Your own agent, on any engine or provider:",
        "  headway serve --upstream https://api.openai.com/v1,key-env=OPENAI_API_KEY   # or your vLLM, SGLang, Ollama",
        "  export OPENAI_BASE_URL=http://127.0.0.1:8080/v1                             # then start the agent as ever",
        "  headway explain --last",
    ]
    console.print(Text("\n".join(lines)), soft_wrap=True)


def _heading(console: Console, title: str) -> None:
    console.print()
    console.print(Rule(Text(title, "bold"), align="left"))
