"""How an engine's answer reaches the client: events as they come, anything else once it is complete."""

from typing import Final, Protocol

from headway.core.errors import UpstreamError
from headway.core.span import ErrorType
from headway.gateway.front import Reader
from headway.gateway.journal import CallRecord
from headway.gateway.responses import Failure, Headers
from headway.wire.dialect import Dialect, Following
from headway.wire.openai import Answer
from headway.wire.sse import EventScanner, events, split

_OK: Final = 200
_REFUSALS: Final = frozenset({400, 422})
"""An engine that will not take a request as it is; 422 is what FastAPI answers to a field that it does not know."""


class BrokenAnswerError(UpstreamError):
    """The engine's answer cannot be passed on; ``error`` is the word for why."""

    def __init__(self, error: str, what: str, *, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.error = error


class Relay(Protocol):
    """One answer on its way to the client; `body` and `end` raise `BrokenAnswerError`."""

    @property
    def begun(self) -> bool:
        """The client was sent a part of it, so that nobody else's answer can take its place."""
        ...

    @property
    def said_all(self) -> bool:
        """The client was sent all that it waits for, though the response may not have ended yet."""
        ...

    @property
    def status(self) -> int:
        """The engine's."""
        ...

    @property
    def refusal(self) -> bytes | None:
        """What an engine said that refused the request as it is; ``None``: it did not."""
        ...

    @property
    def first_token(self) -> float | None:
        """When the first token came; ``None``: not yet, or nobody sees it."""
        ...

    def body(self, data: bytes, now: float) -> None:
        """A piece of the answer came."""
        ...

    def end(self, now: float) -> None:
        """The answer is complete."""
        ...

    def fail(self, problem: Failure) -> None:
        """The answer broke off: tell the client as well as can still be done."""
        ...

    def note(self, record: CallRecord) -> None:
        """Write down what was learnt of the answer, complete or not."""
        ...


class StreamRelay:
    """Events, passed on whole and untouched as each one completes, so that an error can always follow them cleanly.

    Args:
        client: who reads them.
        dialect: what they are in.
        limit: largest event in bytes, and how much of the answer's text is kept until its end.
        observed: whether the events are looked into. If not, they are not checked either.
        hide_usage: leave out the event that tells only the usage, because the client did not ask for it.
    """

    begun = True
    status = _OK
    refusal = None

    @property
    def first_token(self) -> float | None:
        """When the first token came; ``None``: not yet, or nobody sees it."""
        return None if self._stream is None else self._stream.first_token

    def __init__(self, client: Reader, dialect: Dialect, limit: int, *, observed: bool, hide_usage: bool) -> None:
        self._client = client
        self._dialect = dialect
        self._scanner = EventScanner(limit)
        self._stream = dialect.follow(limit) if observed else None
        self._hide_usage = hide_usage
        self._last = b""
        """What was passed on last, where nobody looks into it."""

    @property
    def said_all(self) -> bool:
        """The mark that ends a stream was passed on: most clients read no further and hang up."""
        return self._dialect.ended(self._last) if self._stream is None else self._stream.done

    def body(self, data: bytes, now: float) -> None:
        """Pass on the events that ``data`` completes."""
        try:
            whole = self._scanner.cut(data)
        except UpstreamError as error:
            fix = f"{error.fix} If its events are so long, have the gateway's --response-bytes raised."
            raise BrokenAnswerError("upstream_oversize", error.what, fix=fix) from error
        if not whole:
            return
        stream = self._stream
        if stream is None:
            self._last = whole
        elif self._follow(stream, whole, now) and self._hide_usage:
            whole = b"".join([one for one in split(whole) if not any(map(self._dialect.only_usage, events(one)))])
        if whole:
            self._client.send(whole)

    def end(self, now: float) -> None:
        """The response ended in good order; whether the answer did is for its events to say."""
        del now
        if self._stream is not None and not (self._stream.complete or self._stream.failed):
            raise BrokenAnswerError(
                "upstream_truncated",
                "The engine ended its stream without the mark of its end, and without saying why.",
                fix="Check the engine's log for why it stopped.",
            )
        if tail := self._scanner.tail:
            self._client.send(tail)
        self._client.end()

    def fail(self, problem: Failure) -> None:
        """End the stream with an error event."""
        self._client.send(self._dialect.error_event(problem))
        self._client.end(close=True)

    def note(self, record: CallRecord) -> None:
        """Times of the tokens, and what they said."""
        stream = self._stream
        if stream is None:
            return
        record.first_token = stream.first_token
        record.first_visible = stream.first_visible
        record.last_token = stream.last_token
        record.itl = stream.itl()
        record.answer = stream.answer()
        if stream.failed and record.error is None:
            record.error = ErrorType("upstream_error_event")

    def _follow(self, stream: Following, whole: bytes, now: float) -> bool:
        """Look into these events; whether one of them tells only the usage."""
        told = False
        try:
            for event in events(whole):
                told = stream.feed(event, now) or told
        except UpstreamError as error:
            raise BrokenAnswerError("upstream_malformed", error.what, fix=error.fix) from error
        return told


class OpaqueRelay:
    """A stream in an encoding that we cannot read, though we asked for none: passed on as it comes."""

    begun = True
    said_all = False
    status = _OK
    refusal = None
    first_token = None

    def __init__(self, client: Reader) -> None:
        self._client = client

    def body(self, data: bytes, now: float) -> None:
        """Pass it on."""
        del now
        self._client.send(data)

    def end(self, now: float) -> None:
        """End the response."""
        del now
        self._client.end()

    def fail(self, problem: Failure) -> None:
        """Cut the connection: no error event could be put into the encoded stream."""
        del problem
        self._client.abort()

    def note(self, record: CallRecord) -> None:
        """Nothing is known."""


class WholeRelay:
    """An answer in one piece, held until it is complete: half of a JSON object helps nobody, an error does.

    Args:
        client: who reads it.
        dialect: what it is in.
        status: the engine's.
        headers: the engine's, those that are passed on.
        limit: largest answer in bytes.
        observed: whether the answer is looked into; only good ones in plain JSON should be.
    """

    begun = False
    said_all = False
    first_token = None

    def __init__(
        self, client: Reader, dialect: Dialect, status: int, headers: Headers, limit: int, *, observed: bool
    ) -> None:
        self._client = client
        self._dialect = dialect
        self.status = status
        self._headers = headers
        self._limit = limit
        self._observed = observed
        self._body = b""
        self._more: list[bytes] = []
        self._size = 0
        self._answer: Answer | None = None

    @property
    def refusal(self) -> bytes | None:
        """The body as far as it has come, where the status is that of a refusal."""
        return self._joined() if self.status in _REFUSALS else None

    def body(self, data: bytes, now: float) -> None:
        """Hold it."""
        del now
        self._size += len(data)
        if self._body:
            self._more.append(data)
        else:
            self._body = data
        if self._size > self._limit:
            raise BrokenAnswerError(
                "upstream_oversize",
                f"The engine's answer is longer than {self._limit} bytes.",
                fix="Ask for a shorter answer, or have the gateway's --response-bytes raised.",
            )

    def end(self, now: float) -> None:
        """Send all of it."""
        del now
        body = self._joined()
        if self._observed and self.status == _OK:
            try:
                self._answer = self._dialect.answer(body)
            except UpstreamError as error:
                raise BrokenAnswerError("upstream_malformed", error.what, fix=error.fix) from error
        self._client.respond(self.status, body, self._headers)

    def fail(self, problem: Failure) -> None:
        """Nothing was sent yet, so the failure is the whole answer."""
        self._client.fail(problem)

    def note(self, record: CallRecord) -> None:
        """What the answer said."""
        record.answer = self._answer
        if self.status != _OK and record.error is None:
            record.error = ErrorType(f"http_{self.status}")

    def _joined(self) -> bytes:
        return b"".join([self._body, *self._more]) if self._more else self._body


def relay_for(
    client: Reader,
    dialect: Dialect,
    status: int,
    headers: Headers,
    fields: dict[bytes, bytes],
    *,
    limit: int,
    observed: bool,
    hide_usage: bool,
) -> Relay:
    """The relay that suits an answer with this head; one for a stream sends the head at once.

    Args:
        client: who reads the answer.
        dialect: what both sides speak.
        status: the engine's.
        headers: those that the client is to see.
        fields: the engine's, for looking up.
        limit: largest answer, and largest event, in bytes.
        observed: whether answers are looked into.
        hide_usage: whether a stream's usage was asked for by us alone, so that the client is not to see it.
    """
    readable = fields.get(b"content-encoding", b"identity") == b"identity"
    if status != _OK or not fields.get(b"content-type", b"").startswith(b"text/event-stream"):
        return WholeRelay(client, dialect, status, headers, limit, observed=observed and readable)
    client.begin(status, headers)
    if not readable:
        return OpaqueRelay(client)
    return StreamRelay(client, dialect, limit, observed=observed, hide_usage=hide_usage)
