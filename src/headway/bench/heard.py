"""From bytes with their times to what a call was: the same record as everywhere, by the same rules.

- The first token is the first text, reasoning or tool call; the empty chunk that opens a stream is none.
- An answer whose stream ends without a reason to have ended has failed, whatever the status said.
- A chunk is not a token: seconds a token = (last - first) / tokens that came after the first chunk, of which each
  chunk is taken to bring as many as any other.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec
from msgspec import Struct

from headway.bench.connection import Received
from headway.core.errors import UpstreamError
from headway.core.span import ErrorType, ModelCall, ToolCallRef
from headway.wire.openai import Answer, decode_answer
from headway.wire.openai_stream import AnswerStream
from headway.wire.sse import EventScanner

_OK: Final = 200


class Heard(Struct, frozen=True, kw_only=True):
    """One call, understood."""

    call: ModelCall
    error: ErrorType | None
    text: str
    """What it said, as far as it came."""
    gaps: tuple[float, ...]
    """Seconds between the reads that brought tokens."""

    @property
    def token_time(self) -> float | None:
        """Seconds a token after the first chunk; ``None``: it came in one read, or nobody counted the tokens."""
        call, tokens = self.call, self.call.usage.output_tokens
        if not tokens or call.first_token is None or call.last_token is None or call.itl is None:
            return None
        seconds = call.last_token - call.first_token
        return seconds * (call.itl.count + 1) / (tokens * call.itl.count) if seconds else None


def heard(received: Received, model: str, *, stream: bool) -> Heard:
    """What ``received`` tells.

    Args:
        received: of the client.
        model: that was asked for.
        stream: whether a stream was asked for.
    """
    call = ModelCall(model=model, stream=stream, sent=received.sent, attempts=None)
    if received.status is not None and received.status != _OK:
        return _failed(call, f"http_{received.status}")
    if stream:
        return _streamed(call, received)
    if received.error is not None:
        return _failed(call, received.error)
    try:
        answer = decode_answer(b"".join(piece for _, piece in received.reads))
    except (UpstreamError, msgspec.DecodeError):
        return _failed(call, "malformed")
    return Heard(call=_told(call, answer), error=None, text=answer.content, gaps=())


def _streamed(call: ModelCall, received: Received) -> Heard:
    stream, scanner, times = AnswerStream(), EventScanner(), list[float]()
    error = received.error
    try:
        for at, piece in received.reads:
            for event in scanner.feed(piece):
                before = stream.last_token
                stream.feed(event, at)
                if stream.last_token is not None and stream.last_token != before:
                    times.append(at)
    except UpstreamError:
        error = "malformed"
    if error is None and stream.failed:
        error = "error_event"
    if error is None and not stream.complete:
        error = "incomplete"
    answer = stream.answer()
    told = msgspec.structs.replace(
        _told(call, answer),
        first_token=stream.first_token,
        first_visible=stream.first_visible,
        last_token=stream.last_token,
        itl=stream.itl(),
    )
    return Heard(call=told, error=_word(error), text=answer.content, gaps=_gaps(times))


def _gaps(times: Sequence[float]) -> tuple[float, ...]:
    return tuple(later - earlier for earlier, later in pairwise(times))


def _told(call: ModelCall, answer: Answer) -> ModelCall:
    return msgspec.structs.replace(
        call,
        usage=answer.usage,
        engine=answer.engine,
        finish_reason=answer.finish_reason,
        tool_calls=tuple(ToolCallRef(made.id, made.name) for made in answer.tool_calls),
    )


def _failed(call: ModelCall, error: str) -> Heard:
    return Heard(call=call, error=_word(error), text="", gaps=())


def _word(error: str | None) -> ErrorType | None:
    return None if error is None else ErrorType(error)
