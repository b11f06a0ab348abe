"""What scattering and streaming are worth to an agent, on an engine that is scripted to be as fast as a real one.

    python benchmarks/agents_at_work.py [--quick]

The engine is a process of its own; every call gets its own 50 tokens a second, and is read at 5,000. The estimate is of
a model that writes 15 tokens a second in each of eight places; whoever finds them taken waits. Beside us the same calls
are made by plain asyncio, and by LangGraph where it is installed, with the same client.
"""

import argparse
import asyncio
import operator
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from heapq import heapreplace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Annotated, Any, TypedDict

from openai import AsyncOpenAI

from headway.gateway.fake import FakeEngine, Reply
from headway.runtime import Models, Run, Runtime, Said, calibrate, task
from headway.runtime.calibrate import unheard
from headway.runtime.chunking import Chunk, Document, by_file

TOKENS_A_SECOND, READING, SLOW = 50, 5_000, 15
FILES = 50
PLACES = [0.0] * 8
"""When each place of the engine is free, for the model that has so many."""
WORDS = ("pump", "valve", "pressure", "log", "config", "retry", "cache", "queue", "socket", "thread")
SUM = " ".join(["this is what all of it comes to in so many words"] * 3)
"""What the engine answers that is asked of no file: 33 words."""
VERDICT = re.compile(r"(\S+) is relevant (\d+)")
"""What the engine says of a file: the path, and how relevant it is, from 0 to 100."""


def documents() -> list[Document]:
    """Files of about 60 lines of made-up words."""
    dice = random.Random(50)
    return [
        Document(f"src/part{number:02}.py", "".join(f"{' '.join(dice.choices(WORDS, k=8))}\n" for _ in range(60)))
        for number in range(FILES)
    ]


def script(body: dict[str, Any]) -> Reply:
    """Answer as a model would that judges each file by itself: some 20 tokens for each, by what stands in it."""
    text = "".join(str(message["content"]) for message in body["messages"])
    files = re.findall(r"=== (\S+?) ===\n(.*?)(?=\n=== |\Z)", text, re.DOTALL)
    lines = [
        f"{path} is relevant {content.count('pump') * 100 // (1 + content.count(' '))} of 100 because it names what the"
        " report tells of here and there in its lines."
        for path, content in files
    ]
    words = "\n".join(lines or [SUM]).split(" ")
    reading = len(text.split()) / READING
    now = begin = time.monotonic()
    gap = 1 / TOKENS_A_SECOND
    if body["model"] == "eight places":
        begin, gap = max(now, PLACES[0]), 1 / SLOW
        heapreplace(PLACES, begin + reading + gap * (len(words) - 1))
    return Reply(
        chunks=tuple(word if at == 0 else f" {word}" for at, word in enumerate(words)),
        ttft=begin - now + reading,
        itl=gap,
    )


@asynccontextmanager
async def engine() -> AsyncGenerator[str]:
    """The engine in a process of its own; its URL."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--engine", stdout=subprocess.PIPE, stdin=subprocess.PIPE
    )
    try:
        yield "" if child.stdout is None else (await child.stdout.readline()).decode().strip()
    finally:
        child.terminate()
        await child.wait()


async def serve() -> None:
    """Be the engine."""
    async with FakeEngine(script) as fake:
        print(fake.url, flush=True)
        await asyncio.Event().wait()


def ask(text: str) -> list[dict[str, Any]]:
    """A question about files."""
    return [{"role": "user", "content": f"How relevant is each file to: the pump does not start?\n{text}"}]


def scores(answers: Sequence[str]) -> dict[str, int]:
    """What was said of each file."""
    return {path: int(score) for answer in answers for path, score in VERDICT.findall(answer)}


# ── file relevance: one long call against a scatter ──


async def judged(run: Run, chunk: Chunk) -> str:
    """One chunk of files."""
    return (await run.chat(ask(chunk.text), model="fake", max_tokens=4_096)).text


@task()
async def scattered(run: Run, chunks: list[Chunk]) -> dict[str, int]:
    """All chunks at once."""
    return scores(await run.map(judged, chunks, limit=len(chunks)))


class Found(TypedDict):
    """What LangGraph's graph gathers."""

    found: Annotated[list[str], operator.add]


def by_langgraph(client: AsyncOpenAI, chunks: list[Chunk]) -> Callable[[], Awaitable[dict[str, int]]]:
    """The same scatter as a graph with one node, to which every chunk is sent."""
    library: Any = import_module("langgraph.graph")
    send: Any = import_module("langgraph.types").Send

    async def call(state: dict[str, Any]) -> dict[str, Any]:
        return {"found": [await asked(client, state["text"])]}

    def every(_state: dict[str, Any]) -> list[Any]:
        return [send("call", {"text": chunk.text}) for chunk in chunks]

    graph = library.StateGraph(Found)
    graph.add_node("call", call)
    graph.add_conditional_edges(library.START, every, ["call"])
    graph.add_edge("call", library.END)
    compiled = graph.compile()

    async def work() -> dict[str, int]:
        return scores((await compiled.ainvoke({}, {"max_concurrency": len(chunks)}))["found"])

    return work


async def asked(client: AsyncOpenAI, text: str) -> str:
    """One call by the client alone."""
    messages: Any = ask(text)
    answer = await client.chat.completions.create(model="fake", messages=messages)
    return answer.choices[0].message.content or ""


