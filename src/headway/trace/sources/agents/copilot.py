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
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.session.dialogue import Dialogue, spoken
from headway.trace.sources.session.draft import Draft, Entry
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_Count = Annotated[int, Meta(ge=0, le=2**53)]
_INPUT: Final = "Only output tokens are recorded call by call: input and cached tokens are unknown."
_TTFT: Final = "When an answer began is not recorded, so TTFT is unknown; a call runs from its input to its message."
_ABORTED: Final = "interrupted"
_STARTS: Final = frozenset({"session.start", "session.resume"})
_CACHE: Final = (
    "Cache reads and writes were added to the input of the session's own total, which this source tells without them."
)
_SESSION: Final = "The session's own total is of {:,} tasks together: {} tokens read and {} written."
_BEFORE: Final = "Before this was asked, the session told of an error: {}."
_ERRORS: Final = 8
"""Errors outside of all tasks that are told of one by one."""


class _Asked(Struct, rename="camel"):
    tool_call_id: str | None = None
    name: str = "unknown"
    arguments: Raw = Raw()


class _Result(Struct):
    content: str | None = None


class _Detail(Struct, rename="camel"):
    token_count: _Count | None = None


class _Counts(Struct, rename="camel"):
    """Tokens of one model; the input with what the cache gave and took."""

    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    cache_read_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    reasoning_tokens: _Count | None = None

    def usage(self) -> Usage:
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cache_read=self.cache_read_tokens,
            cache_write=self.cache_write_tokens,
            reasoning=self.reasoning_tokens,
        )


class _Metrics(Struct):
    usage: _Counts | None = None


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
    error_type: str | None = None
    status_code: int | None = None
    model_metrics: dict[str, _Metrics] | None = None
    token_details: dict[str, _Detail] | None = None

    @property
    def by_model(self) -> list[Usage]:
        """What the calls of each model used."""
        return [one.usage.usage() for one in (self.model_metrics or {}).values() if one.usage is not None]

    @property
    def total(self) -> Usage | None:
        """What all calls used since the session was started or resumed; none where that is not told.

        The counts by model hold the cache's tokens in the input. Those by price, which are the only ones in some
        versions, do not.
        """
        if self.by_model:
            return _sum(self.by_model)
        if not self.token_details:
            return None
        counts = {kind: detail.token_count for kind, detail in self.token_details.items()}
        parts = [counts.get(kind, 0) for kind in ("input", "cache_read", "cache_write")]
        known = [part for part in parts if part is not None]
        return Usage(
            input_tokens=sum(known) if len(known) == len(parts) and "input" in counts else None,
            output_tokens=counts.get("output"),
            cache_read=counts.get("cache_read"),
            cache_write=counts.get("cache_write"),
        )

    @property
    def failure(self) -> str:
        """What went wrong, as a short word."""
        return self.error_type or "error"


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
                event = decode(_EVENT, record, skips, "a line that is not JSON, or not an event with its time")
                if event is not None and (why := session.feed(event)):
                    skips.add(why, record.where)
            unanswered, pieces = session.finish()
            for _ in range(unanswered):
                skips.add("a request that was never answered", document.name)
            for _ in session.errors:
                skips.add("an error that no request came after", document.name)
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
        self.errors: list[str] = []
        """What went wrong before anybody had asked anything."""
        self._totals: list[Usage | None] = []
        """What each run of the program used, as far as it told."""
        self._net = False
        """Whether any of these was told without what the cache gave and took."""

    def feed(self, event: _Event) -> str | None:
        """Take the next event; says why where it cannot be used."""
        data, kind, at = event.data, event.type, _epoch(event.timestamp)
        dialogue = self._dialogue(data, at)
        if kind in _STARTS:
            dialogue.session = data.session_id or dialogue.session
            self._model = data.selected_model or self._model
            self._totals.append(None)
        elif kind == "session.model_change":
            self._model = data.new_model or self._model
        elif kind == "user.message":
            turn = dialogue.user(data.content or "", at, event.id)
            turn.draft.remarks += [_BEFORE.format(error) for error in self.errors[:_ERRORS]]
            self.errors.clear()
        elif kind == "assistant.message":
            self._answer(dialogue, data, at)
        elif kind == "tool.execution_start":
            self._begin(dialogue, data, at)
        elif kind == "tool.execution_complete":
            return self._end(dialogue, data, at)
        elif kind == "subagent.started" and data.tool_call_id is not None:
            self._agents.setdefault(data.tool_call_id, self._agent(data, at))
        elif kind == "abort" and dialogue.turns:
            dialogue.turn.draft.error = _ABORTED
        elif kind == "session.error":
            self._fail(dialogue, data, at)
        elif kind == "session.shutdown":
            self._totals[-1:] = [data.total]
            self._net = self._net or not data.by_model
        return None

    def finish(self) -> tuple[int, Iterator[Piece]]:
        """How many messages were never answered; the tasks, with what sub-agents did in them."""
        for call_id, agent in reversed(self._agents.items()):
            found = self._tools.get(call_id)
            if found is not None:
                for turn in agent.turns:
                    found[0].adopt(turn.draft, found[1].id)
        self._tell_total()
        return self._main.unanswered, self._main.pieces()

    def _tell_total(self) -> None:
        """What all calls used together is that of the one task, where there is but one; else it is only told."""
        turns = [turn for turn in self._main.turns if turn.draft.entries]
        known = [total for total in self._totals if total is not None]
        if not turns or not known or len(known) < len(self._totals):
            return
        total = _sum(known)
        if len(turns) == 1:
            turns[0].draft.used = total
            turns[0].draft.remarks += [_CACHE] if self._net and (total.cache_read or total.cache_write) else []
            return
        read, written = [
            "an unknown number of" if n is None else f"{n:,}" for n in (total.input_tokens, total.output_tokens)
        ]
        for turn in turns:
            turn.draft.remarks.append(_SESSION.format(len(turns), read, written))

    def _fail(self, dialogue: Dialogue, data: _Data, at: float) -> None:
        """Something went wrong: a call, where an engine's answer says so; with the task, unless it goes on."""
        if not dialogue.turns:
            status = "" if data.status_code is None else f" (HTTP status {data.status_code})"
            self.errors.append(f"{data.failure}{status}")
            return
        if data.status_code is not None:
            dialogue.call(ModelCall(model=self._model), None, at, error=data.failure)
        dialogue.turn.draft.error = data.failure

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
        if dialogue.turns and dialogue.turns[-1].draft.error != _ABORTED:
            dialogue.turns[-1].draft.error = None  # whatever had gone wrong, it went on
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


def _sum(parts: Sequence[Usage]) -> Usage:
    """All together; a count is unknown where any part's is."""

    def total(counts: Sequence[int | None]) -> int | None:
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    return Usage(
        input_tokens=total([part.input_tokens for part in parts]),
        output_tokens=total([part.output_tokens for part in parts]),
        cache_read=total([part.cache_read for part in parts]),
        cache_write=total([part.cache_write for part in parts]),
        reasoning=total([part.reasoning for part in parts]),
    )
