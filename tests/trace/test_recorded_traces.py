"""The analysis on traces that others recorded: published critical-path cases, and agents with wrappers and waiters."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from importing import sample

from headway.core.span import ModelCall, Span, Step, ToolUse, Work
from headway.core.task import SpanId, TaskId
from headway.trace.anatomy import dissect
from headway.trace.path import Phase, critical_path
from headway.trace.study import study
from headway.trace.tree import grow

SECOND = 1_000_000
"""Microseconds, in which Jaeger counts."""


def jaeger(path: Path, work: Callable[[dict[str, Any]], Work], unit: int = SECOND) -> list[Span]:
    """The spans of the file's only trace; ``unit`` of its microseconds make a second."""
    (trace,) = json.loads(path.read_bytes())["data"]
    since = min(one["startTime"] for one in trace["spans"])
    return [
        Span(
            task=TaskId(trace["traceID"]),
            id=SpanId(one["spanID"]),
            parent=next((SpanId(ref["spanID"]) for ref in one.get("references", [])), None),
            name=one["operationName"],
            start=(one["startTime"] - since) / unit,
            end=(one["startTime"] - since + one["duration"]) / unit,
            work=work(one),
        )
        for one in trace["spans"]
    ]


# Worked out from the files' times, which are microseconds; a letter is a span, a number where its segment ends. A span
# is waited for if it had ended when the next started, so of overlapping ones the last to end is on the path (12-14,
# 16, 19, 20), and what starts after its parent's end is on none (9).
CRISP = {
    "1": "A100",
    "4": "A10 B20 C30 B60 A100",
    "9": "A60 D90 A100",
    "11": "A30 B60 A100",
    "12": "A10 B30 D50 B70 A100",
    "13": "A10 B30 D50 B70 A100",
    "14": "A10 B30 A40 D65 A80",
    "15": "A10 B20 A25 C35 A40 D50 A55 E65 A70 F80 A85 G100",
    "16": "A10 B20 A30 D40 A50 E60 A70 F80 G90 F100 A110",
    "17": "A20 B30 C50 B70 A80 D90 A100",
    "18": "A10 B30 C40 B50 D60 B70 E80 B110 A120 F140 G150 H170 G180 I190 G200 F220 A250",
    "19": "A10 B210 A300 D600",
    "20": "A10 B210 A300 D600",
    "22": "A50 B100 A150 C200 A250 D300",
    "23": "A50 B100 C150 B200 D250 B300 E350 A400 F450 G500 F550 H600 F650 I700",
    "24": "A50 B100 C150 B200 D250 B300 E350 A400 F450 G500 F550 H600 F650 I700",
    "25": "A50 B100 C150 B200 D250 B300 E350 A400 F450 G500 F550 H600 F650 I700",
    "err_pattern1_err1": "A70 B100",
    "err_pattern1_err2": "A70 B100",
    "err_pattern2_err1": "A70 B100",
    "err_pattern3_err1": "B70 C100",
    "err_pattern4_err1": "B70 C100",
}


@pytest.mark.parametrize("case", CRISP)
def test_published_critical_paths(case: str) -> None:
    spans = jaeger(sample(f"traces/jaeger_crisp/{case}.json"), lambda _: ToolUse(name="work"), unit=1)
    tree = grow(spans)
    path = critical_path(tree)
    assert " ".join(f"{one.span}{one.end:.0f}" for one in path) == CRISP[case]
    assert all(one.end == after.start for one, after in pairwise(path))


def test_a_published_case_of_overlaps_within_the_tolerance() -> None:
    # B ends at 210 and C starts at 209, and so on: at 2,000 to a second that is half a millisecond.
    spans = jaeger(sample("traces/jaeger_crisp/10.json"), lambda _: ToolUse(name="work"), unit=2000)
    path = critical_path(grow(spans))
    assert [(one.span, round(one.end * 2000)) for one in path] == [
        ("A", 10), ("B", 209), ("C", 308), ("D", 608), ("A", 1000)
    ]  # fmt: skip


def adk(one: dict[str, Any]) -> Work:
    """An agent framework's spans: its wrapper of a call and the provider's span of it are both calls."""
    if one["operationName"] in {"call_llm", "openai.chat"}:
        return ModelCall(model="m")
    if one["operationName"].startswith("execute_tool"):
        return ToolUse(name=one["operationName"])
    return Step(agent="helm" if one["operationName"].startswith("invoke_agent") else None)


@pytest.mark.parametrize(
    ("name", "model", "e2e", "calls"),
    # Durations of the spans named openai.chat, and of the root, read from the files.
    [
        ("helm", 2_274_805 + 1_797_164, 4_180_457, 2),
        ("helm_2", 1_948_053, 2_004_350, 1),
        ("k8s", 2_099_429, 2_145_579, 1),
    ],
)
def test_of_wrapped_calls_among_long_poll_waiters_the_model_has_its_share_once(
    name: str, model: int, e2e: int, calls: int
) -> None:
    # The sum of all calls' spans would be 195 per cent of E2E, and the last to finish is a waiter beside them all.
    found = dissect(jaeger(sample(f"traces/jaeger_genai/{name}.json"), adk))
    assert (found.calls, found.n) == (calls, calls)
    assert found.e2e == pytest.approx(e2e / SECOND, abs=1e-6)
    assert found.phases[Phase.MODEL] == pytest.approx(model / SECOND, abs=1e-6)
    assert found.phases[Phase.MODEL] / found.e2e > 0.97
    assert found.detached == ()


def test_the_tool_between_two_calls_of_a_framework_is_on_the_path() -> None:
    # It is recorded inside the first call's wrapper, which the second call follows.
    case = study(jaeger(sample("traces/jaeger_genai/helm.json"), adk))
    names = [case.tree.spans[turn.call].name for turn in case.turns]
    assert names == ["openai.chat", "openai.chat"]
    owners = {case.tree.spans[stretch.owner].name: stretch.seconds for stretch in case.walked}
    assert owners["execute_tool helm_list_releases"] == pytest.approx(0.057091, abs=1e-6)
