"""A line of a Claude Code session, as far as it matters here; what is not declared is not decoded."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct, field

from headway.trace.sources.document import Record
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.skips import Skips

Count = Annotated[int, Meta(ge=0, le=2**53)]


class Block(Struct):
    """A piece of a message: text, a tool that is asked for, a tool's result; of other kinds only the type is kept."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()
    tool_use_id: str | None = None
    content: Raw = Raw()
    is_error: bool | None = None


class Tokens(Struct):
    """As the API counts them: the input without what was read from or written to the cache."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None


class Message(Struct):
    """What was said by whom."""

    role: str | None = None
    id: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    stop_reason: str | None = None
    usage: Tokens | None = None


class Row(Struct, rename="camel"):
    """One line. The same message comes on several lines, each with some of its blocks."""

    type: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    streamed_session: str | None = field(default=None, name="session_id")
    """How ``--output-format stream-json`` spells it."""
    agent_id: str | None = None
    agent: str | None = field(default=None, name="attributionAgent")
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    timestamp: datetime | None = None
    message: Message | None = None
    request_id: str | None = None
    cost: float | None = field(default=None, name="costUSD")
    error: Raw = Raw()
    subtype: str | None = None
    compact_metadata: Raw = Raw()
    tool_use_result: Raw = Raw()
    data: Raw = Raw()
    parent_tool_use: str | None = field(default=None, name="parentToolUseID")
    streamed_parent: str | None = field(default=None, name="parent_tool_use_id")
    source_tool_use: str | None = field(default=None, name="sourceToolUseID")
    permission_mode: str | None = None
    started_by: str | None = field(default=None, name="toolUseId")
    """In the file that lies beside a sub-agent's own: the tool call that started it."""

    @property
    def session(self) -> str:
        """The session that it names; the empty string where it names none."""
        return self.session_id or self.streamed_session or ""

    @property
    def at(self) -> float | None:
        """Epoch seconds."""
        when = self.timestamp
        if when is None:
            return None
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


class Web(Struct):
    """A session as the web version exports it: the same rows in one array."""

    loglines: list[Raw]


class Spawned(Struct, rename="camel"):
    """What a tool's result or a progress line says of the sub-agent that ran for it."""

    agent_id: str | None = None
    is_async: bool | None = None
    status: str | None = None


class _Compaction(Struct):
    trigger: str | None = None


_ROW: Final = msgspec.json.Decoder(Row)
_WEB: Final = msgspec.json.Decoder(Web)
_SPAWNED: Final = msgspec.json.Decoder(Spawned)
_COMPACTION: Final = msgspec.json.Decoder(_Compaction)
_TEXTS: Final = msgspec.json.Decoder(str | list[Block])
_SUMMED: Final = {"cache_read_input_tokens": "input_tokens", "cache_creation_input_tokens": "input_tokens"}
"""Counts that the whole input is summed up from."""
NEVER: Final = (msgspec.MsgspecError, RecursionError)
"""What decoding a damaged line may raise."""
NO_ROW: Final = "a line that is not JSON, or not a row of a session"


def rows(record: Record, skips: Skips) -> Iterator[Row]:
    """The rows of a record: itself, or those of a web export."""
    row = decode(_ROW, record, skips, NO_ROW, spoils=_SUMMED)
    if row is None:
        return
    if row.type is not None or row.message is not None or b'"loglines"' not in record.data:
        yield row
        return
    web = decode(_WEB, record, skips, NO_ROW)
    for number, line in enumerate([] if web is None else web.loglines, 1):
        one = Record(bytes(line), f"{record.where}, row {number}")
        row = decode(_ROW, one, skips, NO_ROW, spoils=_SUMMED)
        if row is not None:
            yield row


def spawned(raw: Raw) -> Spawned | None:
    """The sub-agent in a raw value that names one."""
    if b'"agentId"' not in bytes(raw):
        return None
    try:
        return _SPAWNED.decode(raw)
    except NEVER:
        return None


def compacted_by_itself(row: Row) -> bool:
    """Whether the history was compacted in the midst of work, not because the user asked for it."""
    try:
        return _COMPACTION.decode(row.compact_metadata).trigger == "auto"
    except NEVER:
        return False


def text_of(content: str | list[Block] | None) -> str:
    """The text in a message's content."""
    if isinstance(content, str):
        return content
    return "\n".join([block.text for block in content or () if block.text is not None])


def result_text(content: Raw) -> str:
    """The text of a tool's result: a string, or blocks; anything else as the JSON that it is."""
    raw = bytes(content)
    if raw[:1] in b'"[':
        try:
            return text_of(_TEXTS.decode(raw))
        except NEVER:
            pass
    return raw.decode(errors="replace")
