"""`headway ask` against a fake engine, as a person and as a machine would run it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.gateway.fake import FakeEngine, Reply

Run = Callable[..., Any]
PLAN = '{"steps":[{"action":"search","about":"the rope"},{"action":"answer","about":"the rope"}]}'


def script(body: dict[str, Any]) -> Reply:
    if "response_format" in body:
        return Reply(content=PLAN)
    return Reply(chunks=("A rope\x1b[2J", " did it."), finish_reason="length")


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "ferry.md").write_text("# The ferry\n\n## Cause\n\nThe ferry was late because of a rope.\n")
    (folder / "scan.pdf").write_bytes(b"%PDF-1.4 nonsense")
    return folder


async def test_a_person_sees_the_answer_then_its_sources(headway: Run, docs: Path) -> None:
    async with FakeEngine(script) as engine:
        ran = await asyncio.to_thread(headway, "ask", "Why?", "--docs", docs, "--base-url", engine.url)
    assert ran.code == 0
    answer, _, rest = ran.out.partition("\n")
    assert answer == "A rope\N{REPLACEMENT CHARACTER}[2J did it."
    assert rest == "\n  (cut off at the limit of its length)\nSources\n  [1] ferry.md, Cause\n"
    assert "scan.pdf is not a PDF" in ran.err
    assert "answer" in ran.err
    assert engine.requests[0]["model"] == "fake"


async def test_a_machine_gets_one_json_value(headway: Run, docs: Path) -> None:
    async with FakeEngine(script) as engine:
        options = ("--docs", docs, "--base-url", engine.url, "--mode", "planning", "--model", "m", "--json")
        ran = await asyncio.to_thread(headway, "ask", "Why?", *options)
    answer = json.loads(ran.out)
    assert answer["text"] == "A rope\x1b[2J did it."
    assert answer["plan"]["source"] == "model"
    assert [call["step"] for call in answer["calls"]] == ["plan", "answer"]
    assert answer["sources"][0]["document"] == "ferry.md"
    assert answer["usage"]["output_tokens"] == sum(call["usage"]["output_tokens"] for call in answer["calls"])
    assert [request["model"] for request in engine.requests] == ["m", "m"]


async def test_the_key_comes_from_the_environment(headway: Run, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeEngine(script, api_key="right") as engine:
        arguments = ("ask", "Why?", "--docs", docs, "--base-url", engine.url, "--model", "m")
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
