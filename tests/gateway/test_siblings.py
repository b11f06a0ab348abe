"""Two gateways that tell each other of calls through a real Redis; and what becomes of tasks while that is away."""

import itertools
import json
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from own_redis import OwnRedis
from serving import Served, chat, serving

from headway.gateway.fake import FakeEngine, Reply, ToolCall
from headway.gateway.shelves import RedisShelf
from headway.gateway.siblings import Siblings
from headway.policy.identify import Identifier


def ids(first: int) -> Callable[[], str]:
    numbers = itertools.count(first)
    return lambda: f"{next(numbers):032x}"


def answers(body: dict[str, Any]) -> Reply:
    return Reply(tool_calls=(ToolCall(f"call_{len(body['messages'])}", "search", '{"q": "the same"}'),))


async def tasks_of(served: list[Served], question: str, calls: int = 4) -> set[str]:
    """The tasks of an agent's calls, each to the next of the gateways."""
    messages: list[Any] = [{"role": "user", "content": question}]
    tasks = set[str]()
    for number in range(calls):
        answer = await served[number % len(served)].ask(chat(messages=messages))
        assert answer.status == 200
        tasks.add(answer.headers["x-headway-task"])
        message = json.loads(answer.body)["choices"][0]["message"]
        messages += [message, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "nothing"}]
    return tasks


async def outcome(served: Served, name: str) -> int:
    page = (await served.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")).body.decode()
    sample = f'headway_tasks_asked_for_total{{outcome="{name}"}} '
    return next(int(line.removeprefix(sample)) for line in page.splitlines() if line.startswith(sample))


async def test_a_task_is_one_while_redis_is_there_and_calls_go_on_while_it_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with OwnRedis() as redis, FakeEngine(answers) as engine, AsyncExitStack() as stack:
        served = [
            await stack.enter_async_context(
                serving(
                    engine,
                    identifier=Identifier(ids(10**number), shared=True),
                    siblings=Siblings(RedisShelf(redis.url, 60), patience=5.0),
                )
            )
            for number in (1, 6)
        ]
        assert len(await tasks_of(served, "Where is the first thing that I look for?")) == 1
        assert await outcome(served[1], "found") > 0
        await redis.stop()
        assert len(await tasks_of(served, "Where is the second thing that I look for?")) == 2
        assert await outcome(served[1], "unavailable") > 0
        assert "other workers' calls are not known for now" in caplog.text
        await redis.start()
        for number in itertools.count():  # it is left alone for a second
            if len(await tasks_of(served, f"Where is thing {number} that I look for?")) == 1:
                break
        assert "other workers' calls are known again" in caplog.text
