"""Bodies that are made to keep a gateway busy are passed on like others, and what takes seconds to read is not read."""

import json
from typing import Any

import pytest
from serving import Served, chat, serving

from headway.core.span import ModelCall
from headway.gateway.fake import FakeEngine
from headway.wire.crowded import MOST


async def ask_and_go_on(served: Served, history: list[dict[str, Any]]) -> None:
    """A call, and the one that continues it."""
    for _ in range(2):
        answer = await served.ask(chat(messages=history))
        assert answer.status == 200, answer.body
        said = json.loads(answer.body)["choices"][0]["message"]["content"]
        history = [*history, {"role": "assistant", "content": said}, {"role": "user", "content": "And then?"}]


@pytest.mark.parametrize(("count", "evidence"), [(3, "extends"), (MOST + 1, "new")])
async def test_a_million_little_messages_are_passed_on_unread(count: int, evidence: str) -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        await ask_and_go_on(served, [{"role": "user", "content": f"word {n}"} for n in range(count)])
        works = [span.work for span in sorted(await served.spans(2), key=lambda span: span.start)]
        calls = [work for work in works if isinstance(work, ModelCall)]
        assert len(engine.requests[1]["messages"]) == count + 2
    assert [call.identity.evidence for call in calls if call.identity is not None] == ["new", evidence]
