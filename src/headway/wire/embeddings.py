"""OpenAI's embeddings: texts or tokens in, vectors out. What is asked and answered passes as it is, base64 or not."""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from headway.core.errors import BadInputError, UpstreamError
from headway.core.usage import Usage
from headway.wire.bad_request import decoded
from headway.wire.openai import NULL, Answer
from headway.wire.openai_chat import OpenAIErrors
from headway.wire.openai_stream import AnswerStream

_SHAPE: Final = "Send `model` (string) and `input`: a text, an array of texts, an array of tokens, or several of those."
_FIX: Final = "Check that the upstream URL is an OpenAI-compatible /v1 endpoint."


class EmbeddingsRequest(Struct, frozen=True, kw_only=True):
    """What Headway reads of a request; ``input`` stays JSON text, for it can be long and is the engine's to judge."""

    model: str
    input: Raw

    @property
    def stream(self) -> bool:
        """The API has no streams."""
        return False

    @property
    def messages(self) -> Raw:
        """There is no conversation."""
        return NULL

    @property
    def tools(self) -> Raw:
        """Nor tools."""
        return NULL

    @property
    def session(self) -> None:
        """Nothing in the body tells one."""
        return

    @property
    def output_limit(self) -> int:
        """Vectors are no tokens."""
        return 0

    @property
    def choices(self) -> int:
        """The API gives one answer."""
        return 1

    def asking_for_usage(self, body: bytes) -> None:
        """It is told unasked."""
        del body


class _Usage(Struct):
    prompt_tokens: int | None = None


class _Vectors(Struct):
    usage: _Usage | None = None
    model: str | None = None


_decoder: Final = msgspec.json.Decoder(EmbeddingsRequest)
_answer_decoder: Final = msgspec.json.Decoder(_Vectors)


def read_request(body: bytes) -> EmbeddingsRequest:
    """Read a request to /v1/embeddings.

    Raises:
        BadInputError: the body is not JSON, has no ``model``, or its ``input`` is neither text nor array, or is empty.
    """
    request = decoded(_decoder, body, fix=_SHAPE)
    given = bytes(request.input)
    if given[:1] not in {b'"', b"["}:
        raise BadInputError("The request's `input` is neither a text nor an array.", fix=_SHAPE)
    if given == b'""' or given[1:-1].isspace() or given == b"[]":
        raise BadInputError("The request's `input` is empty.", fix=_SHAPE)
    return request


def read_answer(body: bytes) -> Answer:
    """What an answer cost. JSON of another shape is an answer of which nothing is known.

    Raises:
        UpstreamError: the body is not JSON.
    """
    try:
        vectors = _answer_decoder.decode(body)
    except msgspec.ValidationError:
        return Answer()
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UpstreamError(
            f"The engine's answer of {len(body)} bytes is not valid JSON: {error}.", fix=_FIX
        ) from error
    read = None if vectors.usage is None else vectors.usage.prompt_tokens
    written = None if read is None else 0
    return Answer(usage=Usage(input_tokens=read, output_tokens=written), model=vectors.model)


class OpenAIEmbeddings(OpenAIErrors):
    """POST /v1/embeddings."""

    name = "openai-embeddings"
    path = b"/embeddings"

    def read(self, body: bytes) -> EmbeddingsRequest:
        """As `Dialect.read`."""
        return read_request(body)

    def answer(self, body: bytes) -> Answer:
        """As `Dialect.answer`."""
        return read_answer(body)

    def follow(self, max_text: int) -> AnswerStream:
        """The API has no streams; events of an engine that sends some all the same are followed as chat's are."""
        return AnswerStream(max_text)

    def only_usage(self, event_data: bytes) -> bool:
        """Never: there are no streams."""
        del event_data
        return False

    def ended(self, events: bytes) -> bool:
        """Never, as above."""
        del events
        return False
