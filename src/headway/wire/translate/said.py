"""What an engine answers, in no dialect: small events, whether they came one by one or all at once.

The order is always: `Began`; then blocks, one at a time: words in one or more `Said`, thought in `Thinking` and at most
one `Signed`, a tool call as `Called` and its arguments in `Argued`; then `Ended`, and `Counted` if that is known.
"""

from typing import Literal, Protocol

from msgspec import Struct

from headway.core.usage import Usage
from headway.wire.translate.conversation import Call, Text, Thought

Reason = Literal["stop", "length", "tools", "refused"]


class Began(Struct, frozen=True, gc=False):
    """The answer's id and the model that gives it, as the engine says."""

    id: str
    model: str


class Said(Struct, frozen=True, gc=False):
    """Words that the user sees."""

    text: str


class Thinking(Struct, frozen=True, gc=False):
    """Thought."""

    text: str


class Signed(Struct, frozen=True, gc=False):
    """Ends a thought."""

    signature: str


class Hidden(Struct, frozen=True, gc=False):
    """A whole thought that the API encrypted."""

    data: str


class Called(Struct, frozen=True, gc=False):
    """A tool call begins."""

    id: str
    name: str


class Argued(Struct, frozen=True, gc=False):
    """A piece of the arguments of the tool call that began last; together they are JSON text."""

    piece: str


class Ended(Struct, frozen=True, gc=False):
    """Why the answer ended, and the stop sequence if one did and the engine tells which."""

    reason: Reason
    stop: str | None = None


class Counted(Struct, frozen=True):
    """What it cost."""

    usage: Usage


class Faulted(Struct, frozen=True, gc=False):
    """The engine broke off with an error."""

    message: str


Event = Began | Said | Thinking | Signed | Hidden | Called | Argued | Ended | Counted | Faulted


class Hearing(Protocol):
    """Reads one answer of an engine."""

    @property
    def over(self) -> bool:
        """The mark that ends a stream was heard: nothing more will come."""
        ...

    def whole(self, body: bytes) -> list[Event]:
        """A whole answer.

        Raises:
            UpstreamError: it is not one.
        """
        ...

    def feed(self, event_data: bytes) -> list[Event]:
        """The next event of a stream; each is heard once, and nothing is held back that could be told.

        Raises:
            UpstreamError: the data is not JSON.
        """
        ...

    def end(self) -> list[Event]:
        """What was held back until the stream's end."""
        ...


class Telling(Protocol):
    """Tells one answer to a caller."""

    def whole(self, reply: "Reply") -> bytes:
        """A whole answer's body."""
        ...

    def tell(self, event: Event) -> bytes:
        """The bytes of a stream that say ``event``; none where the caller's dialect has nothing for it, or not yet."""
        ...

    def end(self) -> bytes:
        """The end of the stream, with what could only be told there."""
        ...


class Reply:
    """An answer as far as it has been heard."""

    def __init__(self) -> None:
        self.id = ""
        self.model = ""
        self.parts: list[Text | Thought | Call] = []
        """In the order in which they came."""
        self.reason: Reason | None = None
        self.stop: str | None = None
        self.usage = Usage()
        self._pieces: list[str] = []
        self._signature = ""

    def hear(self, event: Event) -> None:
        """Take in what was said."""
        match event:
            case Began():
                self.id, self.model = event.id, event.model
            case Said():
                self._add(Text(""), event.text)
            case Thinking():
                self._add(Thought(), event.text)
            case Signed():
                self._sign(event.signature)
            case Hidden():
                self._open(Thought(hidden=event.data))
            case Called():
                self._open(Call(event.id, event.name, ""))
            case Argued():
                self._pieces.append(event.piece)
            case Ended():
                self._close()
                self.reason, self.stop = event.reason, event.stop
            case Counted():
                self.usage = event.usage
            case Faulted():
                pass

    def finish(self) -> "Reply":
        """No more will come."""
        self._close()
        return self

    def _add(self, kind: Text | Thought, text: str) -> None:
        last = self.parts[-1] if self.parts else None
        if type(last) is not type(kind) or (isinstance(last, Thought) and (last.signature or last.hidden)):
            self._open(kind)
        self._pieces.append(text)

    def _sign(self, signature: str) -> None:
        if not self.parts or not isinstance(self.parts[-1], Thought) or self.parts[-1].hidden:
            self._open(Thought())
        self._close()
        self.parts[-1] = Thought(getattr(self.parts[-1], "text", ""), signature)

    def _open(self, part: Text | Thought | Call) -> None:
        self._close()
        self.parts.append(part)

    def _close(self) -> None:
        if not self._pieces:
            return
        whole, self._pieces = "".join(self._pieces), []
        last = self.parts[-1]
        match last:
            case Text():
                self.parts[-1] = Text(last.text + whole)
            case Thought():
                self.parts[-1] = Thought(last.text + whole, last.signature)
            case Call():
                self.parts[-1] = Call(last.id, last.name, last.arguments + whole)
