"""What is said of a task whose record keeps no times: nothing about seconds, nor about how they are known."""

import pytest
from tasks import call, span

from headway.core.span import Step, ToolUse
from headway.core.task import SpanId
from headway.trace.account import account_of
from headway.trace.sources.source import Timing
from headway.trace.sources.verdict import judge

SPANS = (
    span("run", 0, 0, Step(agent="a")),
    call("ask", 0, 0, "run", asks=("ls",)),
    span("ls", 0, 0, ToolUse(name="ls", issued_by=SpanId("ask"), inferred=True), "run"),
    call("answer", 0, 0, "run"),
)


@pytest.mark.parametrize(
    ("timing", "missing"), [("none", "how long anything took"), ("durations", "when things happened")]
)
def test_a_record_without_times_is_not_said_to_have_any(timing: Timing, missing: str) -> None:
    account = account_of(SPANS, judge(SPANS, "made", timing))
    untrue = ("model time", "gap between", "Task TTFT")
    assert not [note for note in account.anatomy.unknowns if any(word in note for word in untrue)]
    assert account.anatomy.task_ttft is None
    (found,) = [one for one in account.findings if one.name == "no-times"]
    assert found.title == f"This record (made) does not say {missing}, so nothing is said of seconds."


def test_one_with_times_says_how_they_are_known() -> None:
    account = account_of(SPANS, judge(SPANS, "made", "spans"))
    assert any("unsplit" in note for note in account.anatomy.unknowns)
    assert any("gap between" in note for note in account.anatomy.unknowns)
