"""How an answer reaches a client who speaks another dialect than the engine: each event as it comes, in other words."""

from typing import Final

from headway.core.errors import UpstreamError
from headway.core.span import ErrorType
from headway.gateway.front import Reader
from headway.gateway.journal import CallRecord
from headway.gateway.relay import BrokenAnswerError, Relay
from headway.gateway.responses import Failure, Headers
from headway.wire.dialect import Dialect
from headway.wire.openai import Answer
from headway.wire.sse import EventScanner, events
from headway.wire.translate.exchange import Exchange

_OK: Final = 200
_JSON: Final = (b"content-type", b"application/json")


class Speech:
    """Who says what to whom in one call: the caller's dialect, the engine's, and the exchange between them."""

    __slots__ = ("caller", "engine", "exchange", "notes")

    def __init__(self, caller: Dialect, engine: Dialect, body: bytes, now: float) -> None:
        """Translate a request.

        Raises:
            BadInputError: it cannot be translated.
        """
        self.caller = caller
        self.engine = engine
        self.exchange = Exchange(caller, engine, body, created=int(now))
        self.notes = (f"Translated into {engine.name}.", *self.exchange.notes)


class InterpretedStream:
    """A streamed answer, told event by event; as `Relay`."""

    begun = True
    status = _OK
    refusal = None

    @property
    def first_token(self) -> float | None:
        """When the first token came; ``None``: not yet."""
        return self._stream.first_token

    def __init__(self, client: Reader, speech: Speech, limit: int) -> None:
        self._client = client
        self._speech = speech
        self._scanner = EventScanner(limit)
        self._stream = speech.engine.follow(limit)
        self._interpreter = speech.exchange.interpreter()

    @property
    def said_all(self) -> bool:
        """The engine's mark of the end has come, and so the caller's was sent."""
        return self._stream.done

    def body(self, data: bytes, now: float) -> None:
        """Tell what the events say that ``data`` completes."""
        try:
            whole = self._scanner.cut(data)
        except UpstreamError as error:
            fix = f"{error.fix} If its events are so long, have the gateway's --response-bytes raised."
            raise BrokenAnswerError("upstream_oversize", error.what, fix=fix) from error
        told: list[bytes] = []
        try:
            for event in events(whole):
                self._stream.feed(event, now)
                told.append(self._interpreter.feed(event))
        except UpstreamError as error:
            raise BrokenAnswerError("upstream_malformed", error.what, fix=error.fix) from error
        finally:
            if text := b"".join(told):
                self._client.send(text)

    def end(self, now: float) -> None:
        """The response ended in good order; whether the answer did is for its events to say."""
        del now
        if not (self._stream.complete or self._stream.failed):
            raise BrokenAnswerError(
                "upstream_truncated",
                "The engine ended its stream without the mark of its end, and without saying why.",
                fix="Check the engine's log for why it stopped.",
            )
        if told := self._interpreter.end():
            self._client.send(told)
        self._client.end()

    def fail(self, problem: Failure) -> None:
        """End the stream with an error event of the caller's dialect."""
        self._client.send(self._speech.caller.error_event(problem))
        self._client.end(close=True)

    def note(self, record: CallRecord) -> None:
        """Times of the tokens, and what they said."""
        stream = self._stream
        record.first_token = stream.first_token
        record.first_visible = stream.first_visible
        record.last_token = stream.last_token
        record.itl = stream.itl()
        record.answer = self._speech.exchange.as_told(stream.answer())
        if stream.failed and record.error is None:
            record.error = ErrorType("upstream_error_event")


class InterpretedWhole:
    """An answer in one piece, or a refusal, told once it is complete; as `Relay`."""

    begun = False
    said_all = False
    refusal = None
    first_token = None

    def __init__(self, client: Reader, speech: Speech, status: int, headers: Headers, limit: int) -> None:
        self._client = client
        self._speech = speech
        self.status = status
        self._headers = headers
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._answer: Answer | None = None

    def body(self, data: bytes, now: float) -> None:
        """Hold it."""
        del now
        self._size += len(data)
        self._pieces.append(data)
        if self._size > self._limit:
            raise BrokenAnswerError(
                "upstream_oversize",
                f"The engine's answer is longer than {self._limit} bytes.",
                fix="Ask for a shorter answer, or have the gateway's --response-bytes raised.",
            )

    def end(self, now: float) -> None:
        """Tell all of it."""
        del now
        body, exchange = b"".join(self._pieces), self._speech.exchange
        headers = [header for header in self._headers if header[0] != b"content-type"]
        headers.append(_JSON)
        if self.status != _OK:
            status, told = exchange.refusal(self.status, body)
            self._client.respond(status, told, headers)
            return
        try:
            answer = self._speech.engine.answer(body)
            told = exchange.answer(body)
        except UpstreamError as error:
            raise BrokenAnswerError("upstream_malformed", error.what, fix=error.fix) from error
        self._answer = exchange.as_told(answer)
        self._client.respond(self.status, told, headers)

    def fail(self, problem: Failure) -> None:
        """Nothing was sent yet, so the failure is the whole answer."""
        self._client.fail(problem)

    def note(self, record: CallRecord) -> None:
        """What the answer said."""
        record.answer = self._answer
        if self.status != _OK and record.error is None:
            record.error = ErrorType(f"http_{self.status}")


def interpreted(
    client: Reader, speech: Speech, status: int, headers: Headers, fields: dict[bytes, bytes], *, limit: int
) -> Relay:
    """The relay that suits an answer with this head; one for a stream sends the head at once.

    An answer that is packed, though none asked it to be, is no JSON, and is refused as such when it is complete.
    """
    readable = fields.get(b"content-encoding", b"identity") == b"identity"
    if status != _OK or not readable or not fields.get(b"content-type", b"").startswith(b"text/event-stream"):
        return InterpretedWhole(client, speech, status, headers, limit)
    client.begin(status, headers)
    return InterpretedStream(client, speech, limit)
