"""Agents that replay recorded sessions against a real engine, each a closed loop: call, tool, call."""

import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct

TURNS = 6
ANSWER_TOKENS = 24
TOOL_SECONDS = 0.5
OPENING_CHARS, OBSERVATION_CHARS = 1_600, 400
"""Where the recorded texts are cut, so that a session fits a slot of 2,048 tokens."""
PATIENCE = 300.0
"""Seconds for a byte of an answer."""


class Session(Struct, frozen=True):
    """What the agent is told: its task first, then what each of its tools gave."""

    texts: tuple[str, ...]


class Played(Struct, frozen=True, kw_only=True):
    """One call. Seconds; tokens as the engine counted them."""

    ttft: float
    computed: int
    """Tokens of the prompt that were not in the engine's cache."""
    prompt: int


class Outcome(Struct, frozen=True, kw_only=True):
    """One session from its first request to its last token."""

    seconds: float
    calls: tuple[Played, ...]


class BadAnswerError(Exception):
    """A call was not answered; the message says what came instead."""


def sessions(data: Path, count: int) -> list[Session]:
    """The first ``count`` sessions of mini-swe-agent that have enough turns, by name."""
    found: list[Session] = []
    for path in sorted((data / "lmcache-agent-trace" / "miniswe").glob("*.jsonl")):
        rows = sorted(map(json.loads, path.read_text().splitlines()), key=lambda row: row["timestamp"])[:TURNS]
        inputs: list[str] = [row["input"] for row in rows]
        grows = all(later.startswith(earlier) for earlier, later in pairwise(inputs))
        if len(inputs) == TURNS and grows:
            observed = [later[len(earlier) :] for earlier, later in pairwise(inputs)]
            opening = inputs[0][:OPENING_CHARS]
            found.append(Session((opening, *(text.strip()[:OBSERVATION_CHARS] for text in observed))))
    return found[:count]


def play(port: int, agents: list[Session]) -> list[Outcome]:
    """All of them at once.

    Raises:
        BadAnswerError: a call failed.
    """
    with ThreadPoolExecutor(len(agents)) as threads:
        return list(threads.map(partial(_play, port), agents))


def _play(port: int, agent: Session) -> Outcome:
    """One session: each request repeats the one before, with the engine's answer and what the tool gave."""
    messages: list[dict[str, str]] = []
    calls: list[Played] = []
    started = ended = time.perf_counter()
    for number, text in enumerate(agent.texts):
        if number:
            time.sleep(TOOL_SECONDS)
        messages.append({"role": "user", "content": text})
        answer, played = _call(port, messages)
        messages.append({"role": "assistant", "content": answer})
        calls.append(played)
        ended = time.perf_counter()
    return Outcome(seconds=ended - started, calls=tuple(calls))


def _call(port: int, messages: list[dict[str, str]]) -> tuple[str, Played]:
    body = {
        "model": "embedded",
        "messages": messages,
        "max_tokens": ANSWER_TOKENS,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        sent = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            msg = f"{response.status}: {response.read().decode(errors='replace')[:500]}"
            raise BadAnswerError(msg)
        return _read(response, sent)
    except (OSError, http.client.HTTPException) as error:
        msg = f"a call was not answered: {type(error).__name__}: {error}"
        raise BadAnswerError(msg) from error
    finally:
        connection.close()


def _read(response: http.client.HTTPResponse, sent: float) -> tuple[str, Played]:
    first: float | None = None
    words: list[str] = []
    usage: dict[str, Any] | None = None
    for line in response:
        data = line.strip().removeprefix(b"data: ")
        if data == line.strip() or data == b"[DONE]":
            continue  # no event: the blank between two, or a comment that keeps the connection alive
        event: dict[str, Any] = json.loads(data)
        if "error" in event:
            msg = f"a stream broke off: {event['error']}"
            raise BadAnswerError(msg)
        said = "".join(choice["delta"].get("content") or "" for choice in event["choices"])
        if said and first is None:
            first = time.perf_counter()
        words.append(said)
        usage = event.get("usage") or usage
    if first is None or usage is None:
        raise BadAnswerError("an answer had no text, or the engine did not count its tokens")
    prompt = int(usage["prompt_tokens"])
    cached = int(usage["prompt_tokens_details"]["cached_tokens"])
    return "".join(words), Played(ttft=first - sent, computed=prompt - cached, prompt=prompt)
