"""A line of a Codex rollout, as far as it matters here, in today's format and in those before it."""

import re
from datetime import UTC, datetime
from typing import Annotated, Final, cast

import msgspec
from msgspec import Meta, Raw, Struct, field

from headway.core.usage import Usage
from headway.trace.sources.document import Record
from headway.trace.sources.fields.decoding import decode as decode_record
from headway.trace.sources.skips import Skips

Count = Annotated[int, Meta(ge=0, le=2**53)]
Milliseconds = Annotated[float, Meta(ge=0, le=1e14)]
_EXIT: Final = re.compile(r"(?:Process exited with code|Exit code:) (-?\d{1,9})")
_HEAD: Final = 400
"""Characters of a tool's output in which it says how it ended."""


class Counts(Struct, frozen=True):
    """Tokens of a call, or of the session so far; the input includes what came from the cache."""

    input_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    cache_write_input_tokens: Count | None = None
    output_tokens: Count | None = None
    reasoning_output_tokens: Count | None = None

    def usage(self) -> Usage:
        """In canonical words."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cache_read=self.cached_input_tokens,
            cache_write=self.cache_write_input_tokens,
            reasoning=self.reasoning_output_tokens,
        )

    def repeats(self, before: "Counts | None") -> bool:
        """Whether nothing was added to counts before it, as far as both tell."""
        if before is None:
            return False
        pairs = [(getattr(self, name), getattr(before, name)) for name in self.__struct_fields__]
        known = [now == then for now, then in pairs if now is not None and then is not None]
        return all(known) if known else self == before

    def since(self, before: "Counts | None") -> "Counts":
        """What was added to counts that only grow; itself where it did not grow out of them."""
        if before is None:
            return self
        added: dict[str, int | None] = {}
        for name in self.__struct_fields__:
            now, then = cast("int | None", getattr(self, name)), cast("int | None", getattr(before, name))
            if now is not None and then is not None and now < then:
                return self
            added[name] = None if now is None or then is None else now - then
        return Counts(**added)


class Info(Struct):
    """What a count of tokens says; two numbers only until version 0.50."""

    model: str | None = None
    total_token_usage: Counts | None = None
    last_token_usage: Counts | None = None
    prompt: Count | None = None
    completion: Count | None = None


class Named(Struct):
    """A tool, or a thing that was done."""

    id: str | None = None
    name: str | None = None
    type: str | None = None
    server: str | None = None
    tool: str | None = None


class Duration(Struct):
    """As the program's own language writes it."""

    secs: Annotated[float, Meta(ge=0, le=1e11)]
    nanos: Annotated[float, Meta(ge=0, le=1e11)] = 0.0

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.secs + self.nanos / 1e9


class Payload(Struct):
    """What a line is about: the fields of all kinds that matter, each of which has some of them."""

    type: str | None = None
    role: str | None = None
    content: Raw = Raw()
    message: Raw = Raw()
    name: str | None = None
    arguments: Raw = Raw()
    input: Raw = Raw()
    action: Raw = Raw()
    call_id: str | None = None
    output: Raw = Raw()
    result: Raw = Raw()
    function: Named | None = None
    invocation: Named | None = None
    item: Named | None = None
    id: str | None = None
    model: str | None = None
    model_provider: str | None = None
    turn_id: str | None = None
    approval_policy: Raw = Raw()
    source: Raw = Raw()
    info: Info | None = None
    usage: Counts | None = None
    success: bool | None = None
    exit_code: int | None = None
    duration: Duration | None = None
    duration_ms: Milliseconds | None = None
    started_at_ms: float | None = None
    completed_at_ms: float | None = None
    time_to_first_token_ms: Milliseconds | None = None
    error: Raw = field(default=Raw(), name="codex_error_info")
    replacement_history: Raw = Raw()


class Line(Struct):
    """One line."""

    type: str | None = None
    timestamp: datetime | None = None
    created_at: datetime | None = None
    payload: Payload | None = None

    @property
    def at(self) -> float | None:
        """Epoch seconds."""
        when = self.timestamp or self.created_at
        if when is None:
            return None
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


