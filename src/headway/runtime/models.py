"""Models behind any OpenAI-compatible endpoint: what a call may cost at most, the call, and what it did cost."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
from msgspec import Struct, structs

from headway.core.clock import Clock
from headway.core.errors import BadInputError, MissingExtraError, NotDoneError, UpstreamError
from headway.core.money import MicroUsd, Price, cost
from headway.core.prompt import Part
from headway.core.span import ModelCall, ToolCallRef
from headway.core.usage import Usage
from headway.runtime.purse import Amount
from headway.trace.prices import with_own
from headway.trace.sources.digests import part
from headway.wire.openai import Answer, ToolCall, decode_answer
from headway.wire.openai_stream import AnswerStream

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Message = dict[str, Any]
"""A message as the OpenAI API has it."""
_BUSY: Final = frozenset({408, 409, 429, 503})
"""Refusals that say nothing against the request. Of other answers from 500 up nobody knows what was done, and paid."""
_UNREACHED: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
"""Errors of the client's connection, whichever library has it, before anything was sent."""
_SHOWN: Final = 300


class Question(Struct, frozen=True, kw_only=True):
    """What a model is asked."""

    model: str
    messages: Sequence[Message]
    tools: Sequence[Message] = ()
    max_tokens: int
    """Most tokens that the answer may have; what it may cost is reckoned with them."""
    options: Mapping[str, Any]
    """More fields of the request, e.g. ``temperature``."""

    @property
    def most_tokens(self) -> int:
        """No fewer than it and its answer can have: no token of a text is shorter than a byte."""
        return len(msgspec.json.encode([self.messages, self.tools])) + self.max_tokens


class Reply(Struct, frozen=True, kw_only=True):
    """What a model answered."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage
    model: str
    """Who answered, as the endpoint says; else who was asked."""
    ttft: float | None = None
    """Seconds from sending the question to the answer's first token; unknown where the answer came whole."""

    @property
    def message(self) -> Message:
        """As a message to go on from."""
        message: Message = {"role": "assistant", "content": self.text}
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        return message


