"""One span read: its canonical form, and what the rest of its trace must know that a canonical span does not say."""

from typing import Final

from msgspec import Struct

from headway.core.span import Span
from headway.trace.sources.fields.messages import Parts
from headway.trace.sources.fields.scalars import count, number, text
from headway.trace.sources.otel.attributes import OLD_CALLS, STREAM_ENDS, Facts, facts
from headway.trace.sources.otel.exchange import SILENT, asked, exchange
from headway.trace.sources.otel.genai import interpret_as, left_unknown, role_of
from headway.trace.sources.otel.operations import Role
from headway.trace.sources.session.draft import first_words
from headway.wire.otel import RawSpan

_MODEL_PATHS: Final = (
    "/completions",
    "/messages",
    "/responses",
    ":generateContent",
    ":streamGenerateContent",
    "/converse",
    "/converse-stream",
    "/invoke",
    "/invoke-with-response-stream",
    "/api/chat",
    "/api/generate",
)
"""How the paths end under which models are asked."""


class Sending(Struct, frozen=True, tag=True, gc=False):
    """A request over HTTP, maybe one of a call's attempts."""

    before: int | None
    """How often it had been sent before, where it says so."""


class StreamEnd(Struct, frozen=True, tag=True, gc=False):
    """A record of the end of a stream, whose own span ended when it began (Logfire)."""

    seconds: float
    """How long the stream took: it began that long before this record."""


class Nameless(Struct, frozen=True, tag=True, gc=False):
    """A piece of work that says nothing of what it is."""

    scope: str


class OldCall(Struct, frozen=True, tag=True, gc=False):
    """A call in conventions that had spans neither for agents nor for tools (OTel until 1.27)."""

    scope: str


class Message(Struct, frozen=True, tag=True, gc=False):
    """One end of a queue."""

    sent: bool


Trait = Sending | StreamEnd | Nameless | OldCall | Message


class Reading(Struct, frozen=True, array_like=True, gc=False):
    """One span read."""

    span: Span
    trait: Trait | None = None
    asked: str | None = None
    """The first words of what the user asked, on one line."""
    rescaled: bool = False
    """Whether its times were written in another unit than the format's."""
    left_unknown: tuple[str, ...] = ()
    """What it gives that cannot be what it is meant for, as a token count below 0: a sentence each."""


class Reader:
    """Reads spans; one for a whole import, so that each message is digested once."""

    def __init__(self) -> None:
        self._parts = Parts()

    def read(self, raw: RawSpan) -> Reading:
        """One span. Never raises: what makes no sense is left unknown."""
        said = facts(raw.attributes)
        role = role_of(raw, said)
        exchanged = exchange(raw, said) if role == "call" else SILENT
        words = text(said["asked"]) if "asked" in said else None if exchanged is SILENT else asked(exchanged)
        unknown = left_unknown(said) if role == "call" else ()
        span = interpret_as(role, raw, said, self._parts, exchanged)
        title = first_words(words) if words else None
        return Reading(span, _trait(raw, said, role), title, left_unknown=unknown)


def _trait(raw: RawSpan, said: Facts, role: Role) -> Trait | None:
    if "duration" in said and raw.scope.startswith(STREAM_ENDS):
        seconds = number(said["duration"])
        return None if seconds is None else StreamEnd(seconds)
    if role == "call":
        return OldCall(raw.scope) if OLD_CALLS in raw.attributes and "operation" not in said else None
    if raw.kind == "client":
        return _sending(raw, said)
    if raw.kind in {"producer", "consumer"}:
        return Message(sent=raw.kind == "producer")
    return Nameless(raw.scope) if role == "step" and not raw.attributes and raw.kind in {None, "internal"} else None


def _sending(raw: RawSpan, said: Facts) -> Sending | None:
    method = text(said.get("method")) or raw.name.partition(" ")[0]
    url = text(said.get("url"))
    asks = method == "POST" and (url is None or url.partition("?")[0].endswith(_MODEL_PATHS))
    return Sending(count(said.get("resend"))) if asks else None
