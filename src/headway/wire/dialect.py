"""The seam between the gateway and the dialects that callers and engines speak.

A gateway reads requests, follows answers and words its errors through a `Dialect`, so it never asks which one it has.
All here is pure: bytes in, values out. A dialect's objects are stateless but for `Following`, one per streamed answer.
"""

from typing import Protocol

from msgspec import Raw

from headway.core.span import Itl
from headway.wire.openai import Answer

Pieces = tuple[bytes, bytes | memoryview]
"""A body in two pieces, so that a long one need not be copied for a few bytes in front of it."""


class Asked(Protocol):
    """What identity, routing, limits and records need of a request. `openai.ChatRequest` is the model of it."""

    @property
    def model(self) -> str:
        """As the caller spelled it."""
        ...

    @property
    def stream(self) -> bool | None:
        """Whether the answer is to come as events."""
        ...

    @property
    def messages(self) -> Raw:
        """The conversation as a JSON array of messages that `policy.messages` reads; ``null`` where there is none.

        It may be made anew at each reading, so read it once.
        """
        ...

    @property
    def tools(self) -> Raw:
        """JSON text; ``null`` where there are none."""
        ...

    @property
    def session(self) -> str | None:
        """The session that the body itself names."""
        ...

    @property
    def output_limit(self) -> int | None:
        """Most tokens that the caller lets one answer have; ``None``: it set no limit."""
        ...

    @property
    def choices(self) -> int:
        """How many answers it asks for."""
        ...

    def asking_for_usage(self, body: bytes) -> Pieces | None:
        """``body``, which this was read from, so that a stream tells its usage; ``None``: it does so unasked."""
        ...


class Following(Protocol):
    """Follows the events of one streamed answer. Times are the caller's, in epoch seconds."""

    @property
    def done(self) -> bool:
        """The mark that ends a stream was seen: most clients read no further."""
        ...

    @property
    def complete(self) -> bool:
        """The answer came to its end, with or without that mark."""
        ...

    @property
    def failed(self) -> bool:
        """The engine reported an error as an event."""
        ...

    @property
    def first_token(self) -> float | None:
        """When the first content, reasoning or tool delta came."""
        ...

    @property
    def first_visible(self) -> float | None:
        """When the first text came that a user can see."""
        ...

    @property
    def last_token(self) -> float | None:
        """When the last delta came."""
        ...

    def feed(self, event_data: bytes, now: float) -> bool:
        """One event's data. JSON of another shape teaches nothing and is no error.

        Returns:
            Whether the event tells the usage and nothing else, so that a caller who did not ask need not see it.

        Raises:
            UpstreamError: the data is not JSON.
        """
        ...

    def itl(self) -> Itl | None:
        """Summary of the gaps between token events."""
        ...

    def answer(self) -> Answer:
        """What the stream has said so far."""
        ...


class Refusal(Protocol):
    """Why a request got no good answer, as far as a caller is told."""

    @property
    def status(self) -> int:
        """HTTP's."""
        ...

    @property
    def message(self) -> str:
        """What, where and what to do."""
        ...

    @property
    def error(self) -> str:
        """A short stable word, e.g. ``no_replica``."""
        ...


class Dialect(Protocol):
    """One API: a path, what is asked there, what is answered, and how errors are told."""

    @property
    def name(self) -> str:
        """As configuration and receipts call it."""
        ...

    @property
    def path(self) -> bytes:
        """Where it is asked, below the base URL that ends in /v1."""
        ...

    @property
    def key_fields(self) -> tuple[bytes, ...]:
        """Headers that may carry a caller's key, the first that is there counts; lower case."""
        ...

    @property
    def own_fields(self) -> frozenset[bytes]:
        """Headers that mean something to engines of this dialect alone, beside the key's: no others are sent them."""
        ...

    def read(self, body: bytes) -> Asked:
        """Read a request.

        Raises:
            BadInputError: what is wrong with it, and where.
        """
        ...

    def answer(self, body: bytes) -> Answer:
        """Read a whole answer. JSON of another shape is an answer of which nothing is known.

        Raises:
            UpstreamError: the body is not JSON.
        """
        ...

    def follow(self, max_text: int) -> Following:
        """Follow a streamed answer; ``max_text`` is how many characters of it are kept."""
        ...

    def only_usage(self, event_data: bytes) -> bool:
        """What `Following.feed` says of an event, for one that was fed to it already."""
        ...

    def ended(self, events: bytes) -> bool:
        """Whether these whole events, which nobody looks into, close with the mark that ends a stream."""
        ...

    def error(self, refusal: Refusal) -> bytes:
        """The body of an error, in the shape that this API's clients raise as their own."""
        ...

    def error_event(self, refusal: Refusal) -> bytes:
        """The same as the last event of a stream that had begun."""
        ...

    def models(self, names: list[str]) -> bytes:
        """The list of models that may be asked for."""
        ...

    def key_header(self, key: bytes) -> tuple[tuple[bytes, bytes], ...]:
        """The headers that an engine of this API takes ``key`` from, and others that it insists on."""
        ...
