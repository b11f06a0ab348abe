"""The traffic: conversations as agents hold them, and the answers that the mock engine gives.

Every conversation carries a `MARKER` in its first user message, which the load generator replaces by an id that is
new each time the conversation is played: the gateway never sees one twice. Each request of an agent repeats the one
before it, adds the engine's answer word for word and the result of the tool that it called.
"""

import json
import random
import re
from typing import Any

from msgspec import Struct

MARKER = "@@conversation@@"
_WORDS = tuple(
    re.findall(
        r"\w+",
        """
        the deploy replica request latency cache error queue timeout index shard commit branch test fixture schema
        handler retry budget token prompt answer module import config value field writes reads returns raises after
        before while because every second first last slow fast missing stale wrong expected actual
        """,
    )
)


class Traffic(Struct, frozen=True):
    """What one case sends and gets back."""

    bodies: tuple[bytes, ...]
    """One JSON request a body; each ``turns`` of them are one conversation."""
    turns: int
    answer: bytes
    """Body of every answer: JSON, or the whole event stream."""
    mark: int
    """Bytes of the answer after which its first token has arrived."""


ANSWER = (
    "The retry budget is spent before the second shard answers: the handler waits for the slow replica, times out and "
    "starts again from the first. I would raise the budget of that one call, not the timeout of all of them, and look "
    "at the queue of the slow replica next."
)
_USAGE = {
    "prompt_tokens": 812,
    "completion_tokens": 64,
    "total_tokens": 876,
    "prompt_tokens_details": {"cached_tokens": 768},
}
_HEAD = {"id": "chatcmpl-7f3b9c2ad41e4f0fa1c0", "created": 1_700_000_000, "model": "mock", "system_fingerprint": "fp_0"}


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


_STEP = {
    "role": "assistant",
    "content": "The slow replica is the likely cause. I read its queue before I change a budget.",
    "tool_calls": [
        {
            "id": "call_0",
            "type": "function",
            "function": {
                "name": "read_file",
                "arguments": '{"path":"src/queue.py","reason":"how long a call may wait"}',
            },
        }
    ],
}
"""What the engine says in each step of an agent. Like some real engines, it gives the same id to every tool call."""


def plain_answer(message: dict[str, Any], finish: str) -> bytes:
    """The body of a chat completion that was not streamed."""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return _compact({**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE})


def stream_events(tokens: int) -> tuple[bytes, ...]:
    """The data of each event of a streamed answer: role, ``tokens`` tokens, finish, usage, ``[DONE]``."""
    dice = random.Random(tokens)

    def chunk(choices: list[dict[str, Any]], usage: dict[str, Any] | None = None) -> bytes:
        return _compact({**_HEAD, "object": "chat.completion.chunk", "choices": choices, "usage": usage})

    def delta(delta: dict[str, str], finish: str | None = None) -> bytes:
        return chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])

    words = (delta({"content": f" {dice.choice(_WORDS)}"}) for _ in range(tokens))
    return (delta({"role": "assistant", "content": ""}), *words, delta({}, "stop"), chunk([], _USAGE), b"[DONE]")


def event_stream(events: tuple[bytes, ...]) -> bytes:
    """The events as they stand on the wire, freed of the chunks they travel in."""
    return b"".join(b"data: " + event + b"\n\n" for event in events)


def _prose(dice: random.Random, size: int) -> str:
    """Sentences of about ``size`` characters, never more."""
    text = ""
    while len(text) < size:
        text += " ".join(dice.choices(_WORDS, k=dice.randint(6, 14))).capitalize() + ". "
    return text[:size].rstrip()


def _tool(dice: random.Random, name: str) -> dict[str, Any]:
    properties = {field: {"type": "string", "description": _prose(dice, 90)} for field in ("path", "query", "reason")}
    parameters = {"type": "object", "properties": properties, "required": ["path"]}
    return {"type": "function", "function": {"name": name, "description": _prose(dice, 260), "parameters": parameters}}


def _conversation(dice: random.Random, size: int, steps: int) -> list[bytes]:
    """The requests of an agent from the first to the last, ``size`` bytes each on average."""
    tools = [_tool(dice, name) for name in ("read_file", "search", "edit", "run_tests", "list_folder")]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": _prose(random.Random(0), 3_000)},
        {"role": "user", "content": f"Ticket {MARKER}: {_prose(dice, 700)}"},
    ]

    def body() -> bytes:
        return _compact({"model": "mock", "temperature": 0, "max_tokens": 512, "messages": messages, "tools": tools})

    bodies = [body()]
    growth = 2 * (size - len(bodies[0])) // (steps - 1)  # from here in equal steps, so the middle one has ``size``
    for _ in range(steps - 1):
        result = {"role": "tool", "tool_call_id": "call_0", "content": ""}
        missing = growth - len(_compact([_STEP, result]))
        messages += [_STEP, {**result, "content": _prose(dice, missing).ljust(missing, ".")}]
        bodies.append(body())
    return bodies


def agent_traffic(size: int, *, conversations: int, steps: int = 24) -> Traffic:
    """An agent at work: system prompt, five tools and a ticket, then steps that each bring one more tool result.

    Args:
        size: bytes of a request, on average over the steps.
        conversations: how many different ones.
        steps: requests of one conversation, at least 2.
    """
    dice = random.Random(size)
    bodies = [body for _ in range(conversations) for body in _conversation(dice, size, steps)]
    return Traffic(bodies=tuple(bodies), turns=steps, answer=plain_answer(_STEP, "tool_calls"), mark=1)


def _question(dice: random.Random, size: int, *, stream: bool) -> bytes:
    messages = [
        {"role": "system", "content": "You are a careful assistant."},
        {"role": "user", "content": f"{MARKER} "},
    ]
    options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {"temperature": 0.2}
    request: dict[str, Any] = {"model": "mock", **options, "max_tokens": 256, "messages": messages}
    missing = size - len(_compact(request))
    messages[1]["content"] += _prose(dice, missing).ljust(missing, "?")
    return _compact(request)


def question_traffic(size: int, *, conversations: int) -> Traffic:
    """Single questions of exactly ``size`` bytes, each a conversation of its own, answered in one piece."""
    dice = random.Random(size)
    bodies = tuple(_question(dice, size, stream=False) for _ in range(conversations))
    return Traffic(
        bodies=bodies, turns=1, answer=plain_answer({"role": "assistant", "content": ANSWER}, "stop"), mark=1
    )


def stream_traffic(size: int, *, conversations: int, tokens: int) -> Traffic:
    """Single questions of exactly ``size`` bytes, each answered by a stream of ``tokens`` tokens."""
    dice = random.Random(size)
    events = stream_events(tokens)
    bodies = tuple(_question(dice, size, stream=True) for _ in range(conversations))
    return Traffic(bodies=bodies, turns=1, answer=event_stream(events), mark=len(event_stream(events[:2])))
