"""Gemini CLI sessions: one JSON object with all messages, or since version 0.40 a line for each."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct

from headway.core.span import ModelCall, ToolCallRef, ToolUse
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest
from headway.trace.sources.document import Document, Record, Sample
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.session.dialogue import Dialogue, spoken
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_Count = Annotated[int, Meta(ge=0, le=2**53)]
_NEVER: Final = (msgspec.MsgspecError, RecursionError)
_SHAPELESS: Final = "a message that has not the shape of one"
_SUMMED: Final = {"tool": "input", "thoughts": "output"}
_ANSWERS: Final = frozenset({"gemini", "model"})
_CANCELLED: Final = "Request cancelled"
_EXIT: Final = re.compile(r"Exit Code: (-?\d{1,9})")
"""What the shell's result says of its end, although its status is a success as soon as it could be run."""
_TTFT: Final = (
    "When an answer began is not recorded, so TTFT is unknown; a call runs from what was asked to its message."
)
_THOUGHTS: Final = "Thoughts were added to the output tokens, which this source reports without them."
_APPROVAL: Final = (
    "If a person was asked to approve a tool, that wait is in the tool's time: the record does not tell them apart."
)
_ENDLESS: Final = "When some tools ended is not recorded: their time is in that of the call after them."


class _Tokens(Struct):
    input: _Count | None = None
    output: _Count | None = None
    cached: _Count | None = None
    thoughts: _Count | None = None
    tool: _Count | None = None

    def usage(self) -> Usage:
        """Google counts thoughts beside the output, and what tools of its own read beside the prompt."""
        return Usage(
            input_tokens=None if self.input is None else self.input + (self.tool or 0),
            output_tokens=None if self.output is None else self.output + (self.thoughts or 0),
            cache_read=self.cached,
            reasoning=self.thoughts,
        )


class _Part(Struct):
    text: str | None = None


class _Response(Struct):
    output: str | None = None
    error: str | None = None


class _FunctionResponse(Struct):
    response: Raw = Raw()


class _Result(Struct, rename="camel"):
    function_response: _FunctionResponse | None = None


class _Tool(Struct):
    id: str | None = None
    name: str = "unknown"
    args: Raw = Raw()
    status: str | None = None
    timestamp: datetime | None = None
    result: Raw = Raw()


class _Message(Struct, rename="camel"):
    id: str | None = None
    type: str | None = None
    timestamp: datetime | None = None
    content: str | list[_Part] | None = None
    parts: list[_Part] | None = None
    model: str | None = None
    tokens: _Tokens | None = None
    tool_calls: list[_Tool] | None = None


class _Head(Struct, rename="camel"):
    session_id: str | None = None
    messages: list[Raw] | None = None
    id: str | None = None


_HEAD: Final = msgspec.json.Decoder(_Head)
_MESSAGE: Final = msgspec.json.Decoder(_Message)
_RESULTS: Final = msgspec.json.Decoder(list[_Result])
_RESPONSE: Final = msgspec.json.Decoder(_Response)


class GeminiCli:
    """Reads the chats that the program keeps; a message that was written anew replaces the one before."""

    name = "gemini-cli"
    title = "Gemini CLI session"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By what the head of a session holds, in either form."""
        head = sample.first()
        named = "sessionId" in head and "projectHash" in head
        return named and (isinstance(head.get("messages"), list) or "startTime" in head)

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each message of the user's that was answered."""
        for document in documents:
            session, messages = _session(document, skips)
            dialogue = Dialogue(self.name, session, "gemini-cli")
            for message in messages:
                _tell(dialogue, message)
            for _ in range(dialogue.unanswered):
                skips.add("a request that was never answered", document.name)
            yield from dialogue.pieces()


def _session(document: Document, skips: Skips) -> tuple[str, list[_Message]]:
    """What a document is called and its messages, each as it was last."""
    session, messages = document.name, dict[str, _Message]()
    for record in document.records(skips):
        head = decode(_HEAD, record, skips, "a line that is not JSON, or not part of a session")
        if head is None:
            continue
        session = head.session_id or session
        if head.messages is None and head.id is None:
            continue  # a head, or a change to one
        alone = head.messages is None
        for number, row in enumerate([record.data] if head.messages is None else head.messages, 1):
            where = record.where if alone else f"{record.where}, message {number}"
            message = decode(_MESSAGE, Record(bytes(row), where), skips, _SHAPELESS, spoils=_SUMMED)
            if message is not None:
                messages[message.id or f"#{len(messages)}"] = message
    return session, list(messages.values())


def _tell(dialogue: Dialogue, message: _Message) -> None:
    at = _epoch(message.timestamp)
    text = _text(message.content) or _text(message.parts)
    if message.type == "user":
        dialogue.user(text, at, message.id)
    elif message.type in _ANSWERS:
        _answer(dialogue, message, text, at)
    elif message.type == "error" and dialogue.turns:
        dialogue.turn.draft.error = "error"
    elif message.type == "info" and text.startswith(_CANCELLED) and dialogue.turns:
        dialogue.turn.draft.error = "interrupted"


def _answer(dialogue: Dialogue, message: _Message, text: str, at: float | None) -> None:
    asked = message.tool_calls or []
    tokens = message.tokens
    work = ModelCall(
        model=message.model or "unknown",
        usage=Usage() if tokens is None else tokens.usage(),
        tool_calls=tuple([ToolCallRef(tool.id or "", tool.name) for tool in asked]),
    )
    call = dialogue.call(work, spoken(text, [(tool.name, bytes(tool.args).decode()) for tool in asked]), at)
    remarks = dialogue.turn.draft.remarks
    remarks.append(_TTFT)
    if tokens is not None and tokens.thoughts:
        remarks.append(_THOUGHTS)
    for tool in asked:
        end = _epoch(tool.timestamp)
        gave = _result(tool.result)
        exited = None if gave is None else _EXIT.search(gave)
        failed = exited[1] != "0" if exited is not None else {"success": False, "error": True}.get(tool.status or "")
        use = ToolUse(
            name=tool.name,
            call_id=tool.id,
            issued_by=call.id,
            inferred=True,
            failed=failed,
            arguments=arguments_digest(bytes(tool.args).decode()) if bytes(tool.args) else None,
        )
        error = "tool_error" if failed else "cancelled" if tool.status == "cancelled" else None
        dialogue.tool(use, at, end, gave, error)
        remarks.append(_ENDLESS if end is None else _APPROVAL)


def _epoch(when: datetime | None) -> float | None:
    if when is None:
        return None
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


def _text(content: str | list[_Part] | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join([part.text for part in content or () if part.text is not None])


def _result(raw: Raw) -> str | None:
    """The text that a tool gave back; nothing where there is no result yet."""
    if not bytes(raw) or bytes(raw) == b"null":
        return None
    try:
        responses = [result.function_response for result in _RESULTS.decode(raw)]
    except _NEVER:
        return bytes(raw).decode()
    return "\n".join([_response(response.response) for response in responses if response is not None])


def _response(raw: Raw) -> str:
    try:
        response = _RESPONSE.decode(raw)
    except _NEVER:
        return bytes(raw).decode()
    said = response.output if response.output is not None else response.error
    return said if said is not None else bytes(raw).decode()
