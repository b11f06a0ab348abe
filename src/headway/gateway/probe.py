"""A look into what an engine says while its answer is held back."""

from typing import Final

from headway.core.errors import UpstreamError
from headway.wire.dialect import Dialect
from headway.wire.heard import Heard, asking_for_logprobs, hear, without_logprobs
from headway.wire.sse import events, split


class Probe:
    """Of one answer: what was asked for beside it, and what the engine says to the byte.

    Args:
        logprobs: whether to ask how likely its tokens are.
    """

    def __init__(self, *, logprobs: bool) -> None:
        self._logprobs: Final = logprobs
        self._pieces: list[bytes] = []
        self._streamed = False
        self._dialect = ""
        self.asked = False
        """The engine was asked for what the caller had not asked for."""

    def asking(self, engine: Dialect, opening: bytes, body: bytes | memoryview) -> tuple[bytes, bytes | memoryview]:
        """A request's body in two pieces, as the engine is to have it."""
        asking = asking_for_logprobs(engine.name, opening + bytes(body)) if self._logprobs else None
        self.asked = self.asked or asking is not None
        return (opening, body) if asking is None else (b"", asking)

    def listen(self, engine: Dialect, fields: dict[bytes, bytes]) -> list[bytes]:
        """An answer with these headers begins: where its pieces are to be put."""
        self._pieces, self._dialect = [], engine.name
        self._streamed = fields.get(b"content-type", b"").startswith(b"text/event-stream")
        return self._pieces

    def heard(self) -> Heard:
        """What the answer says of itself."""
        said = b"".join(self._pieces)
        try:
            return hear(events(said) if self._streamed else [said])
        except UpstreamError:
            return Heard(None, declined=False)

    def rewritten(self, caller: Dialect, body: bytes) -> bytes:
        """The client's copy of the answer, without what it had not asked for."""
        if not self.asked or caller.name != self._dialect:
            return body  # a translation carries none
        if not self._streamed:
            return without_logprobs(self._dialect, body)
        return b"".join([self._event(event) for event in split(body)])

    def _event(self, event: bytes) -> bytes:
        if b'"logprobs"' not in event:
            return event
        name = b"".join([line + b"\n" for line in event.splitlines() if line.startswith(b"event:")])
        data = b"".join([b"data: %b\n" % without_logprobs(self._dialect, data) for data in events(event)])
        return name + data + b"\n"
