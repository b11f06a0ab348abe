"""What is asked, in no dialect: the ground that translations meet on."""

from typing import Literal

from msgspec import Raw, Struct

from headway.wire.openai import NULL
from headway.wire.translate.namespaces import Grouped


class Text(Struct, frozen=True, gc=False):
    """Words."""

    text: str


class Image(Struct, frozen=True, gc=False):
    """A picture: where it is, or its bytes in base64 and their media type."""

    url: str = ""
    data: str = ""
    media_type: str = ""
    detail: str | None = None
    """How closely OpenAI's models are to look; no other dialect has it."""


class File(Struct, frozen=True, gc=False):
    """A document: its bytes in base64 and their media type."""

    data: str
    media_type: str
    name: str | None = None


class Thought(Struct, frozen=True, gc=False):
    """What a model thought. One with a signature can only be shown to the API that signed it."""

    text: str = ""
    signature: str = ""
    hidden: str = ""
    """Thought that the API encrypted."""


class Call(Struct, frozen=True, gc=False):
    """A tool call; ``arguments`` is JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


class Result(Struct, frozen=True):
    """What a tool returned."""

    call_id: str
    parts: "tuple[Text | Image | File, ...]"
    failed: bool = False


Part = Text | Image | File | Thought | Call | Result
Role = Literal["system", "user", "assistant"]


class Message(Struct, frozen=True):
    """A turn. Tools' results are the user's, in a turn of their own or before what the user says."""

    role: Role
    parts: tuple[Part, ...]


class Tool(Struct, frozen=True):
    """A function that the caller can run; ``schema`` is the JSON schema of its arguments, as JSON text."""

    name: str
    description: str | None = None
    schema: Raw = NULL
    strict: bool | None = None


class Choice(Struct, frozen=True):
    """Which tools the model is to call: as it likes, none, at least one, or the one with this name."""

    mode: Literal["auto", "none", "any", "one"]
    name: str = ""


class Form(Struct, frozen=True):
    """What the answer's text has to be: JSON, of a schema if there is one."""

    field: str
    """What the caller's dialect calls this."""
    schema: Raw = NULL
    name: str = "answer"
    strict: bool | None = None


class Conversation(Struct, frozen=True, kw_only=True):
    """A request."""

    model: str
    messages: tuple[Message, ...]
    stream: bool = False
    tools: tuple[Tool, ...] = ()
    choice: Choice | None = None
    parallel: bool | None = None
    """Whether one answer may hold several tool calls."""
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    form: Form | None = None
    effort: str | None = None
    """How much to think, in OpenAI's words: none, minimal, low, medium, high, xhigh, max."""
    verbosity: str | None = None
    user: str | None = None
    cache_key: str | None = None
    wants_usage: bool = True
    """Whether a stream is to tell its usage."""
    free_tools: frozenset[str] = frozenset()
    """Tools of the Responses API that take free text: written as functions of one text, and told back as they were."""
    grouped: Grouped = {}
    """Tools of the Responses API that belong to a group: written under longer names, and told back as they were."""
    echo: dict[str, Raw] = {}
    """What an answer of the Responses API repeats of its request."""
