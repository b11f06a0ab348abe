"""What a fake engine answers: the reply that a script chose, and its bytes."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from headway.core.usage import EngineTimings, Usage
from headway.wire.openai import ToolCall, error_body

CREATED = 1_700_000_000
DONE = b"data: [DONE]\n\n"
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
Fault = Literal[
    "close_before_answer",  # the request is read, then the connection is closed without a byte
    "close_mid_header",
    "close_mid_stream",  # half of the answer, then closed in good order
    "reset_mid_stream",  # half of the answer, then RST
    "stall_before",  # nothing, until the client goes away
    "stall_mid_stream",  # half of the answer, then nothing until the client goes away
    "malformed_json",
    "malformed_sse",  # bytes that are no event stream
    "bad_chunk_framing",  # a chunk size that is no hexadecimal number
    "oversize_event",  # one event (or body) of `Reply.oversize` bytes
    "drop_done",  # a well-framed stream without its ``[DONE]``
    "error_event",  # half of the stream, then an error as an event
    "wrong_content_type",  # 200 and a web page
    "short_body",  # fewer bytes than Content-Length promised, then closed
    "not_http",
    "close_after_answer",  # a complete answer; then the kept-alive connection dies unannounced
    "framed_by_close",  # legal and rare: neither a length nor chunks, the body ends where the connection does
]


class Reply(Struct, frozen=True, kw_only=True):
    """What the engine answers to one request. Times in seconds, sizes in bytes."""

    content: str = ""
    chunks: tuple[str, ...] | None = None
    """The content as it is streamed; ``None``: ``content`` word by word."""
    reasoning: tuple[str, ...] = ()
    """Streamed before the content, as ``reasoning_content``."""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    """``None``: ``tool_calls`` or ``stop``, whichever fits."""
    logprob: float | None = None
    """Of each piece of the content; told where the request asks for ``logprobs``, as the protocol has it."""
    ttft: float = 0.0
    itl: float = 0.0
    gate: asyncio.Event | None = None
    """Nothing of the answer is sent before it is set."""
    usage: Usage | None = None
    """``None``: words of the messages, pieces of the answer."""
    report_usage: Literal["asked", "always", "never"] = "asked"
    """In a stream; ``asked`` is by ``stream_options.include_usage``, as the protocol has it."""
    timings: EngineTimings | None = None
    """Sent as llama.cpp does."""
    status: int = 200
    error: str = "scripted failure"
    """Message of an answer whose ``status`` is not 200."""
    headers: Mapping[str, str] = {}
    fault: Fault | None = None
    oversize: int = 1 << 20

    @property
    def pieces(self) -> tuple[str, ...]:
        """The content as it is streamed."""
        if self.chunks is not None:
            return self.chunks
        words = self.content.split(" ")
        return tuple(word if i == 0 else f" {word}" for i, word in enumerate(words)) if self.content else ()


def echo(body: dict[str, Any]) -> Reply:
    """The default script: repeats the last message's first words, so the same request gets the same answer."""
    messages = cast("list[dict[str, Any]]", body.get("messages") or [{}])
    return Reply(content=f"echo: {' '.join(str(messages[-1].get('content')).split()[:8])}")


