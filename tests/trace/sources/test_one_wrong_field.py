"""One number of a record written as a text that is none: its span stays, only that is unknown, and it is counted."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, cast

import msgspec
import pytest
from importing import document, sample

from headway.core.span import ModelCall, Span
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.registry import installed, recognise
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

Path = tuple[str | int, ...]

FILES: Final = {
    "traces/anthropic_managed_agents/anthropic_managed_custom_tools.jsonl": set[str](),
    "traces/claude_code/claude-code-log_representative_messages.jsonl": set[str](),
    "traces/claude_code/cct_sample_session.json": set[str](),
    "traces/codex_rollout/agent-sessions_codex_large.jsonl": set[str](),
    "traces/codex_rollout/codex_051_usage.jsonl": set[str](),
    "traces/codex_rollout/rollout-2026-02-23T13-19-38-019c8a70-dda7-7f33-98ea-f30553347322.jsonl": set[str](),
    "traces/gemini_cli/agentsview_tool_calls_with_results.json": set[str](),
    "traces/gemini_cli/agent-sessions_gemini_jsonl_v040.jsonl": set[str](),
    "traces/handmade/dialect_otel_1.41.json": {"resourceSpans[].scopeSpans[].spans[].startTimeUnixNano"},
    "traces/handmade/dialect_openinference.json": {"resourceSpans[].scopeSpans[].spans[].startTimeUnixNano"},
    "traces/jaeger/example_trace.json": {"spans[].startTime"},
    "traces/jaeger/otlp2jaeger-out.json": {"data[].spans[].startTime"},
    "traces/langfuse/llamaindex-2025-06-05.trace.json": set[str](),
    "traces/langfuse/openai-agents-2025-09-30.trace.json": set[str](),
    "traces/langsmith/langsmith_py_wrap_openai_reasoning.json": set[str](),
    "traces/mini_swe_agent/local.traj.json": set[str](),
    "traces/openai_agents/v1_12_input_cache_write_usage.json": {"context.usage.requests"},
    "traces/openhands/basic.json": {"[].id"},
    "traces/openhands/cli_default_base_state.json": set[str](),
    "traces/openhands/events.jsonl": set[str](),
    "traces/openhands_llm_logs/litellm_proxy__anthropic__claude-sonnet-4-20250514-1757015025.972.json": set[str](),
    "traces/other_agents/agent-sessions_copilot_small.jsonl": set[str](),
    "traces/other_agents/agent-sessions_kimi_assistant_tools.jsonl": set[str](),
    "traces/other_agents/agentsview_session-5de701fc-7454-4858-a249-95cac4fd3b51.jsonl": set[str](),
    "traces/swe_agent/function_calling_simple.traj": set[str](),
    "traces/tracelab/sanitized_round_trace.jsonl": {"round_index"},
    "workloads/exgentic/tests/benchmarks/recordings/tau2/trajectory.jsonl": set[str](),
    "workloads/kv-cache-tester/raw_sample/trace_0066.json": {"requests[].t", "requests[].api_time"},
    "workloads/lmcache-agent-trace/taubench/c2fb7e25a81892b9728c45d352b2e750.jsonl": set[str](),
}
"""Small files of all formats, and the fields without which nothing can be told of what they are about: when it began,
which it is, by what others are recognised."""
_ANYTHING: Final = "payload.result."
"""What a tool gave back may be anything, so that no field of it is of a wrong type."""
_DERIVED: Final = 0.1
"""Seconds by which a time that is derived for want of a measured one may be longer."""


@pytest.mark.parametrize("name", FILES)
def test_the_span_stays_the_field_is_unknown_and_it_is_counted(name: str) -> None:
    records = _records(name)
    whole, none = _read(name, records)
    for place, path in _numbers(records).items():
        pieces, skips = _read(name, _with(records, path, "n/a"))
        told = {skip.reason for skip in skips.all()} - {skip.reason for skip in none.all()}
        if place in FILES[name]:
            assert told, place
            continue
        assert _names(pieces) == _names(whole), place
        assert told or _bare(pieces) == _bare(whole), place
        for before, after in zip(_ordered(whole), _ordered(pieces), strict=True):
            _only_less_is_known(before, after, place)


def _only_less_is_known(before: Span, after: Span, place: str) -> None:
    if isinstance(before.work, ModelCall) and isinstance(after.work, ModelCall):
        told = [(before.work.cost, after.work.cost)]
        told += [
            (getattr(before.work.usage, key), getattr(after.work.usage, key))
            for key in before.work.usage.__struct_fields__
        ]
        assert [new for old, new in told if new is not None and new != old] == [], place
    if before.end is not None and after.end is not None:
        assert after.end - after.start <= before.end - before.start + _DERIVED, place


def _read(name: str, records: list[Any]) -> tuple[list[Piece], Skips]:
    alone = not name.endswith("l") or name.endswith(".traj")
    data = json.dumps(records[0]).encode() if alone else b"\n".join(json.dumps(one).encode() for one in records)
    made = document(data, name.rpartition("/")[2])
    source = recognise(installed(), _sample(name))
    assert source is not None
    skips = Skips()
    return list(source.read([made], skips)), skips


@cache
def _sample(name: str) -> Sample:
    path = sample(name)
    return Document(path.name, path.stat().st_size, lambda: path.open("rb")).sample()


def _records(name: str) -> list[Any]:
    text = sample(name).read_text()
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return [json.loads(text)]


def _numbers(records: list[Any]) -> dict[str, Path]:
    """Where numbers stand, the first under each name."""
    found: dict[str, Path] = {}
    for number, record in enumerate(records):
        for path in _leaves(record, (number,)):
            place = "".join("[]" if isinstance(step, int) else f".{step}" for step in path[1:]).lstrip(".")
            if not place.startswith(_ANYTHING):
                found.setdefault(place, path)
    return found


def _leaves(value: object, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[object]", value)):
            yield from _leaves(inner, (*path, number))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def _with(records: list[Any], path: Path, value: object) -> list[Any]:
    changed = json.loads(json.dumps(records))
    at = changed
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return changed


def _spans(pieces: list[Piece]) -> list[Span]:
    return [span for piece in pieces for span in piece.spans]


def _ordered(pieces: list[Piece]) -> list[Span]:
    return sorted(_spans(pieces), key=lambda span: span.name)


def _names(pieces: list[Piece]) -> list[str]:
    return sorted(span.name for span in _spans(pieces))


def _bare(pieces: list[Piece]) -> object:
    """All but texts and the ids, which are made of what a record says where it has none."""
    made = msgspec.to_builtins(pieces)
    return json.loads(
        json.dumps(made), object_hook=lambda held: {k: v for k, v in held.items() if k not in _LEFT_ASIDE}
    )


_LEFT_ASIDE: Final = {
    "id",
    "task",
    "parent",
    "issued_by",
    "session",
    "prompt",
    "answer",
    "arguments",
    "result",
    "title",
}
