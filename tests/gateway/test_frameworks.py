"""Agent frameworks' own clients at a real gateway: plain, streamed, and a tool called and answered.

They come with `requirements-clients.lock`; where they are not installed, these tests are skipped.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from serving import Served, serving

from headway.core.span import Span, ToolUse
from headway.gateway.fake import FakeEngine, Reply, ToolCall

ABSENT = "the clients are not installed: see `make clients`"
SAID = "It rains in Bonn."
CALL = ToolCall("call_1", "weather", '{"city":"Bonn"}')
ASK = "How is the weather in Bonn?"


def raining() -> FakeEngine:
    """Calls the tool as long as there is one and no result of it, else says what there is to say."""

    def script(body: dict[str, Any]) -> Reply:
        answered = any(message["role"] == "tool" for message in body["messages"])
        return Reply(tool_calls=(CALL,)) if body.get("tools") and not answered else Reply(content=SAID)

    return FakeEngine(script)


def weather(city: str) -> str:
    """How the weather is in a city."""
    return f"rain in {city}"


def required(name: str) -> Any:  # noqa: ANN401 - a package that the type checker need not have
    return pytest.importorskip(name, reason=ABSENT)


async def tool_and_answer(served: Served) -> None:
    """One task was recorded: a call that used the tool, and the call that had its result."""
    spans: list[Span] = await served.spans(calls=2)
    assert len({span.task for span in spans}) == 1
    assert [span.work.name for span in spans if isinstance(span.work, ToolUse)] == ["weather"]
    assert all(span.error is None for span in spans)


def result_in(request: dict[str, Any]) -> str:
    """What the engine was told that the tool said."""
    (result,) = [message for message in request["messages"] if message["role"] == "tool"]
    assert result["tool_call_id"] == "call_1"
    content = result["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def pydantic_model(served: Served, dialect: str, http: Any) -> Any:  # noqa: ANN401 - as above
    if dialect == "anthropic-messages":
        models, providers = required("pydantic_ai.models.anthropic"), required("pydantic_ai.providers.anthropic")
        url = served.url.removesuffix("/v1")
        return models.AnthropicModel(
            "m", provider=providers.AnthropicProvider(api_key="k", base_url=url, http_client=http)
        )
    models, providers = required("pydantic_ai.models.openai"), required("pydantic_ai.providers.openai")
    kind = models.OpenAIResponsesModel if dialect == "openai-responses" else models.OpenAIChatModel
    return kind("m", provider=providers.OpenAIProvider(base_url=served.url, api_key="k", http_client=http))


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic-messages"])
async def test_pydantic_ai(dialect: str) -> None:
    agents, httpx = required("pydantic_ai"), required("httpx2")
    async with raining() as engine, serving(engine) as served, httpx.AsyncClient(timeout=20) as http:
        model = pydantic_model(served, dialect, http)
        plain = agents.Agent(model)
        assert (await plain.run(ASK)).output == SAID
        async with plain.run_stream(ASK) as streamed:
            pieces = [piece async for piece in streamed.stream_text(delta=True, debounce_by=None)]
        assert "".join(pieces) == SAID
        assert len(pieces) > 1
    async with raining() as engine, serving(engine) as served, httpx.AsyncClient(timeout=20) as http:
        able = agents.Agent(pydantic_model(served, dialect, http), tools=[weather])
        assert (await able.run(ASK)).output == SAID
        await tool_and_answer(served)
        assert result_in(engine.requests[1]) == "rain in Bonn"


@asynccontextmanager
async def chat_model(served: Served, dialect: str) -> AsyncGenerator[Any]:
    """LangChain keeps its connections for the process's life, so they are closed here."""
    if dialect == "anthropic-messages":
        url = served.url.removesuffix("/v1")
        kind = required("langchain_anthropic").ChatAnthropic
        model = kind(model="m", base_url=url, api_key="k", max_tokens=50, max_retries=0)
        client = model._async_client
    else:
        kind, responses = required("langchain_openai").ChatOpenAI, dialect == "openai-responses"
        model = kind(model="m", base_url=served.url, api_key="k", max_retries=0, use_responses_api=responses)
        client = model.root_async_client
    try:
        yield model
    finally:
        await client.close()


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic-messages"])
async def test_langchains_chat_models(dialect: str) -> None:
    messages = required("langchain_core.messages")
    async with raining() as engine, serving(engine) as served, chat_model(served, dialect) as model:
        assert (await model.ainvoke(ASK)).text == SAID
        pieces = [piece.text async for piece in model.astream(ASK)]
        assert "".join(pieces) == SAID
        assert len(pieces) > 1
    async with raining() as engine, serving(engine) as served, chat_model(served, dialect) as model:
        able = model.bind_tools([weather])
        turns = [messages.HumanMessage(ASK), await able.ainvoke(ASK)]
        (call,) = turns[1].tool_calls
        assert (call["name"], call["args"]) == ("weather", {"city": "Bonn"})
        turns.append(messages.ToolMessage(weather(**call["args"]), tool_call_id=call["id"]))
        assert (await able.ainvoke(turns)).text == SAID
        await tool_and_answer(served)
        assert result_in(engine.requests[1]) == "rain in Bonn"


@asynccontextmanager
async def asking_litellm(served: Served, dialect: str) -> AsyncGenerator[Any]:
    """LiteLLM's asynchronous completion, set to the gateway; it keeps its connections, so they are closed here."""
    litellm = required("litellm")
    if dialect == "anthropic-messages":
        model, url = "anthropic/m", served.url.removesuffix("/v1")
    else:
        model, url = "openai/m", served.url
    try:
        yield partial(litellm.acompletion, model=model, api_base=url, api_key="k", num_retries=0, timeout=20)
    finally:
        kept = litellm.in_memory_llm_clients_cache
        for client in list(kept.cache_dict.values()):  # its own closing, next, passes over the openai package's clients
            if hasattr(client, "close"):
                await client.close()
        await litellm.close_litellm_async_clients()
        kept.flush_cache()


@pytest.mark.filterwarnings("ignore:Items? .*ReadOnly:UserWarning")  # pydantic's, at litellm's import
@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic-messages"])
async def test_litellm(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import asks a host on the internet
    tool = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
    tools: list[Any] = [{"type": "function", "function": tool}]
    question: list[Any] = [{"role": "user", "content": ASK}]
    async with raining() as engine, serving(engine) as served, asking_litellm(served, dialect) as ask:
        answer = await ask(messages=question)
        assert answer.choices[0].message.content == SAID
        events = await ask(messages=question, stream=True)
        pieces = [text async for event in events if (text := event.choices[0].delta.content)]
        assert "".join(pieces) == SAID
        assert len(pieces) > 1
    async with raining() as engine, serving(engine) as served, asking_litellm(served, dialect) as ask:
        first = (await ask(messages=question, tools=tools)).choices[0].message
        (call,) = first.tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Bonn"})
        result = {"role": "tool", "tool_call_id": call.id, "content": "rain in Bonn"}
        second = await ask(messages=[*question, first.model_dump(), result], tools=tools)
        assert second.choices[0].message.content == SAID
        await tool_and_answer(served)
        assert result_in(engine.requests[1]) == "rain in Bonn"
