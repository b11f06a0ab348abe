"""An answer in a Claude Code session, which comes on several rows, each with some of its blocks and a count so far."""

from typing import Final

import msgspec
from msgspec import Struct, field

from headway.core.prompt import Part
from headway.core.span import ModelCall, ToolCallRef
from headway.core.usage import Usage
from headway.trace.sources.claude.rows import NEVER, Block, Message, Row, Tokens
from headway.trace.sources.digests import part
from headway.trace.sources.fields.completions import micro_usd
from headway.trace.sources.session.draft import Entry

CHARS_PER_TOKEN: Final = 20
"""No whole answer has more: a count by which it would have is that of a stream that had just begun."""
_SHORT: Final = 40


class Answer(Struct):
    """One request to the model while its rows are coming."""

    entry: Entry
    key: str
    """What its rows have in common."""
    model: str
    prompt: tuple[Part, ...] | None
    attempts: int | None
    usage: Tokens = field(default_factory=Tokens)
    finish_reason: str | None = None
    said: list[str] = field(default_factory=list[str])
    tools: list[ToolCallRef] = field(default_factory=list[ToolCallRef])
    cost: float | None = None
    visible_by: float | None = None
    """When its first block of text was written down."""

    def take(self, row: Row, message: Message, at: float | None) -> None:
        """Another row of it. Of the counts the largest is kept: earlier rows carry what had been streamed by then."""
        if at is not None:
            self.entry.end = at if self.entry.end is None else max(self.entry.end, at)
        if row.is_api_error_message:
            self.entry.error = _word(row)
        elif message.model is not None:
            self.model = message.model
        usage = message.usage
        if usage is not None and (usage.output_tokens or 0) >= (self.usage.output_tokens or 0):
            self.usage = usage
        self.finish_reason = message.stop_reason or self.finish_reason
        self.cost = row.cost if self.cost is None else self.cost
        if isinstance(message.content, str):
            self._say(message.content, at)

    def say(self, block: Block, at: float | None) -> None:
        """A block of text."""
        if block.text is not None:
            self._say(block.text, at)

    def _say(self, words: str, at: float | None) -> None:
        self.said.append(words)
        if self.visible_by is None and words.strip():
            self.visible_by = at

    def use(self, name: str, call_id: str | None, arguments: bytes) -> None:
        """A block that asks for a tool."""
        self.said.append(f"{name}({arguments.decode()})")
        self.tools.append(ToolCallRef(call_id or "", name))

    @property
    def partial(self) -> bool:
        """Whether its count of output tokens cannot be that of the whole answer."""
        return is_partial(self.usage.output_tokens, sum(map(len, self.said)))

    @property
    def excludes_cache(self) -> bool:
        """Whether its input was counted without what the cache held or took."""
        return bool(self.usage.cache_read_input_tokens or self.usage.cache_creation_input_tokens)

    def finish(self) -> Part | None:
        """No more rows of it will come: the span is whole. Returns the answer as part of later prompts."""
        usage = self.usage
        fresh, read, written = usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens
        answer = part("assistant", "\n".join(self.said)) if self.said and self.entry.error is None else None
        self.entry.name = f"chat {self.model}"
        self.entry.work = ModelCall(
            model=self.model,
            usage=Usage(
                input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
                output_tokens=None if self.partial else usage.output_tokens,
                cache_read=read,
                cache_write=written,
            ),
            visible_by=None if self.entry.error else self.visible_by,
            finish_reason=self.finish_reason,
            attempts=self.attempts,
            tool_calls=tuple(self.tools),
            cost=micro_usd(self.cost),
            prompt=self.prompt,
            answer=answer,
        )
        return answer


def is_partial(tokens: int | None, chars: int) -> bool:
    """Whether a count of output tokens cannot be that of a whole answer of so many characters."""
    return tokens is not None and chars > _SHORT + CHARS_PER_TOKEN * tokens


def _word(row: Row) -> str:
    """The program's own word for what went wrong."""
    try:
        return msgspec.json.decode(row.error, type=str) or "api_error"
    except NEVER:
        return "api_error"
