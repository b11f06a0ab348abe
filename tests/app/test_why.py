"""`headway why`: all that was decided about a call, as it was recorded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.core.span import Candidate, ErrorType, ModelCall, Receipt, Setback, Span
from headway.core.task import SpanId, TaskId
from headway.trace.store import Store

Run = Callable[..., Any]
TASK = "ab" * 16
START = 1_800_000_000.0


def call(number: int, work: ModelCall, error: str | None = None) -> Span:
    return Span(
        task=TaskId(TASK),
        id=SpanId(f"{number}" * 16),
        parent=None,
        name="chat m",
        start=START + number,
        end=START + number + 0.5,
        work=work,
        error=None if error is None else ErrorType(error),
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    receipt = Receipt(
        policy="expected-seconds",
        winner="b",
        reason="costs least",
        candidates=(Candidate("a", 2.5), Candidate("b", 0.125)),
        notes=("It waited 0.250 s for its turn.",),
    )
    setback = Setback(replica="a", error=ErrorType("upstream_connect"), start=START, end=START + 0.125)
    chosen = ModelCall(model="m", replica="b", route=receipt, queued=0.25, attempts=2, setbacks=(setback,))
    refused = ModelCall(
        model="m", route=Receipt(policy="schedule", winner="", reason="9 calls wait"), queued=0.0, attempts=0
    )
    with Store(path) as opened:
        opened.write([call(1, chosen), call(2, refused, "queue_full"), call(3, ModelCall(model="m"))])
    return path


def test_a_call_is_told_with_its_candidates_wait_setback_and_notes(headway: Run, store: Path) -> None:
    ran = headway("why", "1111", "--store", store)
    assert ran.code == 0
    words = [" ".join(line.split()) for line in ran.out.splitlines() if line.strip()]
    assert words[0].startswith("CALL 1111111111111111 chat m, ")
    assert words[1:] == [
        f"task {TASK}",
        "went to b",
        "because costs least",
        "decided by expected-seconds",
        "waited 0.250 s for its turn",
        "sent 2 times",
        "candidate score",
        "b 0.125 chosen",
        "a 2.5",
        "- a was asked first and failed after 0.125 s: upstream_connect.",
        "- It waited 0.250 s for its turn.",
    ]


def test_a_task_tells_of_all_its_calls_also_of_those_that_went_nowhere(headway: Run, store: Path) -> None:
    out = headway("why", TASK[:8], "--store", store).out
    assert out.count("CALL ") == 3
    assert "went to     nowhere" in out
    assert "ended with  queue_full" in out
    assert "`headway audit` has it" in " ".join(out.split())


def test_the_document_has_every_figure(headway: Run, store: Path) -> None:
    document = json.loads(headway("why", "1111111111111111", "--store", store, "--json").out)
    assert document["schema"] == "headway.why/1"
    (told,) = document["calls"]
    assert told == {
        "call": "1" * 16,
        "task": TASK,
        "name": "chat m",
        "started_at": START + 1,
        "error": None,
        "policy": "expected-seconds",
        "winner": "b",
        "reason": "costs least",
        "candidates": [{"name": "a", "score": 2.5}, {"name": "b", "score": 0.125}],
        "notes": ["It waited 0.250 s for its turn."],
        "setbacks": [{"replica": "a", "error": "upstream_connect", "took_s": 0.125}],
        "queued_s": 0.25,
        "attempts": 2,
    }


def test_what_is_not_there_is_said_with_what_to_do(headway: Run, store: Path) -> None:
    ran = headway("why", "9999", "--store", store)
    assert ran.code == 1
    assert "There is no task '9999'" in ran.err
