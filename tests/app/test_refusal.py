"""`headway refusal` and `headway break-even`: what they measure, printed and as JSON."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine, Reply

Run = Callable[..., Any]
QUESTIONS = (
    {
        "question": "Why was the ferry late?",
        "kind": "answered",
        "language": "en",
        "document": "a.md",
        "words": "a rope",
    },
    {"question": "Who was told of it?", "kind": "answered", "language": "en", "document": "a.md", "words": "master"},
    {"question": "How do vaccines work?", "kind": "far", "language": "en"},
    {"question": "Who painted the Mona Lisa?", "kind": "far", "language": "en"},
)


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Ferry\n\n## Why\n\nThe ferry was late: a rope.\n\n## Told\n\nThe harbour master.\n")
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    return folder


def test_the_trade_off_is_chosen_on_one_half_and_told_of_the_other(headway: Run, docs: Path) -> None:
    arguments = ("refusal", "--docs", docs, "--questions", docs.parent / "q.jsonl")
    page = headway(*arguments)
    assert page.code == 0
    assert "chosen, other half" in page.out
    measured = json.loads(headway(*arguments, "--json").out)
    assert measured["found"] == [{"language": "en", "questions": 2, "recall": {"1": 1.0, "3": 1.0}}]
    assert measured["chosen"]["kept"] == 1.0
    assert measured["chosen"]["threshold"] == measured["held_out"]["threshold"]
    assert measured["curve"][0]["refused_far"] == 0.0
    assert measured["curve"][-1]["refused_near"] is None


def test_questions_belong_to_their_documents(headway: Run, docs: Path) -> None:
    alone = headway("refusal", "--docs", docs)
    assert (alone.code, "Give both" in alone.err) == (1, True)
    (docs / "a.md").write_text("Nothing of it.")
    other = headway("refusal", "--docs", docs, "--questions", docs.parent / "q.jsonl")
    assert (other.code, "No passage of a.md holds" in other.err) == (1, True)


def script(body: dict[str, Any]) -> Reply:
    whole = "The harbour master" in body["messages"][0]["content"]
    usage = Usage(input_tokens=900 if whole else 100, output_tokens=4, cache_read=0)
    return Reply(content="A rope.", usage=usage)


async def test_both_ways_are_measured_and_compared(headway: Run, docs: Path) -> None:
    async with FakeEngine(script) as engine:
        arguments = ("break-even", "Why?", "Who was told?", "--docs", docs, "--base-url", engine.url)
        page = await asyncio.to_thread(headway, *arguments)
        priced = await asyncio.to_thread(headway, *arguments, "--model", "gpt-4o-mini", "--json")
        alone = await asyncio.to_thread(headway, "break-even", "Why?", "--docs", docs, "--base-url", engine.url)
    assert page.code == 0
    assert "all documents, question 2" in page.out
    assert "tokens a second" in page.out
    assert "In money: not known" in page.out
    measured = json.loads(priced.out)
    # 0.15 and 0.6 USD a million tokens, rounded up to a whole micro-USD a call: 15 + 2.4 and 135 + 2.4
    assert measured["micro_usd"] == {"searched": 18.0, "first": 138.0, "later": 138.0}
    assert measured["questions_money"] is None
    assert (alone.code, "Give two or more" in alone.err) == (1, True)
