"""Sessions of Claude Code, written row by row as the program writes them, and the real ones."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from importing import document, read, sample
from sessions import agents, lines

from headway.core.span import Span
from headway.trace.sources.claude.session import ClaudeCode
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

SESSION = "5a0f2c1e-0000-4000-8000-000000000001"


def row(kind: str, second: float, said: object = None, **more: object) -> dict[str, object]:
    """A row as the program writes it; seconds count from 10:00:00."""
    minute, rest = divmod(second, 60)
    made: dict[str, object] = {
        "type": kind,
        "uuid": f"{SESSION[:8]}-{kind}-{second}-{msgspec.json.encode(said).decode()[:60]}",
        "sessionId": SESSION,
        "timestamp": f"2026-03-01T10:{minute:02.0f}:{rest:06.3f}Z",
    }
    if said is not None:
        made["message"] = {"role": kind, "content": said}
    return {**made, **more}


def says(second: float, message: str, *blocks: object, **more: object) -> dict[str, object]:
    """A row of an answer: usage and model are the API's."""
    made = row("assistant", second, list(blocks), requestId=f"req_{message}")
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 200,
        "output_tokens": 40,
    }
    made["message"] = {
        "role": "assistant",
        "id": message,
        "model": "claude-test-1",
        "content": list(blocks),
        "stop_reason": None,
        "usage": {**usage, **more},
    }
    return made


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def use(call: str, name: str = "Bash", **arguments: object) -> dict[str, object]:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def result(
    second: float, call: str, words: object = "done", *, error: bool = False, **more: object
) -> dict[str, object]:
    said = {"type": "tool_result", "tool_use_id": call, "content": words, "is_error": error}
    return row("user", second, [said], **more)


def take(*files: Sequence[object]) -> tuple[list[Piece], Skips]:
    return read(ClaudeCode(), *[document(lines(rows), f"{n}.jsonl") for n, rows in enumerate(files)])


def real(name: str) -> Path:
    return sample(f"traces/claude_code/{name}")


def imported(*names: str) -> tuple[list[Piece], Skips]:
    return read(ClaudeCode(), *[document(real(name).read_bytes(), name) for name in names])


ONE_TURN = [
    row("user", 0, "Say what is in the folder"),
    says(2, "m1", text("I look."), output_tokens=1),
    says(3, "m1", use("t1", command="ls"), output_tokens=40),
    result(5, "t1", "a.txt"),
    says(9, "m2", text("One file."), output_tokens=12),
]


def spawned(second: float, prompt: str = "Look for TODO", call: str = "s1") -> dict[str, object]:
    return says(second, f"m-{call}", use(call, "Task", subagent_type="Explore", prompt=prompt))


def agent(
    *, session: str = SESSION, name: str = "a1b2", start: float = 3, prompt: str = "Look for TODO"
) -> list[object]:
    facts = {"isSidechain": True, "agentId": name, "sessionId": session}
    return [
        row("user", start, prompt, **facts),
        {**says(start + 2, f"{name}-m", use(f"{name}-t", "Grep")), **facts},
        {**result(start + 3, f"{name}-t"), **facts},
        {**says(start + 5, f"{name}-n", text("None.")), **facts},
    ]


def parent(**more: object) -> list[dict[str, object]]:
    answered = {**result(9, "s1", "None."), **more}
    return [row("user", 0, "Search"), spawned(2), answered, says(11, "m2", text("Nothing."))]


def step(piece: Piece) -> Span:
    (found,) = agents(piece)
    return found
