"""Kimi CLI sessions: the wire log, which times requests, first tokens, streams, approvals and tools themselves."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct, field

from headway.core.span import ModelCall, ToolCallRef, ToolUse
from headway.core.task import SpanId
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.session.dialogue import Dialogue, spoken
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Time = Annotated[float, Meta(ge=0, le=1e14)]
_NEVER: Final = (msgspec.MsgspecError, RecursionError)
_NO_LINE: Final = "a line that is not JSON, or not of a wire log"
_SUMMED: Final = {"inputCacheRead": "inputOther", "inputCacheCreation": "inputOther"}
_AGENT: Final = "Agent"
_KINDS: Final = frozenset({"context.append_loop_event", "llm.request", "turn.prompt", "usage.record"})
_CACHE: Final = "Cache reads and writes were added to the input tokens, which this source reports without them."
_MISSING: Final = "What a sub-agent did is kept in another file, so its calls and tokens are missing here."
_ENDLESS: Final = "Some requests have no end in the record: they failed, were stopped, or the program was."


class _Text(Struct):
    type: str | None = None
    text: str | None = None


class _Origin(Struct):
    kind: str | None = None


class _Message(Struct):
    role: str | None = None
    content: str | list[_Text] | None = None
    origin: _Origin | None = None


class _Counts(Struct, rename="camel"):
    """The input without what was read from or written to the cache."""

    input_other: _Count | None = None
    output: _Count | None = None
    input_cache_read: _Count | None = None
    input_cache_creation: _Count | None = None

    def usage(self) -> Usage:
        read, written, other = self.input_cache_read, self.input_cache_creation, self.input_other
        total = None if other is None else other + (read or 0) + (written or 0)
        return Usage(input_tokens=total, output_tokens=self.output, cache_read=read, cache_write=written)


class _Event(Struct, rename="camel"):
    type: str | None = None
    part: _Text | None = None
    usage: _Counts | None = None
    finish_reason: str | None = None
    first_token: _Time | None = field(default=None, name="llmFirstTokenLatencyMs")
    stream: _Time | None = field(default=None, name="llmStreamDurationMs")
    tool_call_id: str | None = None
    name: str | None = None
    args: Raw = Raw()
    result: Raw = Raw()


class _Line(Struct, rename="camel"):
    type: str | None = None
    time: _Time | None = None
    input: list[_Text] = field(default_factory=list[_Text])
    message: _Message | None = None
    event: _Event | None = None
    kind: str | None = None
    model: str | None = None
    provider: str | None = None
    usage: _Counts | None = None
    source: str | None = None
    summary: str | None = None


class _Result(Struct, rename="camel"):
    output: str | None = None
    is_error: bool | None = None


class _Call(Struct):
    """A request whose answer is coming, and what its tools do then."""

    start: float
    model: str
    provider: str | None
    said: list[str] = field(default_factory=list[str])
    tools: list[tuple[_Event, float]] = field(default_factory=list[tuple[_Event, float]])
    results: dict[str, tuple[Raw, float]] = field(default_factory=dict[str, tuple[Raw, float]])
    approved: list[float] = field(default_factory=list[float])
    """When a person had allowed, or forbidden, a tool."""


_LINE: Final = msgspec.json.Decoder(_Line)
_RESULT: Final = msgspec.json.Decoder(_Result)


class Kimi:
    """Reads wire logs; one task for each prompt, and one for each compaction that the user asked for."""

    name = "kimi"
    title = "Kimi CLI session"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By the version of the protocol at the head, and by what the lines after it are called."""
        kinds = {str(found.get("type")) for found in sample.objects()}
        head = sample.first()
        return (head.get("type") == "metadata" and "protocol_version" in head) or bool(
            kinds & _KINDS and "time" in head
        )

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each prompt that was answered."""
        for document in documents:
            log = _Log(document.name)
            for record in document.records(skips):
                line = decode(_LINE, record, skips, _NO_LINE, spoils=_SUMMED)
                if line is not None:
                    log.feed(line)
            unanswered, pieces = log.finish()
            for _ in range(unanswered):
                skips.add("a request that was never answered", document.name)
            yield from pieces


class _Log:
    """A session's lines, in order."""

    def __init__(self, name: str) -> None:
        self._dialogue = Dialogue("kimi", name, "kimi")
        self._call: _Call | None = None
        self._latest: float | None = None

    def feed(self, line: _Line) -> None:
        """Take the next line."""
        at = self._latest if line.time is None else line.time / 1000  # no earlier than the line before
        self._latest = at
        kind, call = line.type, self._call
        if kind == "turn.prompt":
            self._close()
            self._dialogue.user(_text(line.input), at)
        elif kind == "context.append_message" and line.message is not None:
            if line.message.origin is None or line.message.origin.kind != "user":  # the prompt itself was heard
                self._dialogue.hear(line.message.role or "user", _text(line.message.content))
        elif kind == "llm.request" and at is not None:
            self._close()
            self._call = _Call(at, line.model or "unknown", line.provider)
        elif kind == "full_compaction.begin" and line.source == "manual":
            self._close()
            self._dialogue.user("/compact", at)
        elif kind == "context.apply_compaction":
            self._dialogue.forget()
            self._dialogue.hear("user", line.summary or "", at)
        elif call is not None and at is not None:
            self._hear(call, line, at)

    def finish(self) -> tuple[int, Iterator[Piece]]:
        """How many prompts were never answered; the tasks."""
        self._close()
        return self._dialogue.unanswered, self._dialogue.pieces("spans")

    def _hear(self, call: _Call, line: _Line, at: float) -> None:
        """What happens while a call, or the tools that it asked for, are at work."""
        event = line.event
        if line.type == "permission.record_approval_result":
            call.approved.append(at)
        elif line.type == "usage.record" and line.usage is not None:  # of a compaction, which has no other end
            self._close(_Event(usage=line.usage), at)
        elif event is None:
            return
        elif event.type == "content.part" and event.part is not None and event.part.text is not None:
            call.said.append(event.part.text)
        elif event.type == "tool.call":
            call.tools.append((event, at))
        elif event.type == "tool.result":
            call.results[event.tool_call_id or ""] = (event.result, at)
        elif event.type == "step.end":
            self._close(event, at)

    def _close(self, event: _Event | None = None, at: float | None = None) -> None:
        """The call and its tools have ended, or never will."""
        call, self._call = self._call, None
        if call is None:
            return
        first = None if event is None or event.first_token is None else call.start + event.first_token / 1000
        last = None if first is None or event is None or event.stream is None else first + event.stream / 1000
        end = last if last is not None else at
        counts = None if event is None else event.usage
        work = ModelCall(
            model=call.model,
            provider=call.provider,
            stream=None if first is None else True,
            first_token=first,
            last_token=last,
            usage=Usage() if counts is None else counts.usage(),
            finish_reason=None if event is None else event.finish_reason,
            tool_calls=tuple([ToolCallRef(tool.tool_call_id or "", tool.name or "unknown") for tool, _ in call.tools]),
        )
        asked = [(tool.name or "unknown", bytes(tool.args).decode()) for tool, _ in call.tools]
        said = spoken("\n".join(call.said), asked) or None
        entry = self._dialogue.call(work, said, call.start if end is None else end, call.start)
        remarks = self._dialogue.turn.draft.remarks
        if end is None:
            entry.end = None
            remarks.append(_ENDLESS)
        if counts is not None:
            remarks.append(_CACHE)
        self._tools(call, entry.id, call.start if end is None else end)

    def _tools(self, call: _Call, issuer: SpanId, answered: float) -> None:
        """The tools that an answer asked for, and the waits for somebody who allows them."""
        busy = answered
        for approved in call.approved:
            free = max([busy, *(end for _, end in call.results.values() if end < approved)])
            self._dialogue.person(free, approved)
            busy = approved
        for tool, begun in call.tools:
            raw, ended = call.results.get(tool.tool_call_id or "", (Raw(), None))
            text, failed = _result(raw)
            work = ToolUse(
                name=tool.name or "unknown",
                call_id=tool.tool_call_id,
                issued_by=issuer,
                failed=failed if ended is not None else None,
                arguments=arguments_digest(bytes(tool.args).decode()) if bytes(tool.args) else None,
            )
            self._dialogue.tool(
                work, begun, ended, text if ended is not None else None, "tool_error" if failed else None
            )
            if tool.name == _AGENT:
                self._dialogue.turn.draft.remarks.append(_MISSING)


def _text(content: str | list[_Text] | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join([block.text for block in content or () if block.text is not None])


def _result(raw: Raw) -> tuple[str, bool]:
    """What a tool gave back, and whether it says that it failed."""
    try:
        result = _RESULT.decode(raw)
    except _NEVER:
        return bytes(raw).decode(), False
    return (bytes(raw).decode() if result.output is None else result.output), result.is_error is True
