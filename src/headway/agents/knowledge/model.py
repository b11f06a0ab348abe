"""What the agent asks of a model, whoever carries it there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from headway.core.errors import UpstreamError
from headway.core.usage import Usage

Message = dict[str, Any]


class Heard(Struct, frozen=True, kw_only=True):
    """What a model answered."""

    text: str
    usage: Usage
    finish_reason: str | None
    """``length``: it was cut off."""
    ttft: float | None
    """Seconds from the request to the first text; unknown where the answer came whole."""


class RefusedError(UpstreamError):
    """The endpoint understood the request and will not answer it (HTTP 400 or 422)."""


class Model(Protocol):
    """A model that can be asked."""

    async def whole(
        self, messages: Sequence[Message], *, max_tokens: int, response_format: Mapping[str, Any] | None = None
    ) -> Heard:
        """The next message.

        Raises:
            RefusedError: the endpoint will not answer this, perhaps for its ``response_format``.
            UpstreamError: the endpoint cannot be reached, or broke the protocol.
        """
        ...

    async def streamed(self, messages: Sequence[Message], *, max_tokens: int, on_text: Callable[[str], None]) -> Heard:
        """The next message, its text handed on piece by piece as it arrives.

        Raises:
            UpstreamError: as `whole`, or the stream ended before the answer did.
        """
        ...