def head(status: int, headers: Mapping[str, str], kind: str) -> bytes:
    """An HTTP/1.1 response header."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}\r\ncontent-type: {kind}\r\n{lines}\r\n".encode()


def failure(message: str, status: int = 400) -> bytes:
    """An error as the OpenAI API shapes it."""
    kind = "invalid_request_error" if status < 500 else "server_error"  # noqa: PLR2004 - HTTP's border
    return error_body(message, type=kind)


def _usage(reply: Reply, request: dict[str, Any]) -> dict[str, Any]:
    messages = cast("list[dict[str, Any]]", request.get("messages") or [])
    words = sum(len(str(message.get("content")).split()) for message in messages)
    usage = reply.usage or Usage(
        input_tokens=words, output_tokens=len(reply.reasoning) + len(reply.pieces) + len(reply.tool_calls), cache_read=0
    )
    out: dict[str, Any] = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    if usage.input_tokens is not None and usage.output_tokens is not None:
        out["total_tokens"] = usage.input_tokens + usage.output_tokens
    if usage.cache_read is not None:
        out["prompt_tokens_details"] = {"cached_tokens": usage.cache_read}
    if usage.reasoning is not None:
        out["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return {name: value for name, value in out.items() if value is not None}


def _timings(timings: EngineTimings) -> dict[str, Any]:
    return {
        "cache_n": timings.cached_tokens or 0,
        "prompt_n": timings.prefill_tokens,
        "prompt_ms": timings.prefill_seconds * 1e3,
        "predicted_n": timings.decode_tokens,
        "predicted_ms": timings.decode_seconds * 1e3,
    }


def _tool_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _finish(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _logprobs(reply: Reply, request: dict[str, Any], *pieces: str) -> dict[str, Any]:
    if reply.logprob is None or not request.get("logprobs"):
        return {}
    rest: dict[str, Any] = {"logprob": reply.logprob, "bytes": None, "top_logprobs": []}
    told = [{"token": piece, **rest} for piece in pieces]
    return {"logprobs": {"content": told, "refusal": None}}


def completion(reply: Reply, request: dict[str, Any]) -> bytes:
    """The answer that is not streamed."""
    content = None if reply.tool_calls and not reply.pieces else "".join(reply.pieces)
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if reply.reasoning:
        message["reasoning_content"] = "".join(reply.reasoning)
    if reply.tool_calls:
        message["tool_calls"] = [_tool_call(call) for call in reply.tool_calls]
    answer: dict[str, Any] = {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": CREATED,
        "model": request.get("model", "fake"),
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": _finish(reply),
                **_logprobs(reply, request, *reply.pieces),
            }
        ],
    }
    if reply.report_usage != "never":
        answer["usage"] = _usage(reply, request)
    if reply.timings is not None:
        answer["timings"] = _timings(reply.timings)
    return msgspec.json.encode(answer)


def broken_events(reply: Reply, request: dict[str, Any]) -> Iterator[tuple[float, bytes]]:
    """The events of `stream_events` with the reply's fault worked in, where it is one of the stream's content."""
    events = list(stream_events(reply, request))
    half = len(events) // 2
    before, after = events[:half], events[half:]
    match reply.fault:
        case "malformed_json":
            before.append((0.0, b'data: {"choices": [\n\n'))
        case "malformed_sse" | "wrong_content_type":
            before.append((0.0, b"<html>\x00\xff this is no event stream </html>\n\n"))
        case "oversize_event":
            before.append((0.0, b'data: {"pad": "' + b"x" * reply.oversize + b'"}\n\n'))
        case "error_event":
            after = [(0.0, b"data: " + failure(reply.error, 500) + b"\n\n")]
        case "drop_done":
            after = after[:-1]
        case _:
            pass
    return iter([*before, *after])


def broken_body(reply: Reply, request: dict[str, Any]) -> tuple[str, int, bytes]:
    """Content type, promised length and bytes of an answer that is not streamed, with the reply's fault worked in."""
    ok = reply.status == 200  # noqa: PLR2004 - OK
    body = completion(reply, request) if ok else failure(reply.error, reply.status)
    kind, length = "application/json", None
    match reply.fault:
        case "malformed_json" | "malformed_sse":
            body = b"{" + body
        case "oversize_event":
            body += b" " * reply.oversize
        case "wrong_content_type":
            kind, body = "text/html", b"<html>welcome</html>"
        case "short_body" | "close_mid_stream" | "reset_mid_stream" | "stall_mid_stream":
            body, length = body[: len(body) // 2], len(body)
        case _:
            pass
    return kind, len(body) if length is None else length, body


def stream_events(reply: Reply, request: dict[str, Any]) -> Iterator[tuple[float, bytes]]:
    """Pause before each event, and the event. The first token comes after ``ttft``, the others after ``itl`` each."""
    base = {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": CREATED}
    base["model"] = request.get("model", "fake")

    def event(delta: dict[str, Any], finish: str | None = None, **extra: Any) -> bytes:  # noqa: ANN401 - any JSON
        likely = _logprobs(reply, request, delta["content"]) if delta.get("content") else {}
        choices = [] if "usage" in extra else [{"index": 0, "delta": delta, "finish_reason": finish, **likely}]
        return b"data: " + msgspec.json.encode({**base, "choices": choices, **extra}) + b"\n\n"

    yield reply.ttft, event({"role": "assistant", "content": ""})
    deltas: list[dict[str, Any]] = [{"reasoning_content": piece} for piece in reply.reasoning]
    deltas += [{"content": piece} for piece in reply.pieces]
    for index, call in enumerate(reply.tool_calls):
        opening = _tool_call(ToolCall(call.id, call.name, ""))
        deltas.append({"tool_calls": [{"index": index, **opening}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": call.arguments}}]})
    for number, delta in enumerate(deltas):
        yield reply.itl if number else 0.0, event(delta)
    timings = {} if reply.timings is None else {"timings": _timings(reply.timings)}
    yield 0.0, event({}, _finish(reply), **timings)
    options = cast("dict[str, Any]", request.get("stream_options") or {})
    if reply.report_usage == "always" or (reply.report_usage == "asked" and options.get("include_usage")):
        yield 0.0, event({}, usage=_usage(reply, request))
    yield 0.0, DONE
