"""One task worked out by hand, and one too long for any page: what the reports are tested on."""

from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import NamedTuple

import pytest

from headway.app.cli.main import main
from headway.core.money import MicroUsd
from headway.core.span import ErrorType, ModelCall, Retrieval, Span, Step, ToolUse, Work
from headway.core.spent import Spent, Sum
from headway.core.task import Identity, SessionId, SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.anatomy import Anatomy, Iteration
from headway.trace.levers import Lever
from headway.trace.path import Phase, Segment
from headway.trace.waterfall import Bar

TASK = TaskId("3f2a9c1e55d04b7f9a1c0e2d8b6f4a37")
SESSION = SessionId("9b1d")
STARTED = 1_800_000_000.0
MODEL = "qwen2.5-0.5b-instruct"
FIRST = Usage(input_tokens=1204, output_tokens=118, cache_read=0)
SECOND = Usage(input_tokens=2410, output_tokens=301, cache_read=1180)
THIRD = Usage(input_tokens=3101, output_tokens=277, cache_read=2700)


def bar(
    name: str,
    depth: int,
    times: tuple[float, float],
    work: Work,
    *pieces: tuple[Phase, float, float],
    on_path: bool = True,
    slack: float = 0.0,
    error: str | None = None,
) -> Bar:
    start, end = times
    span = Span(
        task=TASK,
        id=SpanId(f"{name}@{start}"),
        parent=None,
        name=name,
        start=STARTED + start,
        end=STARTED + end,
        work=work,
        session=SESSION,
        error=None if error is None else ErrorType(error),
    )
    return Bar(
        span=span,
        depth=depth,
        start=start,
        end=end,
        pieces=tuple(Segment(span.id, *piece) for piece in pieces),
        on_path=end - start if on_path else 0.0,
        slack=slack,
    )


def call(usage: Usage) -> ModelCall:
    identity = Identity(task=TASK, session=SESSION, evidence="tool_result", confidence=1.0)
    return ModelCall(model=MODEL, stream=True, first_token=STARTED, usage=usage, identity=identity, replica="r1")


@pytest.fixture
def anatomy() -> Anatomy:
    """E2E 38.20 s = 0.66 hop + 0.67 queue + 6.15 prefill + 27.80 decode + 2.50 tool + 0.42 retrieval."""
    hop, queue, prefill, decode = Phase.HOP, Phase.QUEUE, Phase.PREFILL, Phase.DECODE
    chat = f"chat {MODEL}"
    bars = (
        bar("invoke_agent planner", 0, (0.0, 38.2), Step(agent="planner")),
        bar(
            chat,
            1,
            (0.21, 8.4),
            call(FIRST),
            (hop, 0.21, 0.23),
            (queue, 0.23, 0.9),
            (prefill, 0.9, 3.9),
            (decode, 3.9, 8.4),
        ),
        bar("execute_tool search", 1, (8.4, 10.9), ToolUse(name="search", inferred=True), (Phase.TOOL, 8.4, 10.9)),
        bar(
            "execute_tool calculator",
            1,
            (8.4, 9.1),
            ToolUse(name="calculator"),
            (Phase.TOOL, 8.4, 9.1),
            on_path=False,
            slack=1.8,
            error="tool_error",
        ),
        bar(chat, 1, (10.95, 24.6), call(SECOND), (prefill, 10.95, 13.2), (decode, 13.2, 24.6)),
        bar("invoke_agent critic", 1, (12.0, 20.0), Step(agent="critic"), on_path=False, slack=inf),
        bar(
            "chat judge", 2, (12.2, 19.0), ModelCall(model="judge"), (Phase.MODEL, 12.2, 19.0), on_path=False, slack=inf
        ),
        bar("retrieval corpus", 1, (24.6, 25.02), Retrieval(source="corpus"), (Phase.RETRIEVAL, 24.6, 25.02)),
        bar(chat, 1, (25.2, 38.05), call(THIRD), (prefill, 25.2, 26.1), (decode, 26.1, 38.0), (hop, 38.0, 38.05)),
    )
    root = bars[0].span.id
    gaps = (Segment(root, hop, 0.0, 0.21), Segment(root, hop, 10.9, 10.95))
    gaps += (Segment(root, hop, 25.02, 25.2), Segment(root, hop, 38.05, 38.2))
    tiles = [*gaps, *(piece for row in bars if row.on_path > 0 for piece in row.pieces)]
    ttfts, tpots, tools = (3.67, 2.25, 0.9), (4.5 / 117, 11.4 / 300, 11.9 / 276), (2.5, 0.42, 0.0)
    hops, queues, prefills, decodes = (0.07, 0.18, 0.2), (0.67, 0.0, 0.0), (3.0, 2.25, 0.9), (4.5, 11.4, 11.9)
    iterations = tuple(
        Iteration(
            span=SpanId(f"{number}"),
            model=MODEL,
            hop=hops[number],
            queue=queues[number],
            prefill=prefills[number],
            decode=decodes[number],
            model_unsplit=0.0,
            tools=tools[number],
            ttft=ttfts[number],
            tpot=tpots[number],
            usage=usage,
        )
        for number, usage in enumerate((FIRST, SECOND, THIRD))
    )
    return Anatomy(
        task=TASK,
        session=SESSION,
        started_at=STARTED,
        e2e=38.2,
        n=3,
        calls=4,
        path=tuple(sorted(tiles, key=lambda tile: tile.start)),
        phases={hop: 0.66, queue: 0.67, prefill: 6.15, decode: 27.8, Phase.TOOL: 2.5, Phase.RETRIEVAL: 0.42},
        iterations=iterations,
        lead_in=0.21,
        bars=bars,
        detached=(bars[5].span.id,),
        task_ttft=26.1,
        last_call_ttft=0.9,
        usage=Usage(input_tokens=6715, output_tokens=696, cache_read=3880),
        cached_share=3880 / 6715,
        cost=None,
        spent=Spent(
            input_tokens=Sum(6715, 4, 4),
            output_tokens=Sum(696, 4, 4),
            tokens=Sum(7411, 4, 4),
            cache_read=Sum(3880, 4, 4),
            cost=Sum(0, 0, 4),
        ),
        failures=1,
        retries=0,
        human=0.0,
        unknowns=(f"The cost is unknown: {MODEL} has no public price.",),
    )


