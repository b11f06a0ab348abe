"""Everything an engine can do wrong: a clear error for the client, a span that names it, nothing left behind."""

import json
import re

import openai
import pytest
from openai.types.chat import ChatCompletionChunk
from serving import QUESTION, Served, chat, raw_engine, serving, streamed

from headway.core.config import Limits
from headway.core.fleet import Replica, ReplicaId
from headway.core.span import ModelCall
from headway.gateway.fake import FakeEngine, Fault, Reply

SIX = ("one", " two", " three", " four", " five", " six")
QUICK = Limits(first_byte_seconds=0.2, stall_seconds=0.2)


def engine_with(fault: Fault) -> FakeEngine:
    return FakeEngine(lambda _: Reply(chunks=SIX, fault=fault))


async def ask(served: Served, *, stream: bool) -> str:
    """The whole answer's content."""
    async with served.client() as client:
        if not stream:
            answer = await client.chat.completions.create(model="m", messages=QUESTION)
            return answer.choices[0].message.content or ""
        events = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        return "".join([event.choices[0].delta.content or "" async for event in events if event.choices])


async def listen(events: openai.AsyncStream[ChatCompletionChunk], heard: list[str]) -> None:
    async for event in events:
        heard.append(event.choices[0].delta.content or "")  # noqa: PERF401 - what came before an error counts


SETTINGS = {
    "upstream_timeout": "--first-byte-seconds",
    "upstream_stalled": "--stall-seconds",
    "upstream_oversize": "--response-bytes",
}
"""What an error names whose limit somebody may want to change."""
BEFORE: list[tuple[Fault, bool, int, str]] = [
    ("close_before_answer", False, 502, "upstream_closed"),
    ("close_before_answer", True, 502, "upstream_closed"),
    ("close_mid_header", False, 502, "upstream_closed"),
    ("close_mid_header", True, 502, "upstream_closed"),
    ("stall_before", False, 504, "upstream_timeout"),
    ("stall_before", True, 504, "upstream_timeout"),
    ("not_http", False, 502, "upstream_malformed"),
    ("not_http", True, 502, "upstream_malformed"),
    ("malformed_json", False, 502, "upstream_malformed"),
    ("wrong_content_type", False, 502, "upstream_malformed"),
    ("wrong_content_type", True, 502, "upstream_malformed"),
    ("short_body", False, 502, "upstream_closed"),
    ("close_mid_stream", False, 502, "upstream_closed"),
    ("reset_mid_stream", False, 502, "upstream_closed"),
    ("stall_mid_stream", False, 504, "upstream_stalled"),
]


@pytest.mark.parametrize(("fault", "stream", "status", "error"), BEFORE)
async def test_before_anything_was_relayed_the_client_gets_a_status(
    fault: Fault, stream: bool, status: int, error: str
) -> None:
    async with engine_with(fault) as engine, serving(engine, limits=QUICK) as served:
        with pytest.raises(openai.APIStatusError) as caught:
            await ask(served, stream=stream)
        assert caught.value.status_code == status
        assert caught.value.code == error
        assert "r0" in caught.value.message or "engine" in caught.value.message
        assert engine.url not in caught.value.message
        assert SETTINGS.get(error, "") in caught.value.message
        span, call = await served.call()
        assert span.error == error
        assert (call.replica, call.attempts) == ("r0", 1)
        assert call.first_token is None


async def test_a_late_engine_is_told_with_the_limit_and_with_what_had_passed() -> None:
    async with engine_with("stall_before") as engine, serving(engine, limits=QUICK) as served:
        with pytest.raises(openai.APIStatusError) as caught:
            await ask(served, stream=False)
    told = re.search(
        r"after ([0-9.]+) s; the gateway's limit --first-byte-seconds is ([0-9.]+) s", caught.value.message
    )
    assert told is not None, caught.value.message
    assert float(told[2]) == QUICK.first_byte_seconds <= float(told[1]) + 0.05


