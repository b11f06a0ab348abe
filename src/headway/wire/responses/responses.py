"""OpenAI's Responses API as a dialect."""

import re
from typing import Final

import msgspec

from headway.wire.dialect import Refusal
from headway.wire.openai import Answer
from headway.wire.openai_chat import OpenAIErrors
from headway.wire.responses.answer import read_answer
from headway.wire.responses.request import ResponsesRequest, read_request
from headway.wire.responses.stream import ResponseStream

_LAST: Final = re.compile(rb"event: ?response\.(?:completed|incomplete|failed)\r?\ndata:[^\r\n]*\s*$")


class OpenAIResponses(OpenAIErrors):
    """POST /v1/responses."""

    name = "openai-responses"
    path = b"/responses"

    def read(self, body: bytes) -> ResponsesRequest:
        """As `Dialect.read`."""
        return read_request(body)

    def answer(self, body: bytes) -> Answer:
        """As `Dialect.answer`."""
        return read_answer(body)

    def follow(self, max_text: int) -> ResponseStream:
        """As `Dialect.follow`."""
        return ResponseStream(max_text)

    def only_usage(self, event_data: bytes) -> bool:
        """Never: usage comes with events that tell more."""
        del event_data
        return False

    def ended(self, events: bytes) -> bool:
        """Whether the last of these events ends the answer."""
        start = events.rfind(b"\nevent:") + 1
        return _LAST.match(events, start) is not None

    def error_event(self, refusal: Refusal) -> bytes:
        """An error as this API's streams have it, which is not the shape of its bodies.

        How many events went before is not known here; clients do not check the number.
        """
        event = {
            "type": "error",
            "code": refusal.error,
            "message": refusal.message,
            "param": None,
            "sequence_number": 0,
        }
        return b"event: error\ndata: %b\n\n" % msgspec.json.encode(event)
