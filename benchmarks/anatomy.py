"""How long the anatomy of a task takes, of 20,000 spans and of 20: processor time of several runs, and where it goes.

Figure to reach: at most 100 ms for a framework's trace of 20,000 spans, with Python's garbage collector set as `headway
explain` sets it. Processor time, because a machine that others use too says little by the wall; the best run is what
the work takes, the median what it takes beside others. Made-up tasks, the same every time:

* framework: one root, 2,000 turns of ten spans: a step, in it a call with two HTTP requests, and three tools that run
  at once, each with a request of its own; in every tenth turn one of the tools is a sub-agent with a call of its own.
* gateway: what the gateway itself records of 10,000 calls and the tools between them, every second span a call; no task
  is like this, so it is the dearest shape and has no figure.
* small: the framework's trace cut off after 20 spans, a hundred times: what each task of a large set costs.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from headway.core.span import ModelCall, Span, Step, ToolCallRef, ToolUse, Work
from headway.core.task import SpanId, TaskId
from headway.core.usage import EngineTimings, Usage
from headway.trace.anatomy import dissect
from headway.trace.contract import contract
from headway.trace.graph import graph_of, slacks
from headway.trace.levers import rank
from headway.trace.path import own_segments, stretches
from headway.trace.study import study
from headway.trace.tree import grow
from headway.trace.workers import rarely_collected

SPANS = 20_000
RUNS = 11
SMALL, SMALL_TASKS = 20, 100
BUDGET = 0.100
ORIGIN = 1_790_000_000.0
WHOLE, LEVERS = "whole anatomy", "levers by replay"
T = TypeVar("T")


class Trace:
    """Spans, one after another."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def add(self, parent: SpanId | None, start: float, end: float, work: Work) -> SpanId:
        """Record a span; its id."""
        span = SpanId(f"{len(self.spans) + 1:016x}")
        since, until = ORIGIN + start, ORIGIN + end
        task = TaskId("ab" * 16)
        self.spans.append(Span(task=task, id=span, parent=parent, name="work", start=since, end=until, work=work))
        return span

    def call(self, parent: SpanId | None, start: float, tools: int) -> SpanId:
        """Record a call of one second with all its marks; its id."""
        at = ORIGIN + start
        work = ModelCall(
            model="m", provider="llama.cpp", stream=True, queued=0.05, sent=at + 0.1, first_token=at + 0.4,
            first_visible=at + 0.4, last_token=at + 0.99, attempts=1,
            usage=Usage(input_tokens=1000, output_tokens=50, cache_read=800, cache_write=0, reasoning=0),
            engine=EngineTimings(prefill_tokens=200, prefill_seconds=0.2, decode_tokens=50, decode_seconds=0.5),
            tool_calls=tuple([ToolCallRef(f"c{k}", "t") for k in range(tools)]),
        )  # fmt: skip
        return self.add(parent, start, start + 1.0, work)


def framework(count: int) -> list[Span]:
    """A framework's trace of a long loop."""
    trace = Trace()
    turns = count // 10
    root = trace.add(None, 0.0, 5.0 * turns, Step(agent="root"))
    for turn in range(turns):
        at = 5.0 * turn
        step = trace.add(root, at, at + 5.0, Step())
        call = trace.call(step, at + 0.01, 3)
        for k in range(2):
            trace.add(call, at + 0.02 + k / 2, at + 0.4 + k / 2, Step())
        for k in range(3):
            tool = trace.add(step, at + 1.02, at + 2.5 + k, ToolUse(name="t", call_id=f"c{k}", issued_by=call))
            if turn % 10 == 0 and k == 2:
                trace.call(tool, at + 1.5, 0)
            else:
                trace.add(tool, at + 1.1, at + 2.2 + k, Step())
    return trace.spans[:count]