class Models:
    """An OpenAI-compatible endpoint: a provider's, an engine's, or Headway's own gateway. An async context manager.

    Args:
        base_url: up to and including ``/v1``.
        api_key: sent as the bearer token; engines of one's own mostly want none.
        provider: by OpenTelemetry's names, for list prices of models that several sell.
        prices: one's own prices by the model's name, before the list's.
        timeout: seconds without a byte after which a call has failed.

    Raises:
        MissingExtraError: the extra ``runtime`` is not installed.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str = "none",
        provider: str | None = None,
        prices: Mapping[str, Price] | None = None,
        timeout: float = 600.0,
    ) -> None:
        self.base_url = base_url
        self.provider = provider
        self._price_of = with_own(prices or {})
        self._client = _client(base_url, api_key, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close its connections."""
        await self._client.close()

    def most(self, question: Question, now: float, *, priced: bool) -> Amount:
        """What asking it can take.

        Raises:
            BadInputError: ``priced``, and nobody knows the model's price.
        """
        usage = Usage(
            input_tokens=question.most_tokens - question.max_tokens,
            output_tokens=question.max_tokens,
            cache_read=0,
            cache_write=0,
        )
        call = ModelCall(model=question.model, provider=self.provider, usage=usage)
        price = self._price_of(call, now)
        if price is None and priced:
            raise BadInputError(
                f"The price of {question.model!r} is not known, so a budget in USD cannot hold its calls.",
                fix=f"Give it: Models({self.base_url!r}, prices={{{question.model!r}: Price(input=…, output=…)}}), in "
                "micro-USD per million tokens; 0 for an engine of your own.",
            )
        if price is None:
            return Amount(tokens=question.most_tokens, calls=1, unpriced=1)
        dearest = structs.replace(
            price, input=max(price.input, price.cache_write or 0), cache_read=None, cache_write=None
        )
        money = cost(usage, dearest) or MicroUsd(0)  # never unknown: all that the price asks for is told
        return Amount(money=money, tokens=question.most_tokens, calls=1)

    def cost(self, model: str, usage: Usage, at: float) -> MicroUsd | None:
        """What a call costs that uses so much; ``None``: its price is not known, or a count that it needs."""
        price = self._price_of(ModelCall(model=model, provider=self.provider, usage=usage), at)
        return None if price is None else cost(usage, price)

    def used(self, call: ModelCall, at: float, most: Amount) -> Amount:
        """What a call took; what its answer does not tell counts as the most that it can have taken."""
        reads, writes = call.usage.input_tokens, call.usage.output_tokens
        tokens = most.tokens if reads is None or writes is None else reads + writes
        if most.unpriced:
            return structs.replace(most, tokens=tokens)
        price = self._price_of(call, at)
        money = None if price is None else cost(call.usage, price)
        return structs.replace(most, tokens=tokens, money=most.money if money is None else money)

    def begun(self, question: Question, now: float, *, stream: bool, digests: bool) -> ModelCall:
        """The record of a call that is sent ``now``; with ``digests`` of its messages where somebody keeps it."""
        prompt = tuple(_part(message) for message in question.messages) if digests else None
        return ModelCall(
            model=question.model, provider=self.provider, stream=stream, sent=now, attempts=1, prompt=prompt
        )

    async def ask(
        self,
        question: Question,
        call: ModelCall,
        headers: Mapping[str, str],
        clock: Clock,
        say: Callable[[str], None] | None,
    ) -> tuple[Reply, ModelCall]:
        """Ask, and fill in the record; with ``say`` the answer is streamed to it as it is written.

        Raises:
            UpstreamError: the endpoint failed; asking again may help. `NotDoneError`: and it did nothing.
            BadInputError: it refused the request.
        """
        from openai import APIStatusError, OpenAIError  # noqa: PLC0415 - an optional package

        try:
            if say is None:
                answer = await self._whole(question, headers)
            else:
                answer, call = await self._streamed(question, call, headers, clock, say)
        except APIStatusError as error:
            status = error.status_code
            text = f"{question.model} at {self.base_url} answered {status}: {error.message[:_SHOWN]}"
            if status in _BUSY:
                raise NotDoneError(text) from error
            if status >= 500:  # noqa: PLR2004 - HTTP's border
                raise UpstreamError(text) from error
            raise BadInputError(text, fix="Mend the request, the key or the model's name.") from error
        except OpenAIError as error:
            reached = type(error.__cause__).__name__ not in _UNREACHED
            kind = UpstreamError if reached else NotDoneError
            raise kind(f"{question.model} at {self.base_url}: {error}") from error
        except UpstreamError as error:
            raise UpstreamError(f"{question.model} at {self.base_url}: {error.what}", fix=error.fix) from error
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise UpstreamError(f"{question.model} at {self.base_url} answered with no chat completion.") from error
        call = structs.replace(
            call,
            usage=answer.usage,
            engine=answer.engine,
            finish_reason=answer.finish_reason,
            tool_calls=tuple(ToolCallRef(made.id, made.name) for made in answer.tool_calls),
            answer=None if call.prompt is None else part("assistant", answer.content),
        )
        reply = Reply(
            text=answer.content,
            tool_calls=answer.tool_calls,
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            model=answer.model or question.model,
            ttft=None if call.first_token is None or call.sent is None else call.first_token - call.sent,
        )
        return reply, call

    async def _whole(self, question: Question, headers: Mapping[str, str]) -> Answer:
        ask: Any = self._client.chat.completions.with_raw_response.create
        response = await ask(**_body(question), extra_headers=dict(headers))
        return decode_answer(response.content)

    async def _streamed(
        self, question: Question, call: ModelCall, headers: Mapping[str, str], clock: Clock, say: Callable[[str], None]
    ) -> tuple[Answer, ModelCall]:
        followed = AnswerStream()
        stream = await self._client.chat.completions.create(
            **_body(question), stream=True, stream_options={"include_usage": True}, extra_headers=dict(headers)
        )
        async with stream:
            async for chunk in stream:
                followed.feed(chunk.to_json(indent=None).encode(), clock.now())
                for choice in chunk.choices:
                    if choice.index == 0 and choice.delta.content:
                        say(choice.delta.content)
        if followed.failed or not followed.complete:
            raise UpstreamError("The stream ended before the answer did.")
        timed = structs.replace(
            call,
            first_token=followed.first_token,
            first_visible=followed.first_visible,
            last_token=followed.last_token,
            itl=followed.itl(),
        )
        return followed.answer(), timed


def _client(base_url: str, api_key: str, timeout: float) -> "AsyncOpenAI":
    try:
        from openai import AsyncOpenAI  # noqa: PLC0415 - an optional package, whose import takes a second
    except ModuleNotFoundError as error:
        raise MissingExtraError("Calling models", "runtime") from error
    client = AsyncOpenAI(base_url=base_url, api_key=api_key, timeout=timeout, max_retries=0)
    _ = client.chat.completions  # imported when it is first asked for, which takes most of a second
    return client


def _body(question: Question) -> dict[str, Any]:
    tools = {"tools": list(question.tools)} if question.tools else {}
    return {
        "model": question.model,
        "messages": list(question.messages),
        "max_completion_tokens": question.max_tokens,
        **tools,
        **question.options,
    }


def texts(prompt: str | Sequence[Message]) -> list[str]:
    """The texts of a prompt's messages; what is no text is taken as JSON."""
    return [prompt] if isinstance(prompt, str) else [_text(message) for message in prompt]


def _part(message: Message) -> Part:
    return part(str(message.get("role", "user")), _text(message))


def _text(message: Message) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()
