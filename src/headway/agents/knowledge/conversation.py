"""One conversation with a model: messages that only ever grow, so that every call shares the prefix of the last."""

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct

from headway.core.errors import UpstreamError
from headway.core.usage import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

Message = dict[str, Any]

SAMPLING: Final = {"temperature": 0.0, "frequency_penalty": 0.5}
"""The likeliest answer each time, with a push against repeating itself, which is what small models fall into."""

REFUSALS: Final = frozenset({400, 422})
NONSENSE: Final = (json.JSONDecodeError, UnicodeDecodeError)
"""What the client lets through when an endpoint answers with something else than JSON."""
SENT_AGAIN: Final = {"x-stainless-retry-count": "1"}
"""What the client itself says of a call that it sends again, as it does until an answer begins; then it leaves that to
its user."""


class CallRecord(Struct, frozen=True, kw_only=True):
    """One call to the model as the agent saw it; seconds by its own clock."""

    step: str
    seconds: float
    ttft: float | None
    """From the request to the first text; unknown where the answer came whole."""
    usage: Usage
    finish_reason: str | None


class RefusedError(UpstreamError):
    """The endpoint understood the request and will not answer it (HTTP 400 or 422)."""


class BrokenOffError(UpstreamError):
    """The answer had begun to stream, and ended before it was complete."""


class Conversation:
    """Keeps the messages and an account of the calls.

    Args:
        client: carries the base URL and the key, and nothing else of ours: no header, no extension of the protocol.
        model: the model's name at that URL.
        messages: the opening, up to and including the first user message.
        on_broken: told when a streamed answer broke off; it is then asked for once more. ``None``: it is not.
    """

    def __init__(
        self,
        client: "AsyncOpenAI",
        model: str,
        messages: list[Message],
        on_broken: Callable[[BrokenOffError], None] | None = None,
    ) -> None:
        self._client = client
        self._model = model
        self._on_broken = on_broken
        self.messages = messages
        self.calls: list[CallRecord] = []

    def used(self, tool: str, about: str, result: str) -> None:
        """Put a step that the agent took on its own into the history, as a tool call and its result.

        So the history reads as that of any agent with tools, and a server that follows conversations sees the task go
        on: a new user message would look like a person's next question.
        """
        call = f"step_{sum(message['role'] == 'tool' for message in self.messages) + 1}"
        function = {"name": tool, "arguments": json.dumps({"about": about}, ensure_ascii=False)}
        self.messages += [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": call, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call, "content": result},
        ]

    async def reply(self, step: str, *, max_tokens: int, response_format: Mapping[str, Any] | None = None) -> str:
        """Ask for the next message, whole; it joins the conversation.

        Raises:
            RefusedError: the endpoint will not answer this, perhaps for its ``response_format``; nothing has changed.
            UpstreamError: the endpoint cannot be reached, or broke the protocol.
        """
        from openai import OpenAIError  # noqa: PLC0415 - an optional package

        started = time.perf_counter()
        extra = {"response_format": response_format} if response_format else {}
        try:
            answer: ChatCompletion = await self._create(max_tokens, **extra)
        except (OpenAIError, *NONSENSE) as error:
            raise self._failure(error) from error
        if not getattr(answer, "choices", None):  # the client hands on a web page as a string
            raise self._failure(ValueError("it answered with something that is no chat completion"))
        choice = answer.choices[0]
        text = choice.message.content or ""
        self._keep(step, text, started, None, answer.usage, choice.finish_reason)
        return text

    async def stream(self, step: str, *, max_tokens: int, on_text: Callable[[str], None]) -> str:
        """Ask for the next message and hand its text on piece by piece as it arrives; it joins the conversation.

        Raises:
            UpstreamError: as `reply`.
            BrokenOffError: the stream ended before the answer did, and so did the second one where there is one.
        """
        try:
            return await self._stream(step, max_tokens, on_text, {})
        except BrokenOffError as error:
            if self._on_broken is None:
                raise
            self._on_broken(error)
        return await self._stream(step, max_tokens, on_text, SENT_AGAIN)

    async def _stream(
        self, step: str, max_tokens: int, on_text: Callable[[str], None], headers: Mapping[str, str]
    ) -> str:
        from httpx2 import HTTPError  # noqa: PLC0415 - comes with the optional package openai
        from openai import OpenAIError  # noqa: PLC0415 - an optional package

        started, first, usage, finish = time.perf_counter(), None, None, None
        begun = False
        parts: list[str] = []
        try:
            stream: AsyncStream[ChatCompletionChunk] = await self._create(
                max_tokens, stream=True, stream_options={"include_usage": True}, extra_headers=headers
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
        text = "".join(parts)
        self._keep(step, text, started, first, usage, finish)
        return text

    async def _create(self, max_tokens: int, **extra: object) -> Any:  # noqa: ANN401 - the client's overloads want literals
        create = cast("Callable[..., Any]", self._client.chat.completions.create)
        return await create(model=self._model, messages=self.messages, max_tokens=max_tokens, **SAMPLING, **extra)

    def _keep(
        self,
        step: str,
        text: str,
        started: float,
        first: float | None,
        usage: "CompletionUsage | None",
        finish: str | None,
    ) -> None:
        self.messages.append({"role": "assistant", "content": text})
        self.calls.append(
            CallRecord(
                step=step,
                seconds=time.perf_counter() - started,
                ttft=None if first is None else first - started,
                usage=_usage(usage),
                finish_reason=finish,
            )
        )

    def _failure(self, error: Exception, *, begun: bool = False) -> UpstreamError:
        reason = str(getattr(error, "message", "") or error) or type(error).__name__
        refused = getattr(error, "status_code", None) in REFUSALS
        kind = RefusedError if refused else BrokenOffError if begun else UpstreamError
        return kind(
            f"The model {self._model!r} at {self._client.base_url} did not answer: {reason.rstrip('.')}.",
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
