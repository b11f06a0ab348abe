"""`headway ask` against a fake engine, as a person and as a machine would run it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.gateway.fake import FakeEngine, Reply

Run = Callable[..., Any]
QUESTION = "Why was the ferry late?"
PLAN = '{"steps":[{"action":"search","about":"the rope"},{"action":"answer","about":"the rope"}]}'


def script(body: dict[str, Any]) -> Reply:
    if "response_format" in body:
        return Reply(content=PLAN)
    return Reply(
        chunks=("A rope\x1b[2J", " did it.", '\nQUOTE [1] "late because of a rope"\n', 'QUOTE [1] "a sail tore"')
    )


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "ferry.md").write_text("# The ferry\n\n## Cause\n\nThe ferry was late because of a rope.\n")
    (folder / "scan.pdf").write_bytes(b"%PDF-1.4 nonsense")
    return folder


async def test_a_person_sees_the_answer_then_its_sources(headway: Run, docs: Path) -> None:
    async with FakeEngine(script) as engine:
        ran = await asyncio.to_thread(headway, "ask", QUESTION, "--docs", docs, "--base-url", engine.url)
    assert ran.code == 0
    answer, _, rest = ran.out.partition("\n")
    assert answer == "A rope\N{REPLACEMENT CHARACTER}[2J did it."
    assert rest.strip().splitlines() == [
        "Quotes, each found in the documents",
        '  [1] "late because of a rope" (ferry.md, Cause)',
        '  dropped: "a sail tore": it stands in none of the passages',
        "Sources",
        "  [1] ferry.md, Cause",
    ]
    assert "scan.pdf is not a PDF" in ran.err
    assert "answer" in ran.err
    assert engine.requests[0]["model"] == "fake"


async def test_a_machine_gets_one_json_value(headway: Run, docs: Path) -> None:
    async with FakeEngine(script) as engine:
        options = ("--docs", docs, "--base-url", engine.url, "--mode", "planning", "--model", "m", "--json")
        ran = await asyncio.to_thread(headway, "ask", QUESTION, *options)
    answer = json.loads(ran.out)
    assert answer["text"] == "A rope\x1b[2J did it."
    assert answer["grounded"] is True
    assert answer["quotes"] == [
        {"text": "late because of a rope", "source": 1, "document": "ferry.md", "place": "Cause"}
    ]
    assert answer["plan"]["source"] == "model"
    assert [call["step"] for call in answer["calls"]] == ["plan", "answer"]
    assert answer["sources"][0]["document"] == "ferry.md"
    assert answer["usage"]["output_tokens"] == sum(call["usage"]["output_tokens"] for call in answer["calls"])
    assert [request["model"] for request in engine.requests] == ["m", "m"]


async def test_the_key_comes_from_the_environment(headway: Run, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeEngine(script, api_key="right") as engine:
        arguments = ("ask", QUESTION, "--docs", docs, "--base-url", engine.url, "--model", "m")
        refused = await asyncio.to_thread(headway, *arguments)
        monkeypatch.setenv("OPENAI_API_KEY", "right")
        answered = await asyncio.to_thread(headway, *arguments)
    assert refused.code == 1
    assert "wrong API key" in refused.err
    assert answered.code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--base-url", "localhost"), "no http(s) URL"),
        (("--docs", "/does/not/exist", "--base-url", "http://127.0.0.1:1/v1"), "no documents at /does/not/exist"),
        (("--base-url", "http://127.0.0.1:1/v1"), "could not be asked for its models"),
    ],
)
def test_what_cannot_work_ends_with_one_message(headway: Run, arguments: tuple[str, ...], message: str) -> None:
    ran = headway("ask", "Why?", *arguments)
    assert ran.code == 1
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""


async def test_a_question_about_something_else_is_refused_without_asking_the_model(headway: Run, docs: Path) -> None:
    async with FakeEngine(script) as engine:
        arguments = ("ask", "How do vaccines work?", "--docs", docs, "--base-url", engine.url)
        refused = await asyncio.to_thread(headway, *arguments)
        assert engine.requests == []
        asked = await asyncio.to_thread(headway, *arguments, "--threshold", "0")
    assert refused.code == 3
    assert "do not hold the answer: the best passages fit the question by 0." in refused.out
    assert "What came nearest\n  [1] ferry.md, Cause" in refused.out
    assert asked.code == 0


@pytest.mark.parametrize(
    ("reply", "code", "words"),
    [
        ("NOT IN THE DOCUMENTS", 3, "the model read the passages and found no answer in them"),
        ("A sail.", 4, "No quote proves this answer, so it may be wrong."),
    ],
)
async def test_no_answer_and_one_without_proof_have_statuses_of_their_own(
    headway: Run, docs: Path, reply: str, code: int, words: str
) -> None:
    async with FakeEngine(lambda _body: Reply(content=reply)) as engine:
        ran = await asyncio.to_thread(headway, "ask", QUESTION, "--docs", docs, "--base-url", engine.url)
    assert ran.code == code
    assert words in ran.out
    assert ("NOT IN" in ran.out) is False


async def test_the_second_time_the_index_is_there_and_what_has_gone_is_not_found(headway: Run, docs: Path) -> None:
    index = docs.parent / "kept" / "index.db"
    async with FakeEngine(script) as engine:
        arguments = ("ask", QUESTION, "--docs", docs, "--base-url", engine.url, "--index", index, "--json")
        await asyncio.to_thread(headway, *arguments)
        (docs / "ferry.md").rename(docs / "boat.md")
        ran = await asyncio.to_thread(headway, *arguments)
    assert index.is_file()
    assert [source["document"] for source in json.loads(ran.out)["sources"]] == ["boat.md"]


async def test_all_documents_may_stand_in_the_prompt(headway: Run, docs: Path) -> None:
    (docs / "cakes.md").write_text("# Cakes\n\nPlums on Sundays.\n")
    async with FakeEngine(script) as engine:
        arguments = ("--docs", docs, "--base-url", engine.url, "--mode", "cag")
        ran = await asyncio.to_thread(headway, "ask", QUESTION, *arguments)
        await asyncio.to_thread(headway, "ask", "Who bakes?", *arguments)
    one, two = engine.requests
    assert one["messages"][0] == two["messages"][0]
    assert "[1] Cakes\nPlums on Sundays." in one["messages"][0]["content"]
    assert "[2] The ferry, Cause\nThe ferry was late because of a rope." in one["messages"][0]["content"]
    assert ran.out.endswith("Sources\n  [2] ferry.md, Cause\n")  # of all documents only what is quoted


async def test_an_answer_is_held_to_its_budget(headway: Run, docs: Path) -> None:
    async with FakeEngine(script) as engine:
        arguments = ("ask", QUESTION, "--docs", docs, "--base-url", engine.url)
        tokens = await asyncio.to_thread(headway, *arguments, "--max-tokens", "100")
        money = await asyncio.to_thread(headway, *arguments, "--max-usd", "0.01")
    assert engine.requests == []
    assert (tokens.code, money.code) == (1, 1)
    assert "budget" in tokens.err
    assert "price of 'fake' is not known" in money.err


async def test_explain_shows_the_search_and_the_call_of_the_answer(headway: Run, docs: Path) -> None:
    async with FakeEngine(script) as engine:
        await asyncio.to_thread(headway, "ask", QUESTION, "--docs", docs, "--base-url", engine.url)
    ran = await asyncio.to_thread(headway, "explain", "--last")
    assert ran.code == 0
    for name in ("invoke_agent knowledge", "retrieval documents", "chat fake"):
        assert name in ran.out
