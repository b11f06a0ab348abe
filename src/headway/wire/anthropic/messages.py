"""Anthropic's Messages API and its count of tokens as dialects."""

import re
from typing import Final

from headway.wire.anthropic.answer import read_answer
from headway.wire.anthropic.documents import error_body, error_event, models_document
from headway.wire.anthropic.request import MessagesRequest, read_count_request, read_request
from headway.wire.anthropic.stream import MessageStream
from headway.wire.dialect import Refusal
from headway.wire.openai import Answer

VERSION: Final = b"2023-06-01"
"""The API's only version; engines insist on being told it."""
_LAST: Final = re.compile(rb'data: ?\{"type": ?"message_stop"[^\n]*\}\s*$')
_LAST_BYTES: Final = 200


class AnthropicMessages:
    """POST /v1/messages."""

    name = "anthropic-messages"
    path = b"/messages"
    key_fields = (b"x-api-key", b"authorization")
    own_fields = frozenset({b"anthropic-version", b"anthropic-beta", b"anthropic-dangerous-direct-browser-access"})

    def read(self, body: bytes) -> MessagesRequest:
        """As `Dialect.read`."""
        return read_request(body)

    def answer(self, body: bytes) -> Answer:
        """As `Dialect.answer`."""
        return read_answer(body)

    def follow(self, max_text: int) -> MessageStream:
        """As `Dialect.follow`."""
        return MessageStream(max_text)

    def only_usage(self, event_data: bytes) -> bool:
        """Never: usage comes with events that tell more."""
        del event_data
        return False

    def ended(self, events: bytes) -> bool:
        """Whether ``message_stop`` is the last of these events."""
        return _LAST.search(events[-_LAST_BYTES:]) is not None

    def error(self, refusal: Refusal) -> bytes:
        """As `Dialect.error`."""
        return error_body(refusal)

    def error_event(self, refusal: Refusal) -> bytes:
        """As `Dialect.error_event`."""
        return error_event(refusal)

    def models(self, names: list[str]) -> bytes:
        """As `Dialect.models`."""
        return models_document(names)

    def key_header(self, key: bytes) -> tuple[tuple[bytes, bytes], ...]:
        """The key, and the version."""
        return (b"x-api-key", key), (b"anthropic-version", VERSION)


class AnthropicCountTokens(AnthropicMessages):
    """POST /v1/messages/count_tokens: no answer of a model, only ``input_tokens`` of what is asked."""

    name = "anthropic-count-tokens"
    path = b"/messages/count_tokens"

    def read(self, body: bytes) -> MessagesRequest:
        """As `Dialect.read`; ``max_tokens`` is not needed."""
        return read_count_request(body)