async def test_a_call_that_no_engine_was_sent_has_used_nothing_and_that_is_known() -> None:
    async with FakeEngine() as engine:
        nobody = Replica(id=ReplicaId("r0"), url=engine.url)
    async with serving(nobody) as served:
        for _ in range(2):
            assert (await served.ask(chat())).status in {502, 503}
        calls = [span.work for span in await served.spans(2) if isinstance(span.work, ModelCall)]
        assert [(call.usage.input_tokens, call.usage.output_tokens, call.cost) for call in calls] == [(0, 0, 0)] * 2
        page = (await served.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")).body
        assert not re.search(rb"gen_ai_client_token_usage_count\{[^}]*\} [1-9]", page)


MIDWAY: list[tuple[Fault, str]] = [
    ("close_mid_stream", "upstream_closed"),
    ("reset_mid_stream", "upstream_closed"),
    ("stall_mid_stream", "upstream_stalled"),
    ("malformed_json", "upstream_malformed"),
    ("malformed_sse", "upstream_malformed"),
    ("bad_chunk_framing", "upstream_malformed"),
    ("oversize_event", "upstream_oversize"),
]


@pytest.mark.parametrize(("fault", "error"), MIDWAY)
async def test_once_a_stream_has_begun_the_client_gets_an_error_event(fault: Fault, error: str) -> None:
    limits = Limits(stall_seconds=0.2, response_bytes=64 * 1024)
    heard: list[str] = []
    async with engine_with(fault) as engine, serving(engine, limits=limits) as served, served.client() as client:
        events = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        with pytest.raises(openai.APIError) as caught:
            await listen(events, heard)
        assert caught.value.code == error
        assert SETTINGS.get(error, "") in caught.value.message
        assert "".join(SIX).startswith("".join(heard))
        span, call = await served.call()
        assert span.error == error
        assert call.stream
        assert (call.finish_reason, call.usage.output_tokens) == (None, None)


async def test_a_stream_that_ends_without_done_but_with_a_reason_is_whole() -> None:
    async with engine_with("drop_done") as engine, serving(engine) as served:
        assert await ask(served, stream=True) == "".join(SIX)
        assert (await served.call())[0].error is None


async def test_a_stream_that_just_ends_is_not_taken_for_whole() -> None:
    raw = b'data: {"choices":[{"index":0,"delta":{"content":"half"}}]}\n\n'
    async with raw_engine(streamed(raw)) as engine, serving(engine) as served:
        with pytest.raises(openai.APIError) as caught:
            await ask(served, stream=True)
        assert caught.value.code == "upstream_truncated"
        assert (await served.call())[0].error == "upstream_truncated"


async def test_an_error_that_the_engine_reports_as_an_event_is_passed_on_and_recorded() -> None:
    async with engine_with("error_event") as engine, serving(engine) as served:
        with pytest.raises(openai.APIError, match="scripted failure"):
            await ask(served, stream=True)
        assert (await served.call())[0].error == "upstream_error_event"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_ends_with_its_connection_is_whole(stream: bool) -> None:
    async with engine_with("framed_by_close") as engine, serving(engine) as served:
        assert await ask(served, stream=stream) == "".join(SIX)
        assert (await served.call())[0].error is None


async def test_an_oversize_answer_is_refused() -> None:
    async with engine_with("oversize_event") as engine, serving(engine, limits=Limits(response_bytes=1000)) as served:
        with pytest.raises(openai.APIStatusError) as caught:
            await ask(served, stream=False)
        assert caught.value.code == "upstream_oversize"
        assert SETTINGS["upstream_oversize"] in caught.value.message
        assert (await served.call())[0].error == "upstream_oversize"


@pytest.mark.parametrize("status", [400, 401, 404, 429])
async def test_an_error_status_of_the_engine_is_passed_on_as_it_is(status: int) -> None:
    reply = Reply(status=status, error="no thanks", headers={"retry-after": "7"})
    async with FakeEngine(lambda _: reply) as engine, serving(engine) as served:
        answer = await served.ask(chat())
        assert (answer.status, answer.headers["retry-after"]) == (status, "7")
        assert answer.error["message"] == "no thanks"
        assert (await served.call())[0].error == f"http_{status}"


async def test_an_engine_that_is_down_gives_way_to_the_next() -> None:
    async with FakeEngine() as down, FakeEngine() as up, serving(down, up) as served:
        await down.go_down()
        assert await ask(served, stream=False) == "echo: one two three"
        span, call = await served.call()
        assert span.error is None
        assert (call.replica, call.attempts) == ("r1", 1)
        assert [load.healthy for load in served.gateway.fleet.view().loads] == [False, True]


async def test_an_engine_that_hangs_up_on_everyone() -> None:
    async with raw_engine() as engine, serving(engine) as served:
        answer = await served.ask(chat())
        assert answer.status == 502
        assert answer.error["code"] in {"upstream_connect", "upstream_closed"}  # whichever is noticed first


async def test_when_all_are_down_the_client_is_told_which_and_why() -> None:
    async with FakeEngine() as down, serving(down) as served:
        await down.go_down()
        answer = await served.ask(chat())
        assert (answer.status, answer.error["code"]) == (502, "upstream_connect")
        assert "'r0' cannot be reached" in answer.error["message"]
        assert (await served.ask(chat())).error["code"] == "no_replica"
        spans = await served.spans(calls=2)
        attempts = [(s.error, s.work.replica, s.work.attempts) for s in spans if isinstance(s.work, ModelCall)]
        assert attempts == [("upstream_connect", "r0", 1), ("no_replica", None, 0)], "tried, and then refused"


async def test_an_unusable_url_is_passed_over() -> None:
    broken = Replica(id=ReplicaId("broken"), url="ftp://127.0.0.1/v1")
    async with FakeEngine() as engine, serving(broken, engine) as served:
        assert await ask(served, stream=False) == "echo: one two three"


@pytest.mark.parametrize("fault", ["close_before_answer", "reset_mid_stream"])
async def test_a_replica_that_fails_a_call_is_not_asked_again_for_it(fault: Fault) -> None:
    async with engine_with(fault) as engine, serving(engine) as served:
        with pytest.raises(openai.APIError):
            await ask(served, stream=True)
        assert len(engine.requests) == 1


async def test_unobserved_a_broken_stream_still_ends_with_an_error_event() -> None:
    async with engine_with("close_mid_stream") as engine, serving(engine, observed=False) as served:
        with pytest.raises(openai.APIError) as caught:
            await ask(served, stream=True)
        assert caught.value.code == "upstream_closed"


async def test_half_an_event_is_never_relayed() -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
    async with raw_engine(streamed(event + event[:20], end=b"")) as engine, serving(engine) as served:
        raw = await served.raw(chat(stream=True))
        payload = raw.partition(b"\r\n\r\n")[2]
        events = [line for line in payload.split(b"\r\n") if line.startswith(b"data: ")]
        assert events[0] == event
        assert json.loads(events[1][6:])["error"]["code"] == "upstream_closed"
        assert raw.endswith(b"0\r\n\r\n")
