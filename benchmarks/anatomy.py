"""How long the anatomy of a 20,000-span task takes: the median of several runs, and where it goes.

Figure to reach: at most 100 ms. The task is made up: a root agent whose loop alternates calls and tools, every tenth
tool being a sub-agent with a loop of its own, and tools in pairs that overlap.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from headway.core.span import ModelCall, Span, Step, ToolCallRef, ToolUse
from headway.core.task import SpanId, TaskId
from headway.core.usage import EngineTimings, Usage
from headway.trace.anatomy import dissect
from headway.trace.contract import contract
from headway.trace.graph import graph_of, replay, slacks
from headway.trace.levers import rank
from headway.trace.path import own_segments, stretches
from headway.trace.tree import grow

SPANS = 20_000
RUNS = 9
BUDGET = 0.100
T = TypeVar("T")


def task(count: int) -> list[Span]:
    """A task of ``count`` spans; the same every time."""
    spans: list[Span] = []
    origin = 1_790_000_000.0

    def add(parent: SpanId | None, start: float, end: float, work: ModelCall | ToolUse | Step) -> SpanId:
        span = SpanId(f"{len(spans) + 1:016x}")
        spans.append(Span(task=TaskId("ab" * 16), id=span, parent=parent, name="work", start=start, end=end, work=work))
        return span

    def call(parent: SpanId, start: float, tools: int) -> tuple[SpanId, float]:
        end = start + 1.0
        work = ModelCall(
            model="m", provider="llama.cpp", stream=True, queued=0.05, sent=start + 0.1, first_token=start + 0.4,
            first_visible=start + 0.4, last_token=end - 0.01, attempts=1,
            usage=Usage(input_tokens=1000, output_tokens=50, cache_read=800, cache_write=0, reasoning=0),
            engine=EngineTimings(prefill_tokens=200, prefill_seconds=0.2, decode_tokens=50, decode_seconds=0.5),
            tool_calls=tuple(ToolCallRef(f"c{k}", "t") for k in range(tools)),
        )  # fmt: skip
        return add(parent, start, end, work), end

    root = add(None, origin, origin, Step(agent="root"))
    now = origin
    while len(spans) < count:
        issuer, now = call(root, now + 0.002, 2)
        if len(spans) % 30 < 3:
            tool = add(root, now, now + 6.0, ToolUse(name="sub", issued_by=issuer))
            at = now
            for _ in range(5):
                _, at = call(tool, at + 0.001, 0)
            now += 6.0
        else:
            add(root, now, now + 2.0, ToolUse(name="read", issued_by=issuer))
            add(root, now + 0.5, now + 1.0, ToolUse(name="grep", issued_by=issuer))
            now += 2.0
    del spans[count:]
    spans[0] = Span(
        task=TaskId("ab" * 16), id=root, parent=None, name="root", start=origin, end=now, work=Step(agent="root")
    )
    return spans


def timed(what: Callable[[], T]) -> tuple[float, T]:
    """Median seconds of several runs, and the last result."""
    seconds: list[float] = []
    result = what()
    for _ in range(RUNS):
        gc.collect()
        began = time.perf_counter()
        result = what()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds), result


def main() -> int:
    """Print the figures; 1 when the anatomy misses its budget."""
    spans = task(SPANS)
    stages: list[tuple[str, float]] = []

    def stage(name: str, what: Callable[[], T]) -> T:
        seconds, result = timed(what)
        stages.append((name, seconds))
        return result

    tree = stage("tree: repair, order, axis", lambda: grow(spans))
    held = stage("contraction", lambda: contract(tree))
    graph = stage("graph", lambda: graph_of(held))
    pieces = stage("phases of every span", lambda: own_segments(tree, held))
    stage("critical path", lambda: stretches(tree, graph, held, pieces))
    stage("slack", lambda: slacks(graph, held))
    whole, anatomy = timed(lambda: dissect(spans))
    once, _ = timed(lambda: replay(graph, graph.gap, graph.tail))
    levers, ranked = timed(lambda: rank(spans))

    print(f"anatomy of {len(spans):,} spans (N {anatomy.n:,}, {len(anatomy.path):,} segments), median of {RUNS} runs")
    print(f"  whole anatomy          {whole * 1e3:7.1f} ms   {whole / BUDGET:5.2f} x the {BUDGET * 1e3:.0f} ms budget")
    for name, seconds in stages:
        print(f"    {name:<27}{seconds * 1e3:7.1f} ms   {seconds / whole:5.0%}")
    rest = whole - sum(seconds for _, seconds in stages)
    print(f"    {'bars, iterations, totals':<27}{rest * 1e3:7.1f} ms   {rest / whole:5.0%}")
    print(f"  one replay             {once * 1e3:7.1f} ms")
    print(f"  {len(ranked)} levers ranked        {levers * 1e3:7.1f} ms")
    return 0 if whole <= BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
