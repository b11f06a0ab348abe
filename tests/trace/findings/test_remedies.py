"""A lever that a finding names has to exist and to help the task that it was found in."""

import re

import pytest
from findings import broken, found, told, used
from savings import usage
from tasks import call, step, tool

from headway.core.span import Span
from headway.core.usage import EngineTimings
from headway.trace.levers import rank

ENGINE = EngineTimings(prefill_tokens=100, prefill_seconds=1, decode_tokens=10, decode_seconds=2)
ASKED = ("user", "Write a plan.")
PLAN = "First look, then leap. " * 40
TASKS: dict[str, list[Span]] = {
    "tools-dominate": [call("a", 0, 1), used(tool("t", 1, 8), "search"), call("b", 8, 10)],
    "iterations-dominate": [call(f"{i}", i, i + 1, asks=("1",)) for i in range(10)],
    "writing-dominates": [call("a", 0, 9, marks=(0, 1, 9))],
    "late-first-text": [call("a", 0, 9, asks=("1",)), call("b", 9, 12, marks=(9, 9.5, 12))],
    "hop-gaps": [step("root", 0, 10), call("a", 0, 2, "root"), call("b", 5, 10, "root")],
    "serial-tools": [call("a", 0, 1), tool("t", 1, 4, by="a"), tool("u", 4, 6, by="a"), call("b", 6, 7)],
    "retries": [broken(told(call("a", 0, 3), ASKED)), told(call("b", 3, 6), ASKED)],
    "engine-queue": [call("a", 0, 6, marks=(0, 4, 6), engine=ENGINE)],
    "unread-answers": [
        told(call("a", 0, 4, marks=(0, 1, 4)), ASKED, answer=PLAN),
        told(call("b", 4, 6, marks=(4, 5, 6)), ASKED, ("user", "Shorter.")),
    ],
    "cache-unused": [
        told(call("a", 0, 2, marks=(0, 1, 2), usage=usage(1000, 10)), ASKED),
        told(call("b", 2, 5, marks=(2, 4, 5), usage=usage(1500, 10)), ASKED, ("user", "Go on.")),
    ],
}


@pytest.mark.parametrize("name", TASKS)
def test_the_lever_that_a_finding_names(name: str) -> None:
    finding = found(TASKS[name])[name]
    named = re.search(r"\(levers?: ([^)]+)\)", finding.remedy)
    assert named is not None
    helping = {lever.name for lever in rank(TASKS[name])}
    assert set(named[1].split(", ")) & helping
