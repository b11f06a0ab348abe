"""Whatever a model writes, its agent ends, by an answer or by a reason, and what is sent is always a conversation."""

import asyncio
import json
from contextlib import suppress
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from scripted import engine_and_runtime, start

from headway.core.errors import StoppedError
from headway.core.usage import Usage
from headway.gateway.fake import Reply, ToolCall
from headway.runtime import Agent, Context, Policy, Run, tool

FOUND = "found " * 200


@tool(purity="reads", most_bytes=800)
async def look(run: Run, at: int) -> str:
    """Look."""
    del run
    if at > 5:
        raise ValueError(at)
    return FOUND * at


class Verdict(Struct):
    good: bool


TEXT = st.text(max_size=40)
ARGUMENTS = st.one_of(
    st.sampled_from(
        ['{"at": 1}', '{"at": 3}', '{"at": "4"}', '{"at": 9}', "{}", "", "null", '{"at": [[[[]]]]}', "{" * 99]
    ),
    TEXT,
    st.sampled_from([f'{{"result": "{name}", "start": 3}}' for name in ("r1", "r2", "x")]),
)
NAMES = st.one_of(st.sampled_from(["look", "look", "recall", "", "lok"]), TEXT)
CALLS = st.lists(st.builds(ToolCall, st.sampled_from(["a", "b", "", "call_1_0"]), NAMES, ARGUMENTS), max_size=4)
ANSWERS = st.one_of(TEXT, st.sampled_from(['{"good": true}', '{"good": 1}', "```json\n{}\n```", "[" * 99]))


def written(text: str, made: list[ToolCall], reason: str | None, count: int | None) -> Reply:
    return Reply(content=text, tool_calls=tuple(made), finish_reason=reason, usage=Usage(input_tokens=count))


REASONS = st.sampled_from([None, None, "length", "content_filter"])
REPLIES = st.builds(written, ANSWERS, CALLS, REASONS, st.none() | st.integers(0, 10_000))


@given(st.lists(REPLIES, min_size=1, max_size=8), st.sampled_from([str, Verdict]), st.integers(200, 3000))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_a_model_writes_its_agent_ends_and_sends_only_what_is_a_conversation(
    replies: list[Reply], answer: type[Any], tokens: int
) -> None:
    policy = Policy(iterations=len(replies), mistakes=3, context=Context(tokens=tokens))

    async def body() -> list[dict[str, Any]]:
        async with engine_and_runtime(replies) as (engine, runtime):
            with suppress(StoppedError):
                assert isinstance(await start(runtime, Agent("fake", [look], policy, answer=answer), "what?"), answer)
            return engine.requests

    requests = asyncio.run(body())
    assert 1 <= len(requests) <= len(replies)
    for request in requests:
        is_a_conversation(request["messages"])
    for one, other in pairwise(requests):
        changed = [
            at for at, (was, now) in enumerate(zip(one["messages"], other["messages"], strict=False)) if was != now
        ]
        assert all("Taken out to save room" in other["messages"][at]["content"] for at in changed)


def is_a_conversation(messages: list[dict[str, Any]]) -> None:
    """Each call is answered, once, in order, before anything else is said; all that is JSON can be read."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call["id"] for call in message.get("tool_calls", ())]
            assert len(set(waiting)) == len(waiting)
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            assert 1 <= len(call["function"]["name"]) <= 64
        assert isinstance(message["content"], str)
    assert waiting == []
