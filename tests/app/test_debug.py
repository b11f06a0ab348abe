"""`headway debug` against a scripted model, as a person and as a machine would run it."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from debugging import knowing, needs_sandbox, scripted

from headway.gateway.fake import FakeEngine

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_sandbox()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def at_second_try(asked: str, question: str) -> object:
    """A model whose first fix does not do."""
    if asked == "fixer" and "last attempt" not in question:
        edits = [{"path": "uploader.py", "search": "/ 1000", "replace": "/ 100"}]
        return {"explanation": "no good", "edits": edits}
    if asked == "log_reader":
        return {"lines": [{"path": _log(question), "line": 2, "says": "waits a millisecond"}]}
    return knowing(asked, question)


def _log(question: str) -> str:
    return next(line for line in question.splitlines() if "uploader.log" in line)[4:-4]


async def test_a_run_is_explained_with_its_pipeline_scatters_and_retries(headway: Run, tmp_path: Path) -> None:
    store = tmp_path / "spans.db"
    async with FakeEngine(scripted(at_second_try)) as engine:
        options = ("--example", "backoff", "--base-url", engine.url, "--store", store, "--out", tmp_path / "out")
        ran = await asyncio.to_thread(headway, "debug", *options)
        judged = next(body for body in engine.requests if "From the evidence" in body["messages"][0]["content"])
    assert ran.code == 0
    assert "backoff: fixed. mended" in ran.out
    assert "1 new test failed before and passed after; of the others all 2 that passed before passed" in ran.out
    assert "+            sleep(wait_before(attempt))" in (tmp_path / "out/backoff.patch").read_text()
    assert "[2026-11-23T09:14:02.412+00:00, uploader] waits a millisecond" in judged["messages"][1]["content"]

    told = json.loads((await asyncio.to_thread(headway, "explain", "--last", "--json", "--store", store)).out)
    names = Counter(span["name"] for span in told["spans"])
    assert names["pipeline analysis"] == 1
    assert names["scatter relevance"] == names["scatter log_evidence"] == 1
    assert (names["relevance"], names["log_evidence"]) == (1, 1)
    assert (names["reproduction"], names["fix"], names["validation"]) == (1, 2, 2)
    assert names["execute_tool pytest"] == 6  # the new test, then all; twice after each of two patches
    failed = [(span["name"], span["error"]) for span in told["spans"] if span["error"]]
    assert failed == [("validation", "not_proven")]


async def test_a_machine_gets_the_runs_and_status_1_where_something_is_not_fixed(headway: Run) -> None:
    def script(asked: str, question: str) -> object:
        return {"content": "def test_it():\n    pass\n"} if asked == "test_writer" else knowing(asked, question)

    async with FakeEngine(scripted(script)) as engine:
        options = ("--example", "pages", "--base-url", engine.url, "--json", "--attempts", "1")
        ran = await asyncio.to_thread(headway, "debug", *options)
    assert ran.code == 1
    (verdict,) = json.loads(ran.out)["bugs"]
    assert (verdict["type"], verdict["bug"]) == ("not fixed", "pages")
    assert "does not fail" in verdict["why"]
    assert verdict["reached"]["analysis"] == {"symptom": "wrong", "expected": "right"}


@pytest.mark.parametrize(
    ("options", "code", "why"),
    [
        ((), 2, "There is no bug to look at"),
        (("--example", "pages", "--report", "x.md"), 2, "There is no bug to look at"),
        (("--example", "other"), 1, "There are backoff, basket, pages, rows, slots"),
        (("--report", "none.md"), 1, "none.md is no file"),
        (("--example", "pages", "--python", "/usr/bin/nothing"), 1, "is no interpreter"),
    ],
)
def test_wrong_use_is_told(headway: Run, options: tuple[str, ...], code: int, why: str) -> None:
    ran = headway("debug", *options)
    assert ran.code == code
    assert why in ran.err
