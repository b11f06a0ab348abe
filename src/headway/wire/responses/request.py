"""Requests to OpenAI's Responses API, as far as Headway acts on them. The body is passed on as it came."""

from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from headway.core.errors import BadInputError
from headway.wire.bad_request import check_tools, decoded
from headway.wire.crowded import crowded
from headway.wire.openai import NULL
from headway.wire.responses.items import as_messages

_SHAPE: Final = "Send a Responses object with `model` (string) and `input` (a text or an array of items)."


class ResponsesRequest(Struct, frozen=True, kw_only=True):
    """What Headway reads of a request."""

    model: str
    input: Raw = NULL
    instructions: str | None = None
    previous_response_id: str | None = None
    """The answer that this goes on from; the engine keeps what was said until then."""
    stream: bool | None = None
    tools: Raw = NULL
    prompt_cache_key: str | None = None
    metadata: Raw = NULL
    conversation: Raw = NULL
    output_limit: int | None = field(name="max_output_tokens", default=None)

    @property
    def messages(self) -> Raw:
        """The input as messages of a chat, made anew at each reading, without what was said before.

        Input of too many items is given as it is: whoever reads messages passes it over.
        """
        if crowded(bytes(self.input)):
            return self.input
        return as_messages(self.instructions, self.input)

    @property
    def choices(self) -> int:
        """The API gives one answer."""
        return 1

    @property
    def session(self) -> str | None:
        """``conversation``, else ``prompt_cache_key``, else ``metadata.session_id``."""
        return _conversation(self.conversation) or self.prompt_cache_key or _session(self.metadata) or None

    def asking_for_usage(self, body: bytes) -> None:
        """A stream tells its usage unasked."""
        del body


class _Conversation(Struct):
    id: str | None = None


class _Metadata(Struct):
    session_id: str | None = None


_decoder: Final = msgspec.json.Decoder(ResponsesRequest)


def read_request(body: bytes) -> ResponsesRequest:
    """Read a request to /v1/responses.

    Raises:
        BadInputError: the body is not JSON, a field that Headway needs is missing or of the wrong type, or ``input``
            is neither text nor items.
    """
    request = decoded(_decoder, body, fix=_SHAPE)
    if bytes(request.input)[:1] not in {b'"', b"[", b"n"}:
        raise BadInputError("The request's `input` is neither a text nor an array of items.", fix=_SHAPE)
    check_tools(request.tools)
    return request


def _conversation(given: Raw) -> str | None:
    try:
        named = msgspec.json.decode(given, type=str | _Conversation | None)
    except (msgspec.DecodeError, RecursionError):
        return None
    return named.id if isinstance(named, _Conversation) else named


def _session(metadata: Raw) -> str | None:
    try:
        told = msgspec.json.decode(metadata, type=_Metadata | None)
    except (msgspec.DecodeError, RecursionError):
        return None
    return None if told is None else told.session_id