def gateway(count: int) -> list[Span]:
    """The gateway's own record of calls and the gaps between them."""
    trace = Trace()
    for turn in range(count // 2):
        call = trace.call(None, 3.0 * turn, 1)
        trace.add(None, 3.0 * turn + 1.0, 3.0 * turn + 3.0, ToolUse(name="t", issued_by=call, inferred=True))
    return trace.spans


class Clocked:
    """Times of the stages of one task, run after run, so that a busy machine slows all of them alike."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def __call__(self, stage: str, what: Callable[[], T]) -> T:
        """Do it and note how long it took; what earlier runs left is cleared away before."""
        gc.collect()
        began = time.process_time()
        result = what()
        self.seconds.setdefault(stage, []).append(time.process_time() - began)
        return result

    def median(self, stage: str) -> float:
        """Median seconds of a stage."""
        return statistics.median(self.seconds[stage])

    def best(self, stage: str) -> float:
        """Seconds of a stage's best run."""
        return min(self.seconds[stage])


def measure(name: str, spans: list[Span], budget: float | None) -> None:
    """Print the figures of one task."""
    clocked = Clocked()
    dissect(spans)
    for _ in range(RUNS):
        run(clocked, spans)
    anatomy, levers = dissect(spans), rank(spans)

    whole = clocked.median(WHOLE)
    ratio = "" if budget is None else f"   {whole / budget:5.2f} x the {budget * 1e3:.0f} ms to reach"
    print(
        f"{name}: {len(spans):,} spans, {anatomy.calls:,} calls, {len(anatomy.path):,} segments; median of {RUNS} runs"
    )
    print(f"  {WHOLE:<29}{whole * 1e3:5.1f} ms, best {clocked.best(WHOLE) * 1e3:5.1f} ms{ratio}")
    stages = [stage for stage in clocked.seconds if stage not in {WHOLE, LEVERS}]
    for stage in stages:
        print(f"    {stage:<27}{clocked.median(stage) * 1e3:5.1f} ms   {clocked.median(stage) / whole:5.0%}")
    rest = max(whole - sum(map(clocked.median, stages)), 0.0)
    print(f"    {'bars, iterations, totals':<27}{rest * 1e3:5.1f} ms   {rest / whole:5.0%}")
    replayed = clocked.median(LEVERS)
    best = clocked.best(LEVERS)
    print(f"  {f'{len(levers)} {LEVERS}':<29}{replayed * 1e3:5.1f} ms, best {best * 1e3:5.1f} ms, on the same study")


def measure_small() -> None:
    """Print what one task of 20 spans costs."""
    clocked, spans = Clocked(), framework(SMALL)
    for _ in range(RUNS):
        clocked("study", lambda: [study(spans) for _ in range(SMALL_TASKS)])
        clocked(WHOLE, lambda: [dissect(spans) for _ in range(SMALL_TASKS)])
    print(f"small: {SMALL} spans; best of {RUNS} runs of {SMALL_TASKS} tasks")
    for stage in clocked.seconds:
        print(f"  {stage:<29}{clocked.best(stage) / SMALL_TASKS * 1e6:5.0f} us a task")


def run(clocked: Clocked, spans: list[Span]) -> None:
    """Every stage by itself, then all of them together."""
    tree = clocked("tree: repair, order, axis", lambda: grow(spans))
    held = clocked("contraction", lambda: contract(tree))
    graph = clocked("graph", lambda: graph_of(held))
    own = clocked("phases of every span", lambda: own_segments(tree, held, whole=False))
    clocked("critical path", lambda: stretches(tree, graph, held, own))
    clocked("slack", lambda: slacks(graph, held))
    clocked(WHOLE, lambda: dissect(spans))
    case = study(spans)
    clocked(LEVERS, lambda: rank(case))


@rarely_collected()
def main() -> int:
    """Print the figures; 1 only when they could not be measured."""
    measure("framework", framework(SPANS), BUDGET)
    measure("gateway", gateway(SPANS), None)
    measure_small()
    return 0


if __name__ == "__main__":
    sys.exit(main())