class _Spawn(Struct):
    parent_thread_id: str
    agent_nickname: str | None = None
    agent_role: str | None = None


class _SubAgent(Struct):
    thread_spawn: _Spawn


class _Source(Struct):
    subagent: _SubAgent


class _Metadata(Struct):
    exit_code: int | None = None


class _Output(Struct):
    output: str | None = None
    content: Raw = Raw()
    text: str | None = None
    success: bool | None = None
    metadata: _Metadata | None = None
    exited: int | None = field(default=None, name="exitCode")


class _Text(Struct):
    type: str | None = None
    text: str | None = None


_LINE: Final = msgspec.json.Decoder(Line)
_PAYLOAD: Final = msgspec.json.Decoder(Payload)
_PAYLOADS: Final = msgspec.json.Decoder(list[Payload])
_SOURCE: Final = msgspec.json.Decoder(_Source)
_OUTPUT: Final = msgspec.json.Decoder(str | list[_Text] | _Output)
_OLD_OUTPUT: Final = msgspec.json.Decoder(_Output)
NEVER: Final = (msgspec.MsgspecError, RecursionError)
"""What decoding a damaged line may raise."""
_NO_LINE: Final = "a line that is not JSON, or not a line of a rollout"


def decode(record: Record, skips: Skips) -> tuple[Line, Payload] | None:
    """A line and what it is about, which is the line itself in the oldest format; nothing where it is damaged."""
    line = decode_record(_LINE, record, skips, _NO_LINE, needed=("timestamp", "created_at"))
    if line is None:
        return None
    payload = line.payload or decode_record(_PAYLOAD, record, skips, _NO_LINE)
    return None if payload is None else (line, payload)


def text_of(raw: Raw) -> str:
    """The text in a value: a string, blocks, or an object around either; else the JSON that it is."""
    return _output(raw)[0]


def output(payload: Payload) -> tuple[str, bool | None]:
    """What a tool gave back, and whether it failed, where that can be told."""
    raw = payload.output if bytes(payload.output) else payload.result
    said, failed = _output(raw)
    if failed is None and (code := _EXIT.search(said, 0, _HEAD)) is not None:
        failed = code[1] != "0"
    return said, failed


def _output(raw: Raw) -> tuple[str, bool | None]:
    try:
        value = _OUTPUT.decode(raw)
        if isinstance(value, str) and value.startswith('{"output"'):  # until 0.4x: JSON in a string
            value = _OLD_OUTPUT.decode(value)
    except NEVER:
        return bytes(raw).decode(errors="replace"), None
    if isinstance(value, str):
        return value, None
    if isinstance(value, list):
        return "\n".join([block.text for block in value if block.text is not None]), None
    failed = None if value.success is None else not value.success
    code = value.exited if value.metadata is None else value.metadata.exit_code
    failed = failed if code is None else code != 0
    for said in (value.text, value.output):
        if said is not None:
            return said, failed
    return (text_of(value.content) if bytes(value.content) else bytes(raw).decode(errors="replace")), failed


def spawned_by(payload: Payload) -> tuple[str, str | None] | None:
    """The session that started this one as its sub-agent, and the agent's name."""
    try:
        spawn = _SOURCE.decode(payload.source).subagent.thread_spawn
    except NEVER:
        return None
    return spawn.parent_thread_id, spawn.agent_nickname or spawn.agent_role


def history(payload: Payload) -> list[tuple[str, str]]:
    """Role and text of the messages that a compaction put in the place of all before."""
    try:
        kept = _PAYLOADS.decode(payload.replacement_history)
    except NEVER:
        return []
    return [(one.role or "user", text_of(one.content)) for one in kept if one.type == "message"]


def asks(payload: Payload) -> bool:
    """Whether a person may be asked to approve what tools do."""
    return bytes(payload.approval_policy) != b'"never"'


def word(payload: Payload) -> str:
    """The program's own word for what went wrong."""
    try:
        return msgspec.json.decode(payload.error, type=str) or "error"
    except NEVER:
        return "error"
