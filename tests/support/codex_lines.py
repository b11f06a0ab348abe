"""Rollouts of Codex, written line by line as the program writes them, and the real ones."""

from collections.abc import Sequence
from pathlib import Path

from importing import document, read, sample
from sessions import at, lines

from headway.trace.sources.codex.rollout import Codex
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece


def line(kind: str, second: float, **payload: object) -> dict[str, object]:
    """A line of a rollout; seconds count from 10:00:00."""
    minute, rest = divmod(second, 60)
    return {"timestamp": f"2026-03-01T10:{minute:02.0f}:{rest:06.3f}Z", "type": kind, "payload": payload}


def event(second: float, kind: str, **more: object) -> dict[str, object]:
    return line("event_msg", second, type=kind, **more)


def item(second: float, kind: str, **more: object) -> dict[str, object]:
    return line("response_item", second, type=kind, **more)


def said(second: float, text: str, role: str = "assistant") -> dict[str, object]:
    return item(second, "message", role=role, content=[{"type": "output_text", "text": text}])


def use(second: float, call: str, name: str = "shell", arguments: str = "{}") -> dict[str, object]:
    return item(second, "function_call", name=name, arguments=arguments, call_id=call)


def result(second: float, call: str, text: object = "ok") -> dict[str, object]:
    return item(second, "function_call_output", call_id=call, output=text)


def counted(second: float, total: int, last: int) -> dict[str, object]:
    """A count of tokens: half of each input came from the cache."""

    def counts(tokens: int) -> dict[str, int]:
        return {
            "input_tokens": tokens,
            "cached_input_tokens": tokens // 2,
            "output_tokens": 10,
            "reasoning_output_tokens": 4,
        }

    info = {"total_token_usage": counts(total), "last_token_usage": counts(last)}
    return event(second, "token_count", info=info)


HEAD = [
    line("session_meta", 0, id="s-1", model_provider="openai"),
    line("turn_context", 0, model="gpt-test"),
    said(0, "<environment_context>here</environment_context>", "user"),
]
TURN = [
    event(1, "task_started", turn_id="t-1"),
    said(1, "List the files", "user"),
    event(1, "user_message", message="List the files"),
    event(2, "token_count", info=None),
    item(3, "reasoning"),
    event(4, "agent_message", message="I look."),
    said(4, "I look."),
    use(4.5, "c-1", arguments='{"command": "ls"}'),
    counted(5, 100, 100),
    result(7, "c-1", "Exit code: 0\na.txt"),
    counted(7.5, 100, 100),
    event(9, "agent_message", message="One file."),
    said(9, "One file."),
    counted(9.1, 250, 150),
    event(9.2, "task_complete", turn_id="t-1"),
]


def take(*files: Sequence[object]) -> tuple[list[Piece], Skips]:
    return read(Codex(), *[document(lines(rows), f"{number}.jsonl") for number, rows in enumerate(files)])


def real(name: str) -> Path:
    return sample(f"traces/codex_rollout/{name}")


def imported(*names: str) -> tuple[list[Piece], Skips]:
    return read(Codex(), *[document(real(name).read_bytes(), name) for name in names])


def length(piece: Piece) -> float | None:
    return at(piece.spans[0], piece)[1]
