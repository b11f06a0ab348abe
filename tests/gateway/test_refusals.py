"""Refusals are worded as the caller's own API words them, and read by its real client."""

import json

import anthropic
import openai
import pytest
from serving import QUESTION, Raw, chat, serving

from headway.core.config import Limits
from headway.gateway.fake import FakeEngine

ANTHROPIC = "anthropic-version: 2023-06-01\r\n"


def asked(method: str, path: str, extra: str = "", body: str = "") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{extra}content-length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def kind_of(answer: Raw) -> str:
    """Whose shape an error has."""
    said = json.loads(answer.body)
    if said.get("type") == "error" and {"type", "message"} <= said["error"].keys():
        return "anthropic"
    return "openai" if {"message", "type", "code"} <= said["error"].keys() else "neither"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (asked("GET", "/v1/nothing", ANTHROPIC), 404),
        (asked("DELETE", "/v1/models", ANTHROPIC), 405),
        (asked("GET", "/v1/models", f"{ANTHROPIC}origin: https://evil.example\r\n"), 403),
        (asked("GET", "/admin/nothing", ANTHROPIC), 404),
        (asked("POST", "/v1/messages", "", "{"), 400),
        (asked("POST", "/v1/messages/count_tokens", "", "{"), 400),
        (asked("POST", "/v1/messages", "", "x" * 200), 413),
        (asked("GET", "/v1/messages"), 405),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: gzip\r\n\r\n", 400),
    ],
)
async def test_anthropics_callers_are_told_in_its_shape(request_bytes: bytes, status: int) -> None:
    async with FakeEngine() as engine, serving(engine, limits=Limits(body_bytes=100)) as served:
        answer = await served.ask(request_bytes)
    assert (answer.status, kind_of(answer)) == (status, "anthropic")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (asked("GET", "/v1/nothing"), 404),
        (asked("DELETE", "/v1/models"), 405),
        (asked("POST", "/v1/responses", "", "{"), 400),
        (asked("POST", "/v1/embeddings", "", "x" * 200), 413),
        (asked("POST", "/v1/chat/completions", ANTHROPIC, "{"), 400),  # a path of OpenAI's, whoever calls it
        (chat(extra=f"x-much: {'x' * 2000}\r\n"), 431),
    ],
)
async def test_openais_callers_are_told_in_its_shape(request_bytes: bytes, status: int) -> None:
    async with FakeEngine() as engine, serving(engine, limits=Limits(body_bytes=100, header_bytes=1000)) as served:
        answer = await served.ask(request_bytes)
    assert (answer.status, kind_of(answer)) == (status, "openai")


async def test_both_real_clients_read_what_is_refused() -> None:
    async with FakeEngine() as engine, serving(engine, limits=Limits(body_bytes=100)) as served:
        root = served.url.removesuffix("/v1")
        async with anthropic.AsyncAnthropic(base_url=root, api_key="k", max_retries=0) as client:
            with pytest.raises(anthropic.RequestTooLargeError, match="limit of 100"):
                await client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "x" * 200}])
            with pytest.raises(anthropic.NotFoundError, match="There is no /v1/models/m here") as told:
                await client.models.retrieve("m")
            assert told.value.type == "not_found_error"
        async with served.client() as other:
            with pytest.raises(openai.APIStatusError, match="limit of 100"):
                await other.chat.completions.create(model="m", messages=[*QUESTION, *QUESTION])
