"""OpenAI's chat completions as a dialect: a name for what `openai` and `openai_stream` do."""

from typing import Final

import msgspec

from headway.wire.dialect import Refusal
from headway.wire.openai import Answer, ChatRequest, decode_answer, decode_request, error_body
from headway.wire.openai_stream import AnswerStream, only_usage

_DONE: Final = b"data: [DONE]\n\n"
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500


class OpenAIErrors:
    """What OpenAI's APIs have in common: errors, the list of models, how a key is sent."""

    key_fields = (b"authorization",)
    own_fields = frozenset({b"openai-organization", b"openai-project", b"openai-beta"})

    def error(self, refusal: Refusal) -> bytes:
        """As `Dialect.error`."""
        if refusal.status >= _SERVER_ERROR:
            kind = "server_error"
        else:
            kind = "rate_limit_error" if refusal.status == _TOO_MANY else "invalid_request_error"
        return error_body(refusal.message, type=kind, code=refusal.error)

    def error_event(self, refusal: Refusal) -> bytes:
        """As `Dialect.error_event`."""
        return b"data: %b\n\n" % self.error(refusal)

    def models(self, names: list[str]) -> bytes:
        """As `Dialect.models`."""
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "headway"} for name in names]
        return msgspec.json.encode({"object": "list", "data": data})

    def key_header(self, key: bytes) -> tuple[tuple[bytes, bytes], ...]:
        """As a bearer token."""
        return ((b"authorization", b"Bearer " + key),)


class OpenAIChat(OpenAIErrors):
    """POST /v1/chat/completions."""

    name = "openai-chat"
    path = b"/chat/completions"

    def read(self, body: bytes) -> ChatRequest:
        """As `Dialect.read`."""
        return decode_request(body)

    def answer(self, body: bytes) -> Answer:
        """As `Dialect.answer`."""
        return decode_answer(body)

    def follow(self, max_text: int) -> AnswerStream:
        """As `Dialect.follow`."""
        return AnswerStream(max_text)

    def only_usage(self, event_data: bytes) -> bool:
        """As `Dialect.only_usage`."""
        return only_usage(event_data)

    def ended(self, events: bytes) -> bool:
        """Whether ``[DONE]`` is the last of these events."""
        return events.endswith(_DONE)
