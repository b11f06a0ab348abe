"""Copilot CLI sessions: a line for each event, with the times at which tools began and ended."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct, field, structs

from headway.core.span import ModelCall, ToolCallRef, ToolUse
from headway.core.task import SpanId
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.session.dialogue import Dialogue, spoken
from headway.trace.sources.session.draft import Draft, Entry
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_Count = Annotated[int, Meta(ge=0, le=2**53)]
_NEVER: Final = (msgspec.MsgspecError, RecursionError)
_INPUT: Final = "Only output tokens are recorded call by call: input and cached tokens are unknown."
_TTFT: Final = "When an answer began is not recorded, so TTFT is unknown; a call runs from its input to its message."
_STARTS: Final = frozenset({"session.start", "session.resume"})


class _Asked(Struct, rename="camel"):
    tool_call_id: str | None = None
    name: str = "unknown"
    arguments: Raw = Raw()


class _Result(Struct):
    content: str | None = None


class _Data(Struct, rename="camel"):
    session_id: str | None = None
    selected_model: str | None = None
    new_model: str | None = None
    content: str | None = None
    model: str | None = None
    output_tokens: _Count | None = None
    tool_requests: list[_Asked] = field(default_factory=list[_Asked])
    parent_tool_call_id: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    arguments: Raw = Raw()
    success: bool | None = None
    result: _Result | None = None
    agent_name: str | None = None


class _Event(Struct):
    type: str
    timestamp: datetime
    data: _Data
    id: str | None = None


_EVENT: Final = msgspec.json.Decoder(_Event)


class Copilot:
    """Reads event logs; one task for each message of the user's."""

    name = "copilot"
    title = "Copilot CLI session"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By the head of a session, or by events that name the one before."""
        return any(
            str(found.get("type")).startswith(("session.", "assistant.", "user.message", "tool.execution_"))
            and isinstance(found.get("data"), dict)
            and {"id", "timestamp", "parentId"} <= found.keys()
            for found in sample.objects()
        )

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each message that was answered."""
        for document in documents:
            session = _Session(document.name)
            for record in document.records(skips):
                try:
                    event = _EVENT.decode(record.data)
                except _NEVER:
                    skips.add("a line that is not JSON, or not an event with its time", record.where)
                    continue
                if why := session.feed(event):
                    skips.add(why, record.where)
            unanswered, pieces = session.finish()
            for _ in range(unanswered):
                skips.add("a request that was never answered", document.name)
            yield from pieces


class _Session:
    """Events in order."""

    def __init__(self, name: str) -> None:
        self._main = Dialogue("copilot", name, "copilot")
        self._agents: dict[str, Dialogue] = {}
        """By the tool call that started each."""
        self._tools: dict[str, tuple[Draft, Entry]] = {}
        self._issuers: dict[str, SpanId] = {}
        self._model = "unknown"

    def feed(self, event: _Event) -> str | None:
        """Take the next event; says why where it cannot be used."""
        data, kind, at = event.data, event.type, _epoch(event.timestamp)
        dialogue = self._dialogue(data, at)
        if kind in _STARTS:
            dialogue.session = data.session_id or dialogue.session
            self._model = data.selected_model or self._model
        elif kind == "session.model_change":
            self._model = data.new_model or self._model
        elif kind == "user.message":
            dialogue.user(data.content or "", at, event.id)
        elif kind == "assistant.message":
            self._answer(dialogue, data, at)
        elif kind == "tool.execution_start":
            self._begin(dialogue, data, at)
        elif kind == "tool.execution_complete":
            return self._end(dialogue, data, at)
        elif kind == "subagent.started" and data.tool_call_id is not None:
            self._agents.setdefault(data.tool_call_id, self._agent(data, at))
        elif kind in {"abort", "session.error"} and dialogue.turns:
            dialogue.turn.draft.error = "interrupted" if kind == "abort" else "error"
        return None

    def finish(self) -> tuple[int, Iterator[Piece]]:
        """How many messages were never answered; the tasks, with what sub-agents did in them."""
        for call_id, agent in reversed(self._agents.items()):
            found = self._tools.get(call_id)
            if found is not None:
                for turn in agent.turns:
                    found[0].adopt(turn.draft, found[1].id)
        return self._main.unanswered, self._main.pieces()

    def _dialogue(self, data: _Data, at: float) -> Dialogue:
        parent = data.parent_tool_call_id
        if parent is None:
            return self._main
        return self._agents.setdefault(parent, self._agent(data, at))

    def _agent(self, data: _Data, at: float) -> Dialogue:
        agent = Dialogue("copilot", f"{self._main.session}/{data.tool_call_id}", data.agent_name or "subagent")
        agent.asked = at
        return agent

    def _answer(self, dialogue: Dialogue, data: _Data, at: float) -> None:
        asked = [(tool.name, bytes(tool.arguments).decode()) for tool in data.tool_requests]
        self._model = data.model or self._model
        work = ModelCall(
            model=data.model or self._model,
            usage=Usage(output_tokens=data.output_tokens),
            tool_calls=tuple([ToolCallRef(tool.tool_call_id or "", tool.name) for tool in data.tool_requests]),
        )
        call = dialogue.call(work, spoken(data.content or "", asked), at)
        for tool in data.tool_requests:
            if tool.tool_call_id is not None:
                self._issuers[tool.tool_call_id] = call.id
        dialogue.turn.draft.remarks += [_TTFT, _INPUT]

    def _begin(self, dialogue: Dialogue, data: _Data, at: float) -> None:
        call_id = data.tool_call_id or ""
        work = ToolUse(
            name=data.tool_name or "unknown",
            call_id=data.tool_call_id,
            issued_by=self._issuers.get(call_id),
            arguments=arguments_digest(bytes(data.arguments).decode()) if bytes(data.arguments) else None,
        )
        self._tools[call_id] = (dialogue.turn.draft, dialogue.tool(work, at, None, None))

    def _end(self, dialogue: Dialogue, data: _Data, at: float) -> str | None:
        found = self._tools.get(data.tool_call_id or "")
        if found is None:
            return "a tool's result whose start is not in the record"
        entry = found[1]
        text = None if data.result is None else data.result.content
        result = None if text is None else dialogue.hear("tool", text, at)
        if isinstance(entry.work, ToolUse):
            failed = None if data.success is None else not data.success
            entry.work = structs.replace(entry.work, failed=failed, result=result)
            entry.error = "tool_error" if failed else None
        entry.end = dialogue.asked = at
        return None


def _epoch(when: datetime) -> float:
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
