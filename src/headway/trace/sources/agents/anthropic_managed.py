"""Event streams of Anthropic's managed agents, bare or as calls of the client were written down with them."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, cast

import msgspec
from msgspec import Meta, Raw, Struct, structs

from headway.core.span import ModelCall, ToolCallRef, ToolUse
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest
from headway.trace.sources.document import Document, Record, Sample
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.session.dialogue import Dialogue, spoken
from headway.trace.sources.session.draft import Entry
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_Count = Annotated[int, Meta(ge=0, le=2**53)]
_NO_EVENT: Final = "a line that is not JSON, or not an event of a session"
_SUMMED: Final = {"cache_read_input_tokens": "input_tokens", "cache_creation_input_tokens": "input_tokens"}
_STREAM: Final = "client.beta.sessions.events.stream"
_CREATE: Final = "client.beta.sessions.create"
_USES: Final = frozenset({"agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"})
_RESULTS: Final = frozenset({"agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result"})
_CACHE: Final = "Cache reads and writes were added to the input tokens, which this source reports without them."
_TTFT: Final = "When an answer's first token came is not recorded, so TTFT is unknown."
_ENDLESS: Final = "When some tools ended is not recorded: their time is between the calls."


class _Document(Struct):
    data: str | None = None


class _Block(Struct):
    text: str | None = None
    source: _Document | None = None


class _Counts(Struct):
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    cache_creation_input_tokens: _Count | None = None
    cache_read_input_tokens: _Count | None = None

    def usage(self) -> Usage:
        read, written, fresh = self.cache_read_input_tokens, self.cache_creation_input_tokens, self.input_tokens
        total = None if fresh is None else fresh + (read or 0) + (written or 0)
        return Usage(input_tokens=total, output_tokens=self.output_tokens, cache_read=read, cache_write=written)


class _Event(Struct):
    type: str
    processed_at: datetime | None = None
    id: str | None = None
    name: str | None = None
    content: list[_Block] | None = None
    input: Raw = Raw()
    is_error: bool | None = None
    model_usage: _Counts | None = None
    result: str | None = None
    tool_use_id: str | None = None
    mcp_tool_use_id: str | None = None
    custom_tool_use_id: str | None = None


class _Model(Struct):
    id: str | None = None


class _Agent(Struct):
    name: str | None = None
    model: _Model | None = None


class _Created(Struct):
    id: str | None = None
    agent: _Agent | None = None


_CALL: Final = msgspec.json.Decoder(tuple[str, Raw])
_EVENT: Final = msgspec.json.Decoder(_Event)
_CREATED: Final = msgspec.json.Decoder(_Created)


class AnthropicManaged:
    """Reads event streams; one task for each message of the user's."""

    name = "anthropic-managed"
    title = "Anthropic managed agent's events"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By the names of calls of the client, or of events of a session with the time they were processed."""
        for value in sample.values:
            row = cast("list[object]", value) if isinstance(value, list) else [None, value]
            named = len(row) == 2 and isinstance(row[1], dict)  # noqa: PLR2004 - a call is a name and what it got
            if named and str(row[0]) in {_STREAM, _CREATE}:
                return True
            event = cast("dict[str, object]", row[1]) if named and row[0] is None else {}
            if "processed_at" in event and str(event.get("type")).startswith(("session.", "user.", "agent.", "span.")):
                return True
        return False

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each message that was answered."""
        for document in documents:
            session = _Session(document.name)
            for record in document.records(skips):
                session.feed(record, skips)
            yield from session.pieces()


class _Session:
    """Events in order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._dialogue = Dialogue("anthropic-managed", name, "agent")
        self._model = "unknown"
        self._started: float | None = None
        self._said: list[str] = []
        self._asked: list[tuple[_Event, float | None]] = []
        self._tools: dict[str, Entry] = {}

    def feed(self, record: Record, skips: Skips) -> None:
        """Take the next line."""
        name = _STREAM
        if record.data.lstrip()[:1] == b"[":
            call = decode(_CALL, record, skips, _NO_EVENT)
            if call is None:
                return
            name, record = call[0], Record(bytes(call[1]), record.where)
        if name == _STREAM:
            event = decode(_EVENT, record, skips, _NO_EVENT, spoils=_SUMMED)
            if event is not None:
                self._event(event)
        elif name == _CREATE:
            created = decode(_CREATED, record, skips, _NO_EVENT) or _Created()
            agent = created.agent or _Agent()
            self._dialogue = Dialogue("anthropic-managed", created.id or self._name, agent.name or "agent")
            self._model = (agent.model and agent.model.id) or "unknown"

    def pieces(self) -> Iterator[Piece]:
        """The tasks."""
        if self._started is not None:
            self._answer(None, None)
        for entry in self._tools.values():
            if entry.end is None:
                self._dialogue.turn.draft.remarks.append(_ENDLESS)
        yield from self._dialogue.pieces("spans")

    def _event(self, event: _Event) -> None:
        kind, at = event.type, _epoch(event.processed_at)
        if kind == "user.message":
            self._dialogue.user(_text(event), at, event.id)
        elif kind == "span.model_request_start":
            self._started, self._said, self._asked = at, [], []
        elif kind == "agent.message":
            self._said.append(_text(event))
        elif kind in _USES:
            self._asked.append((event, at))
        elif kind == "span.model_request_end":
            self._answer(event, at)
        elif kind == "user.tool_confirmation":
            self._allow(event, at)
        elif kind in _RESULTS:
            self._result(event, at)

    def _answer(self, event: _Event | None, at: float | None) -> None:
        counts = None if event is None else event.model_usage
        work = ModelCall(
            model=self._model,
            usage=Usage() if counts is None else counts.usage(),
            tool_calls=tuple([ToolCallRef(use.id or "", use.name or "unknown") for use, _ in self._asked]),
        )
        asked = [(use.name or "unknown", bytes(use.input).decode()) for use, _ in self._asked]
        error = "error" if event is not None and event.is_error else None
        said = spoken("\n".join(self._said), asked) or None
        end = self._started if at is None else at
        call = self._dialogue.call(work, said, end, self._started, error)
        call.end = at
        self._dialogue.turn.draft.remarks += [_TTFT] if counts is None else [_TTFT, _CACHE]
        for use, when in self._asked:
            tool = ToolUse(
                name=use.name or "unknown",
                call_id=use.id,
                issued_by=call.id,
                inferred=True,
                arguments=arguments_digest(bytes(use.input).decode()) if bytes(use.input) else None,
            )
            self._tools[use.id or ""] = self._dialogue.tool(tool, when, None, None)
        self._started = None

    def _allow(self, event: _Event, at: float | None) -> None:
        """A person allowed a tool, or did not: until then only they were waited for."""
        entry = self._tools.get(event.tool_use_id or "")
        if entry is None or at is None:
            return
        self._dialogue.person(entry.start, at)
        if event.result == "deny":
            entry.error = "rejected"
        entry.start = at

    def _result(self, event: _Event, at: float | None) -> None:
        entry = self._tools.get(event.tool_use_id or event.mcp_tool_use_id or event.custom_tool_use_id or "")
        result = self._dialogue.hear("tool", _text(event), at)
        if entry is not None and isinstance(entry.work, ToolUse):
            entry.work = structs.replace(entry.work, failed=event.is_error, result=result)
            entry.end = at
            entry.error = entry.error or ("tool_error" if event.is_error else None)


def _epoch(when: datetime | None) -> float | None:
    if when is None:
        return None
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


def _text(event: _Event) -> str:
    texts = [block.text or (block.source and block.source.data) for block in event.content or ()]
    return "\n".join([text for text in texts if text])
