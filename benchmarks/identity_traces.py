"""Recorded agents as sessions of plain requests, the headers gone: the input of `identity.py`.

What the recordings do not hold is made up by rules that see one call at a time and no label:

- mini-swe-agent: a call's input is its user messages joined by blank lines, the assistant's turns missing. It is cut
  before each observation (``<returncode>``) and each scolding ("Please always provide EXACTLY ONE action"). So the
  client looks like one that drops all answers: harder than the truth, as the agent's own words would tell runs apart.
- MagenticOne: a call's input is ``role: text`` blocks joined by blank lines; cut at ``system: ``, ``user: ``,
  ``assistant: `` at the start of a block. An answer that quotes such a line would be cut in two: neutral for prefixes.
- tau-bench (flat): agent and user simulator both call; only user messages are there, so each blank-line block is one
  user message. Tool calls and results are lost: a call may repeat its predecessor byte for byte. Harder than the truth.
- tau-bench (trajectories): nothing is lost but time. Each assistant turn is one call with the messages before it.
  Times are made up: model 0.5 to 2 s, tools 0.2 to 1 s, person 5 to 30 s, by seeded dice.

In the flat recordings a timestamp is taken as the call's start; its end is made up as 0.2 s and 400 characters of
answer a second, at most 80 % of the time to the session's next call.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from headway.policy.messages import IssuedCall, ToolCall

OVERLAP_SECONDS = 30.0
"""All sessions of a set start within this window."""

_OBSERVED = re.compile(r"\n\n(?=<returncode>|Please always provide EXACTLY ONE action)")
_ROLE = re.compile(r"(?:\A|\n\n)(system|user|assistant): ")


class Recorded(Struct, frozen=True):
    """One call of a recorded session; times in seconds from the session's start."""

    start: float
    end: float
    messages: bytes
    content: str
    tool_calls: tuple[IssuedCall, ...] = ()


Session = tuple[Recorded, ...]
Flat = dict[str, str]


class Replayed(Struct, frozen=True):
    """One call of many interleaved sessions; ``truth`` numbers its session."""

    truth: int
    call: Recorded
    shift: float


def mini_swe(data: Path) -> list[Session]:
    """mini-swe-agent's sessions."""

    def rebuild(text: str) -> list[Flat]:
        return [{"role": "user", "content": part} for part in _OBSERVED.split(text)]

    return _flat(data / "lmcache-agent-trace" / "miniswe", rebuild)


def magentic(data: Path) -> list[Session]:
    """MagenticOne's sessions."""

    def rebuild(text: str) -> list[Flat]:
        _, *parts = _ROLE.split(text)
        if not parts:
            return [{"role": "user", "content": text}]
        return [{"role": role, "content": content} for role, content in zip(parts[::2], parts[1::2], strict=True)]

    return _flat(data / "lmcache-agent-trace" / "magagent", rebuild)


def flat_tau(data: Path) -> list[Session]:
    """tau-bench's sessions as flat text, the user simulator's calls among them."""

    def rebuild(text: str) -> list[Flat]:
        return [{"role": "user", "content": part} for part in text.split("\n\n")]

    return _flat(data / "lmcache-agent-trace" / "taubench", rebuild)


def tau(data: Path) -> list[Session]:
    """tau-bench's trajectories, four trials of each task."""
    dice = random.Random(7)
    runs = msgspec.json.decode((data / "tau-bench" / "gpt-4o-airline.json").read_bytes(), type=list[_Run])
    return [tuple(_trajectory(run.traj, dice)) for run in runs]


def interleave(sessions: list[Session], seed: int) -> list[Replayed]:
    """All calls by time, each session shifted to start at random within `OVERLAP_SECONDS`."""
    dice = random.Random(seed)
    calls: list[Replayed] = []
    for number, session in enumerate(sessions):
        shift = dice.uniform(0.0, OVERLAP_SECONDS)
        calls.extend(Replayed(number, call, shift) for call in session)
    return sorted(calls, key=lambda replayed: replayed.shift + replayed.call.start)


def _flat(folder: Path, rebuild: Callable[[str], list[Flat]]) -> list[Session]:
    sessions: list[Session] = []
    for path in sorted(folder.glob("*.jsonl")):
        rows = sorted((json.loads(line) for line in path.read_text().splitlines()), key=lambda row: row["timestamp"])
        times = [(row["timestamp"] - rows[0]["timestamp"]) / 1e6 for row in rows]
        calls: list[Recorded] = []
        for row, start, following in zip(rows, times, [*times[1:], float("inf")], strict=False):
            took = min(0.2 + len(row["output"]) / 400, 0.8 * (following - start))
            calls.append(Recorded(start, start + took, msgspec.json.encode(rebuild(row["input"])), row["output"]))
        if calls:
            sessions.append(tuple(calls))
    return sessions


class _Run(Struct):
    traj: list[msgspec.Raw]


class _Turn(Struct):
    """One message of a trajectory, as far as it is read; the raw object is what is sent."""

    role: str
    content: str | None = None
    tool_calls: list[ToolCall] = []


def _trajectory(raw: list[msgspec.Raw], dice: random.Random) -> Iterator[Recorded]:
    now = 0.0
    for position, message in enumerate(raw):
        turn = msgspec.json.decode(message, type=_Turn)
        match turn.role:
            case "assistant":
                took = dice.uniform(0.5, 2.0)
                issued = tuple(IssuedCall(c.id, c.function.name, str(c.function.arguments)) for c in turn.tool_calls)
                yield Recorded(now, now + took, msgspec.json.encode(raw[:position]), turn.content or "", issued)
                now += took
            case "tool":
                now += dice.uniform(0.2, 1.0)
            case _:
                now += dice.uniform(5.0, 30.0) if position > 1 else 0.0