@pytest.fixture
def levers() -> tuple[Lever, ...]:
    return (
        Lever(
            key="made",
            name="one iteration fewer",
            seconds=10.42,
            share=0.2728,
            tokens=2711,
            cost=None,
            assumes="the agent answers from what it has after the second call",
            tradeoff="None.",
            rule="E2E grows with N: each iteration pays hop, prefill and decode again",
            how="give the result's format up front, or merge the two searches into one tool",
        ),
        Lever(
            key="made",
            name="the whole prefix from the cache",
            seconds=4.1,
            share=0.1073,
            tokens=None,
            cost=MicroUsd(412),
            assumes="all but the new messages are cached",
            tradeoff="None.",
            rule="prefill is linear in the tokens that are not cached",
            how="keep the beginning of the prompt constant",
        ),
    )


@pytest.fixture
def long_spans() -> tuple[Span, ...]:
    """20,000 spans: 5,000 turns of a call and three tools, one after another."""
    spans = [Span(task=TASK, id=SpanId("root"), parent=None, name="agent", start=0.0, end=20_000.0, work=Step())]
    for turn in range(5000):
        at = turn * 4.0
        model = ModelCall(model=MODEL, stream=True, sent=at, first_token=at + 0.5, last_token=at + 1.5, usage=FIRST)
        spans.append(
            Span(
                task=TASK, id=SpanId(f"c{turn}"), parent=SpanId("root"), name="chat", start=at, end=at + 1.5, work=model
            )
        )
        spans += (
            Span(
                task=TASK,
                id=SpanId(f"t{turn}.{n}"),
                parent=SpanId("root"),
                name=f"execute_tool tool{n}",
                start=at + 1.6,
                end=at + 2.0 + n / 2,
                work=ToolUse(name=f"tool{n}"),
            )
            for n in range(3)
        )
    return tuple(spans[:20_000])


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def headway(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs the real command line in this process."""

    def run(*arguments: str | Path) -> Ran:
        monkeypatch.setattr("sys.argv", ["headway", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Ran(int(ended.value.code or 0), out, err)

    return run
