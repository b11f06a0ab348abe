"""An agent whose calls come to several workers, each on a connection of its own: one task."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from services import redis_url
from several import Several, several

from headway.core.span import ModelCall
from headway.gateway.fake import FakeEngine, Reply, ToolCall
from headway.trace.store import Store

CALLS = 8


def answers(body: dict[str, Any]) -> Reply:
    """A tool's call for each request, another each time."""
    number = len(body["messages"])
    return Reply(tool_calls=(ToolCall(f"call_{number}", "search", json.dumps({"q": f"number {number}"})),))


async def run_agent(served: Several, question: str) -> None:
    """The loop of an agent: a call, its tool's result, the next call; a new connection for each."""
    messages: list[Any] = [
        {"role": "system", "content": "You are careful. " * 200},
        {"role": "user", "content": question},
    ]
    async with served.client() as client:
        for _ in range(CALLS):
            answer = await client.chat.completions.create(model="fake", messages=messages)
            message = answer.choices[0].message
            assert message.tool_calls
            messages.append(message.model_dump(exclude_none=True))
            messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "nothing found"})


def tasks_in(store: Path) -> dict[str, list[ModelCall]]:
    with Store(store, readonly=True) as opened:
        return {
            row.task: [span.work for span in opened.spans(row.task) if isinstance(span.work, ModelCall)]
            for row in opened.tasks(limit=100)
        }


@pytest.mark.parametrize("shared", ["memory", "redis"])
async def test_calls_on_alternating_workers_are_one_task(tmp_path: Path, shared: str) -> None:
    where = f'redis = "{redis_url()}"\n' if shared == "redis" else ""
    async with FakeEngine(answers) as engine:
        (tmp_path / "headway.toml").write_text(
            f'[gateway]\nport = 0\nstore = "spans.db"\nworkers = 2\n[[replicas]]\nid = "r"\nurl = "{engine.url}"\n'
            f'[tasks]\npatience = "5 s"\nttl = "1 min"\n{where}'
        )
        async with several(tmp_path) as served:
            await asyncio.gather(*[run_agent(served, f"Question {number}: where is it?") for number in range(3)])
            found = await served.counted('headway_tasks_asked_for_total{outcome="found"}')
            assert await served.counted("headway_tasks_total ") == 3
    tasks = tasks_in(tmp_path / "spans.db")
    assert sorted(len(calls) for calls in tasks.values()) == [CALLS] * 3
    assert found > 0  # else all came to one worker by chance: 2 in 2 ** 24
    for calls in tasks.values():
        evidence = [call.identity.evidence for call in calls if call.identity is not None]
        assert evidence == ["new", *["tool_result"] * (CALLS - 1)]
