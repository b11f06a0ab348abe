"""TraceLab's rounds: a line for each call of a coding agent, made alike out of several programs' sessions."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct, field

from headway.core.span import ModelCall, ToolCallRef, ToolUse
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.session import separated
from headway.trace.sources.session.dialogue import Dialogue
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_Count = Annotated[int, Meta(ge=0, le=2**53)]
_INPUTS: Final = frozenset({"user_message", "tool_result"})
_SELLERS: Final = {"claude": "anthropic", "codex": "openai"}
"""Who sells the models that an agent asks, which the record calls the provider."""
_TTFT: Final = "When an answer's first token came is not recorded, so TTFT is unknown."
_APPROVAL: Final = (
    "If a person was asked to approve a tool, that wait is in the tool's time, unless the tool timed itself."
)


class _Event(Struct):
    event_type: str
    timestamp: datetime

    @property
    def at(self) -> float:
        """Epoch seconds."""
        when = self.timestamp
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


class _Tool(Struct):
    tool_name: str = "unknown"
    tool_call_id: str | None = None
    emitted_at: datetime | None = None
    result_at: datetime | None = None
    tool_internal_latency_ms: Annotated[float, Meta(ge=0, le=1e12)] | None = None
    is_error: bool | None = None
    input: Raw = Raw()


class _Round(Struct):
    session_id: str
    round_index: int
    model: str | None = None
    provider: str | None = None
    input_tokens_total: _Count | None = None
    prefix_tokens: _Count | None = None
    claude_cache_creation_input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    reasoning_output_tokens: _Count | None = None
    first_input_event_type: str | None = None
    timing_events: list[_Event] = field(default_factory=list[_Event])
    tools: list[_Tool] = field(default_factory=list[_Tool])


_ROUND: Final = msgspec.json.Decoder(_Round)


class TraceLab:
    """Reads rounds, raw or sanitised, on lines or under rules."""

    name = "tracelab"
    title = "TraceLab rounds"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By a round's place in its session and its events."""
        return any(
            {"round_index", "session_id"} <= found.keys() and isinstance(found.get("timing_events"), list)
            for found in separated.objects(sample)
        )

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each message of a user's; a round that several files hold counts once."""
        sessions: dict[str, dict[int, _Round]] = {}
        for document in documents:
            for record in separated.records(document, skips):
                found = decode(_ROUND, record, skips, "a line that is not JSON, or not a round")
                if found is None:
                    continue
                rounds = sessions.setdefault(found.session_id, {})
                if found.round_index in rounds:
                    skips.add("a round that another one repeats: counted once", record.where)
                rounds.setdefault(found.round_index, found)
        for session, rounds in sessions.items():
            dialogue = Dialogue(self.name, session, "agent")
            for _, found in sorted(rounds.items()):
                _tell(dialogue, found)
            yield from dialogue.pieces()


def _tell(dialogue: Dialogue, found: _Round) -> None:
    heard = [event.at for event in found.timing_events if event.event_type in _INPUTS]
    said = [event.at for event in found.timing_events if event.event_type not in _INPUTS]
    asked = max(heard, default=None)
    if found.first_input_event_type == "user_message" or not dialogue.turns:
        dialogue.opens(asked, str(found.round_index))
    usage = Usage(
        input_tokens=found.input_tokens_total,
        output_tokens=found.output_tokens,
        cache_read=found.prefix_tokens,
        cache_write=found.claude_cache_creation_input_tokens,
        reasoning=found.reasoning_output_tokens,
    )
    calls = tuple([ToolCallRef(tool.tool_call_id or "", tool.tool_name) for tool in found.tools])
    provider = _SELLERS.get(found.provider or "", found.provider)
    work = ModelCall(model=found.model or "unknown", provider=provider, usage=usage, tool_calls=calls)
    call = dialogue.call(work, None, max(said, default=None), asked)
    remarks = dialogue.turn.draft.remarks
    remarks.append(_TTFT)
    for tool in found.tools:
        start, end, inside = _epoch(tool.emitted_at), _epoch(tool.result_at), tool.tool_internal_latency_ms
        use = ToolUse(
            name=tool.tool_name,
            call_id=tool.tool_call_id,
            issued_by=call.id,
            inferred=inside is None or end is None,
            failed=tool.is_error,
            arguments=arguments_digest(bytes(tool.input).decode()) if bytes(tool.input) else None,
        )
        if inside is not None and end is not None:
            start = max(end - inside / 1000, end if start is None else start)
        dialogue.tool(use, start, end, None, "tool_error" if tool.is_error else None)
        remarks.append(_APPROVAL)


def _epoch(when: datetime | None) -> float | None:
    if when is None:
        return None
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
