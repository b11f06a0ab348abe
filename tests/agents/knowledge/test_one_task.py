"""What the agent sends is recognised as one task per question, from the messages alone."""

from collections.abc import Sequence
from itertools import count
from typing import Any

import msgspec
from openai import AsyncOpenAI

from headway.agents.knowledge.agent import WAYS, ask
from headway.agents.knowledge.assignment import Mode
from headway.agents.knowledge.plain_model import PlainModel
from headway.agents.knowledge.retrieval.index import Index
from headway.core.task import Identity, SpanId
from headway.gateway.fake import FakeEngine, Reply
from headway.policy.identify import CallAnswered, CallOpening, Identifier

PLAN = (
    '{"steps":[{"action":"search","about":"the ferry"},{"action":"summarise","about":"the ferry"},'
    '{"action":"analyse","about":"the ferry"},{"action":"answer","about":"the ferry"}]}'
)
THINKING = 3.0
"""Seconds between calls; longer than a program needs, so that time alone does not give the agent away."""


def script(body: dict[str, Any]) -> Reply:
    if "response_format" in body:
        return Reply(content=PLAN)
    if body.get("stream"):
        return Reply(content="The ferry was late because a rope was in its propeller.")
    return Reply(content="The passages say that a rope was caught in the propeller of the ferry.")


MODES: tuple[Mode, ...] = ("direct", "planning")


async def asked(index: Index, question: str) -> list[tuple[dict[str, Any], str]]:
    async with FakeEngine(script) as engine, AsyncOpenAI(base_url=engine.url, api_key="k") as client:
        for mode in MODES:
            await ask(question, index, PlainModel(client, "fake"), way=WAYS[mode])
        return [(body, script(body).content) for body in engine.requests]


def identities(calls: Sequence[tuple[dict[str, Any], str]]) -> list[Identity]:
    numbers = count(1)
    identifier = Identifier(lambda: f"{next(numbers):032x}")
    found: list[Identity] = []
    now = 0.0
    for number, (body, content) in enumerate(calls):
        span = SpanId(f"{number:016x}")
        messages = msgspec.json.encode(body["messages"])
        found.append(identifier.decide(CallOpening(span=span, tenant="", model="fake", messages=messages), now))
        now += THINKING
        identifier.observe(CallAnswered(span=span, content=content, ended_at=now, finish_reason="stop"), now)
        now += THINKING
    return found


async def test_each_question_is_one_task_and_different_ways_of_asking_are_different_tasks(ferry_index: Index) -> None:
    first = await asked(ferry_index, "Why was the ferry late?")
    second = await asked(ferry_index, "Who was told about the ferry?")
    found = identities([*first, *second])
    assert len(found) == 2 * (1 + 4)
    tasks = [identity.task for identity in found]
    assert [tasks.index(task) for task in tasks] == [0, 1, 1, 1, 1, 5, 6, 6, 6, 6]
    assert all(identity.confidence == 1.0 for identity in found)
    assert {identity.evidence for identity in found} == {"new", "extends"}
    assert all(identity.human_wait is None for identity in found)
