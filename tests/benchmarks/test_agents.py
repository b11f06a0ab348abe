"""Agents replay recorded sessions: what they send, and what is read off the answers."""

import asyncio
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine
from headway.gateway.fake_reply import Reply
from rig.agents import OBSERVATION_CHARS, OPENING_CHARS, TURNS, BadAnswerError, Session, play, sessions


def recorded(folder: Path, name: str, inputs: list[str]) -> None:
    place = folder / "lmcache-agent-trace" / "miniswe"
    place.mkdir(parents=True, exist_ok=True)
    rows = [{"timestamp": at, "input": text, "output": "", "session_id": name} for at, text in enumerate(inputs)]
    (place / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in reversed(rows)))


def test_a_session_is_what_each_request_adds_to_the_one_before_cut_to_size(tmp_path: Path) -> None:
    inputs = ["task " + "x" * OPENING_CHARS]
    for number in range(TURNS):
        inputs.append(f"{inputs[-1]}\n\n<returncode>{number}</returncode>{'y' * OBSERVATION_CHARS}")
    recorded(tmp_path, "a", inputs)
    recorded(tmp_path, "b", inputs[:3])  # too short a session
    recorded(tmp_path, "c", [*inputs[:2], "another beginning", *inputs[3:]])  # whose history does not grow

    (found,) = sessions(tmp_path, 8)

    assert len(found.texts) == TURNS
    assert found.texts[0] == inputs[0][:OPENING_CHARS]
    assert found.texts[2].startswith("<returncode>1</returncode>yy")
    assert {len(text) for text in found.texts[1:]} == {OBSERVATION_CHARS}


def test_nothing_is_found_where_there_are_no_recordings(tmp_path: Path) -> None:
    assert sessions(tmp_path, 8) == []


async def test_each_call_repeats_the_history_with_the_engines_own_answer() -> None:
    usage = Usage(input_tokens=70, output_tokens=2, cache_read=50)
    async with FakeEngine(lambda _: Reply(content="so be it", usage=usage)) as engine:
        port = urlsplit(engine.url).port or 0
        (outcome,) = await asyncio.to_thread(play, port, [Session(("do this", "it gave 1"))])

    assert [message["content"] for message in engine.requests[1]["messages"]] == ["do this", "so be it", "it gave 1"]
    assert [(call.prompt, call.computed) for call in outcome.calls] == [(70, 20), (70, 20)]
    assert 0 < outcome.calls[0].ttft < outcome.seconds


async def test_a_call_that_is_refused_ends_the_run() -> None:
    async with FakeEngine(lambda _: Reply(status=400, content="no")) as engine:
        with pytest.raises(BadAnswerError, match="400"):
            await asyncio.to_thread(play, urlsplit(engine.url).port or 0, [Session(("do this",))])
