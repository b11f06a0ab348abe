"""A session whose calls land on alternating workers goes on at the replica that has its prompt."""

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from services import own_name, redis_url
from several import Several, several

from headway.core.span import ModelCall
from headway.gateway.fake import FakeEngine, Reply
from headway.trace.store import Store

SESSIONS, TURNS = 8, 5
LONG = "A long question, word by word. " * 100


async def until_all_heard(served: Several, calls: int) -> None:
    async with asyncio.timeout(30):
        while await served.counted('headway_whereabouts_total{outcome="heard"}') < calls:
            pass


async def all_ask(served: Several, histories: list[list[Any]]) -> None:
    """The next call of each session, on a connection of its own, so on whichever worker the kernel chooses."""
    async with served.client() as client:

        async def ask(messages: list[Any]) -> None:
            answer = await client.chat.completions.create(model="fake", messages=messages)
            messages.append({"role": "assistant", "content": answer.choices[0].message.content})
            messages.append({"role": "user", "content": f"Question {len(messages)}, if you please."})

        await asyncio.gather(*map(ask, histories))


def replicas_of(store: Path) -> dict[str, list[str | None]]:
    found = defaultdict[str, list[str | None]](list)
    with Store(store, readonly=True) as opened:
        for row in opened.tasks(limit=1000):
            for span in opened.spans(row.task):
                if isinstance(span.work, ModelCall):
                    found[span.session or ""].append(span.work.replica)
    return found


@pytest.mark.parametrize("shared", ["memory", "redis"])
async def test_no_session_moves(tmp_path: Path, shared: str) -> None:
    gate, waiting = asyncio.Event(), list[int]()
    names = [f"{own_name()}_{number}" for number in range(2)]  # other runs may have told of theirs in the same Redis

    def answers(body: dict[str, Any]) -> Reply:
        waiting.append(1)
        if len(waiting) == SESSIONS:  # all begin at once, so that they spread over the replicas
            gate.set()
        return Reply(content=f"The answer to {len(body['messages'])} messages.", gate=gate)

    where = f'redis = "{redis_url()}"\n' if shared == "redis" else ""
    async with FakeEngine(answers) as one, FakeEngine(answers) as two:
        replicas = "".join(
            f'[[replicas]]\nid = "{name}"\nurl = "{engine.url}"\n'
            for name, engine in zip(names, (one, two), strict=True)
        )
        (tmp_path / "headway.toml").write_text(
            f'[gateway]\nport = 0\nstore = "spans.db"\nworkers = 2\npolicy = "cache-aware"\n{replicas}'
            f'[tasks]\npatience = "5 s"\nttl = "1 min"\n{where}'
        )
        histories: list[list[Any]] = [
            [{"role": "user", "content": f"Session {number}. {LONG}"}] for number in range(SESSIONS)
        ]
        async with several(tmp_path) as served:
            for turn in range(1, TURNS + 1):
                await all_ask(served, histories)
                await until_all_heard(served, turn * SESSIONS)
            assert await served.counted("headway_whereabouts_workers") == 2
    found = replicas_of(tmp_path / "spans.db")
    assert sorted(len(calls) for calls in found.values()) == [TURNS] * SESSIONS
    assert {calls[0] for calls in found.values()} == set(names)
    assert [set(calls) for calls in found.values() if len(set(calls)) > 1] == []