async def relevance(url: str, rounds: int) -> None:
    """Fifty files: by one long call, and by a call for each."""
    files = documents()
    (whole,) = by_file(files, 10**9)
    chunks = [chunk for file in files for chunk in by_file([file], 10**9)]
    async with (
        Models(url) as models,
        Runtime(models=models) as runtime,
        AsyncOpenAI(base_url=url, api_key="x") as client,
    ):

        async def plain() -> dict[str, int]:
            return scores(await asyncio.gather(*(asked(client, chunk.text) for chunk in chunks)))

        async def ours() -> dict[str, int]:
            return await runtime.start(scattered, chunks)

        async def long() -> dict[str, int]:
            return scores([await asked(client, whole.text)])

        ways: list[tuple[str, Callable[[], Awaitable[dict[str, int]]]]] = [("run.map", ours), ("plain asyncio", plain)]
        if find_spec("langgraph") is not None:
            ways.append(("LangGraph", by_langgraph(client, chunks)))
        await ours()
        started = time.perf_counter()
        expected = await long()
        alone = time.perf_counter() - started
        taken: dict[str, list[float]] = {name: [] for name, _ in ways}
        for _ in range(rounds):
            for name, work in ways:
                started = time.perf_counter()
                found = await work()
                taken[name].append(time.perf_counter() - started)
                if found != expected or len(found) != FILES:
                    raise SystemExit(f"{name} found something else than one long call")
    print(f"file relevance, {FILES} files at {TOKENS_A_SECOND} tok/s a call: one long call {alone:.1f} s")
    for name, seconds in taken.items():
        print(f"  {name:<14}{median(seconds):6.2f} s, {alone / median(seconds):5.1f} times as fast (goal 10), equal")


# ── streaming against batch ──


async def read(run: Run, question: tuple[str, bool]) -> str:
    """An inner call: one file."""
    text, stream = question
    return (await run.chat(ask(text), model="fake", say=unheard if stream else False)).text


@task()
async def answered(run: Run, texts: list[str], inner: bool, last: bool) -> str:
    """A task of a user's: files are read, then the answer is written."""
    notes = await run.map(read, [(text, inner) for text in texts], limit=len(texts))
    told = [{"role": "user", "content": f"Sum up {len(notes)} notes."}]
    text = (await run.chat(told, model="fake", say=last)).text
    if not last:
        run.say(text)
    return text


async def first_visible(runtime: Runtime, texts: list[str], inner: bool, last: bool) -> tuple[float, float]:
    """Seconds to the first text that the user sees, and to the end."""
    begun = time.perf_counter()
    started, seen = runtime.start(answered, texts, inner, last), 0.0
    async for event in started.progress():
        if isinstance(event, Said) and not seen:
            seen = time.perf_counter() - begun
    await started
    return seen, time.perf_counter() - begun


async def streaming(url: str, rounds: int) -> None:
    """The same tasks, eight at a time, with one stage streamed, all of it, or nothing."""
    texts = [f"=== {file.path} ===\n{file.text}" for file in documents()[:10]]
    ways = {"the last stage streams": (False, True), "all stream": (True, True), "nothing streams": (False, False)}
    figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        async with Models(url) as models, Runtime(models=models, store=Path(folder) / "s.db") as runtime:
            await first_visible(runtime, texts, inner=True, last=True)
            for _ in range(rounds):
                for name, (inner, last) in ways.items():
                    cpu, wall = time.process_time(), time.perf_counter()
                    tasks = await asyncio.gather(*(first_visible(runtime, texts, inner, last) for _ in range(8)))
                    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                    figures[name].append((median(seen for seen, _ in tasks), 8 / wall, cpu / 8))
    print("8 tasks at once, each 10 inner calls and an answer of 33 tokens:")
    for name, measured in figures.items():
        seen, rate, cpu = (median(column) for column in zip(*measured, strict=True))
        print(f"  {name:<24} task TTFT {seen:5.2f} s, {rate:.2f} tasks/s, {cpu * 1000:4.0f} ms of CPU a task")


# ── an estimate against what came of it ──


async def summed(run: Run, text: str) -> None:
    """One call of the model that has eight places."""
    await run.chat(ask(text), model="eight places")


@task()
async def planned(run: Run, texts: list[str]) -> tuple[float | None, float, str]:
    """Calibrate, foretell, do it."""
    await calibrate(run, texts, model="eight places")
    plan = await run.estimate([str(ask(text)[0]["content"]) for text in texts], model="eight places")
    begun = time.perf_counter()
    await run.map(summed, texts, limit=plan.width or 64)
    return plan.seconds, time.perf_counter() - begun, str(plan)


async def foretelling(url: str) -> None:
    """What an estimate said, and what it took."""
    texts = [f"=== {file.path} ===\n{file.text[: 200 + 60 * at]}" for at, file in enumerate(documents())]
    with tempfile.TemporaryDirectory() as folder:
        async with Models(url) as models, Runtime(models=models, store=Path(folder) / "s.db") as runtime:
            told, took, page = await runtime.start(planned, texts)
    print(f"an estimate: {page}")
    print(f"  it took {took:.2f} s; told {'nothing' if told is None else f'{told:.2f} s, {told / took:.3f} of that'}")


async def measure(rounds: int) -> None:
    """All of it."""
    async with engine() as url:
        await relevance(url, rounds)
        await streaming(url, rounds)
        await foretelling(url)


def main() -> None:
    """Measure, or be the engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--engine", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        asyncio.run(serve())
        return
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    asyncio.run(measure(1 if options.quick else 3))


if __name__ == "__main__":
    main()
