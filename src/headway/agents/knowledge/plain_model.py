"""A model through the plain OpenAI client, as any agent asks it: a base URL and a key, and nothing of ours."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from headway.agents.knowledge.model import Heard, Message, RefusedError
from headway.core.errors import UpstreamError
from headway.core.usage import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

SAMPLING: Final = {"temperature": 0.0, "frequency_penalty": 0.5}
"""The likeliest answer each time, with a push against repeating itself, which is what small models fall into."""

REFUSALS: Final = frozenset({400, 422})
NONSENSE: Final = (json.JSONDecodeError, UnicodeDecodeError)
"""What the client lets through when an endpoint answers with something else than JSON."""
SENT_AGAIN: Final = {"x-stainless-retry-count": "1"}
"""What the client itself says of a call that it sends again, as it does until an answer begins; then it leaves that to
its user."""


class BrokenOffError(UpstreamError):
    """The answer had begun to stream, and ended before it was complete."""


class PlainModel:
    """A model at the base URL of a client.

    Args:
        client: carries the base URL and the key, and nothing else of ours: no header, no extension of the protocol.
        name: the model's name at that URL.
        on_broken: told when a streamed answer broke off; it is then asked for once more, and handed on from its
            beginning. ``None``: it is not.
    """

    def __init__(
        self, client: "AsyncOpenAI", name: str, on_broken: Callable[[BrokenOffError], None] | None = None
    ) -> None:
        self._client = client
        self._name = name
        self._on_broken = on_broken

    async def whole(
        self, messages: Sequence[Message], *, max_tokens: int, response_format: Mapping[str, Any] | None = None
    ) -> Heard:
        """The next message; see `Model.whole`."""
        from openai import OpenAIError  # noqa: PLC0415 - an optional package

        extra = {"response_format": response_format} if response_format else {}
        try:
            answer: ChatCompletion = await self._create(messages, max_tokens, **extra)
        except (OpenAIError, *NONSENSE) as error:
            raise self._failure(error) from error
        if not getattr(answer, "choices", None):  # the client hands on a web page as a string
            raise self._failure(ValueError("it answered with something that is no chat completion"))
        choice = answer.choices[0]
        return Heard(
            text=choice.message.content or "",
            usage=_usage(answer.usage),
            finish_reason=choice.finish_reason,
            ttft=None,
        )

    async def streamed(self, messages: Sequence[Message], *, max_tokens: int, on_text: Callable[[str], None]) -> Heard:
        """The next message as it comes; see `Model.streamed`.

        Raises:
            BrokenOffError: the stream ended before the answer did, and so did the second one where there is one.
        """
        try:
            return await self._stream(messages, max_tokens, on_text, {})
        except BrokenOffError as error:
            if self._on_broken is None:
                raise
            self._on_broken(error)
        return await self._stream(messages, max_tokens, on_text, SENT_AGAIN)

    async def _stream(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        on_text: Callable[[str], None],
        headers: Mapping[str, str],
    ) -> Heard:
        from httpx2 import HTTPError  # noqa: PLC0415 - comes with the optional package openai
        from openai import OpenAIError  # noqa: PLC0415 - an optional package

        started, first, usage, finish = time.perf_counter(), None, None, None
        begun = False
        parts: list[str] = []
        try:
            stream: AsyncStream[ChatCompletionChunk] = await self._create(
                messages, max_tokens, stream=True, stream_options={"include_usage": True}, extra_headers=headers
            )
            begun = True
            async with stream:
                async for chunk in stream:
                    usage = chunk.usage or usage
                    for choice in (chunk.choices or ())[:1]:
                        finish = choice.finish_reason or finish
                        if choice.delta.content:
                            first = first or time.perf_counter()
                            parts.append(choice.delta.content)
                            on_text(choice.delta.content)
        except (OpenAIError, HTTPError, *NONSENSE) as error:
            raise self._failure(error, begun=begun) from error
        if finish is None:
            raise self._failure(ValueError("the stream ended before the answer did"), begun=True)
        return Heard(
            text="".join(parts),
            usage=_usage(usage),
            finish_reason=finish,
            ttft=None if first is None else first - started,
        )

    async def _create(self, messages: Sequence[Message], max_tokens: int, **extra: object) -> Any:  # noqa: ANN401 - the client's overloads want literals
        create = cast("Callable[..., Any]", self._client.chat.completions.create)
        return await create(model=self._name, messages=messages, max_tokens=max_tokens, **SAMPLING, **extra)

    def _failure(self, error: Exception, *, begun: bool = False) -> UpstreamError:
        reason = str(getattr(error, "message", "") or error) or type(error).__name__
        refused = getattr(error, "status_code", None) in REFUSALS
        kind = RefusedError if refused else BrokenOffError if begun else UpstreamError
        return kind(
            f"The model {self._name!r} at {self._client.base_url} did not answer: {reason.rstrip('.')}.",
            fix="Check that the URL is right, that it is running, and that it serves this model.",
        )


def _usage(usage: "CompletionUsage | None") -> Usage:
    if usage is None:
        return Usage()
    details = usage.prompt_tokens_details
    return Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read=details.cached_tokens if details else None,
    )
