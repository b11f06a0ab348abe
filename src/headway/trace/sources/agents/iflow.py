"""iFlow sessions: rows like Claude Code's, but each repeats blocks of the one before, and counts no tokens."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, cast

import msgspec
from msgspec import Raw, Struct

from headway.core.task import SessionId
from headway.trace.sources.claude.rows import NEVER, NO_ROW, Row, Tokens, rows
from headway.trace.sources.claude.thread import Thread
from headway.trace.sources.digests import task_id
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_SESSION: Final = re.compile(r"session-[0-9a-f]{8}-")
_TOKENS: Final = "This source writes 0 for all tokens, which are unknown."


class _Response(Struct):
    output: str | None = None
    error: str | None = None


class _FunctionResponse(Struct):
    response: _Response


class _Parts(Struct, rename="camel"):
    function_response: _FunctionResponse


class _Result(Struct, rename="camel"):
    response_parts: _Parts


_RESULT: Final = msgspec.json.Decoder(_Result)


class IFlow:
    """Reads sessions; rows of answers with nothing between them are one answer."""

    name = "iflow"
    title = "iFlow session"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By rows of messages whose session is named as no other program names its own."""
        return any(
            isinstance(found.get("message"), dict)
            and str(found.get("type")) in {"user", "assistant"}
            and _SESSION.match(str(found.get("sessionId"))) is not None
            and "content" in cast("dict[str, object]", found["message"])
            for found in sample.objects()
        )

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each message of the user's that was answered."""
        for document in documents:
            threads: dict[str, Thread] = {}
            answer, answering = 0, False
            for record in document.records(skips):
                for row in rows(record, skips):
                    if row.message is None:
                        skips.add(NO_ROW, record.where)
                        continue
                    answer += not answering
                    answering = row.type == "assistant"
                    session = row.session or document.name
                    thread = threads.setdefault(session, Thread(session, session))
                    thread.kind = "iflow"
                    _plain(row, f"{session}/{answer}")
                    if why := thread.feed(row):
                        skips.add(why, record.where)
            for thread in threads.values():
                for _ in range(thread.finish()):
                    skips.add("a request that was never answered", document.name)
                for turn in thread.turns:
                    turn.draft.remarks.append(_TOKENS)
                    timing = "messages" if turn.timed else "none"
                    yield turn.draft.piece(task_id(self.name, turn.key), SessionId(thread.session), timing)


def _plain(row: Row, answer: str) -> None:
    """Make a row say what Claude Code's would: which answer it is of, no tokens for 0, results as texts."""
    message = row.message
    if message is None:
        return
    message.id = answer
    if message.usage is not None and not message.usage.input_tokens:
        message.usage = Tokens()
    for block in message.content if isinstance(message.content, list) else ():
        if block.type == "tool_result":
            try:
                response = _RESULT.decode(block.content).response_parts.function_response.response
            except NEVER:
                continue
            said = response.output if response.output is not None else response.error
            if response.output is None and response.error is not None:
                block.is_error = True
            if said is not None:
                block.content = Raw(msgspec.json.encode(said))
