"""The door at work: real clients with real keys before a real gateway, and attacks of one tenant on another."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from house import House, Opened
from serving import QUESTION, Served, chat, raw_engine, serving, streamed, whole

from headway.core.fleet import Replica, ReplicaId
from headway.core.limits import CallerLimits, Limit, TaskLimits
from headway.core.span import ModelCall
from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.hedging import HedgeRules, Hedging
from headway.gateway.naming import Naming
from headway.gateway.wiring import Passes
from headway.policy.limits.periods import counter_name
from headway.policy.models.catalog import Alias, catalog


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    house = House(tmp_path)
    house.tenant("acme")
    house.tenant("zeta")
    yield house
    house.registry.close()


def client(served: Served, key: str) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(verify=False)
    return openai.AsyncOpenAI(base_url=served.url, api_key=key, max_retries=0, timeout=20, http_client=http)


async def ask(served: Served, key: str, extra: str = "", **fields: Any) -> Any:  # noqa: ANN401 - any JSON
    return await served.ask(chat(f"authorization: Bearer {key}\r\n{extra}", **fields))


async def test_a_key_is_asked_for_and_goes_no_further(house: House, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[bytes] = []
    key = house.key("acme")
    caplog.set_level(logging.DEBUG)
    async with (
        Opened(house) as door,
        raw_engine(whole(b"{}"), seen=seen) as engine,
        serving(engine, door=door) as served,
    ):
        answer = await served.ask(chat(f"authorization: Bearer {key}\r\nx-api-key: {key}\r\n"))
        span, _ = await served.call()
    assert answer.status == 200
    assert span.tenant == "acme"
    told = repr(seen) + repr(span) + repr(answer) + caplog.text
    assert key not in told
    assert b"authorization" not in seen[0]
    assert b"x-api-key" not in seen[0]


async def test_unknown_keys_are_told_in_the_callers_dialect_and_no_call(house: House) -> None:
    async with Opened(house) as door, FakeEngine() as engine, serving(engine, door=door) as served:
        async with client(served, "sk-hw-wrong") as wrong:
            with pytest.raises(openai.AuthenticationError, match="not known") as caught:
                await wrong.chat.completions.create(model="m", messages=QUESTION)
        assert caught.value.code == "unknown_key"
        http = anthropic.DefaultAsyncHttpxClient(verify=False)
        url = served.url.removesuffix("/v1")
        async with anthropic.AsyncAnthropic(base_url=url, api_key="no", max_retries=0, http_client=http) as claude:
            with pytest.raises(anthropic.AuthenticationError, match="not known"):
                await claude.messages.create(model="m", max_tokens=5, messages=QUESTION)
        assert (await served.ask(chat())).status == 401
        assert engine.requests == []
        assert not served.gateway.journal.spans_recorded


async def test_models_that_a_tenant_may_not_call(house: House) -> None:
    house.tenant("small", models=("m",))
    key = house.key("small")
    async with Opened(house) as door, FakeEngine() as engine:
        both = Replica(id=ReplicaId("r0"), url=engine.url, models=("m", "large"))
        async with serving(both, door=door) as served, client(served, key) as caller:
            with pytest.raises(openai.PermissionDeniedError, match="It may call: m"):
                await caller.chat.completions.create(model="large", messages=QUESTION)
            assert [model.id async for model in caller.models.list()] == ["m"]
            assert (await served.call())[0].error == "model_not_allowed"
        assert engine.requests == []
    assert house.registry.audited(10)[0].action == "call.denied"


async def test_a_limit_says_which_it_is_its_value_its_use_and_when_it_frees(house: House) -> None:
    key = house.key("acme", CallerLimits(requests_per_minute=Limit(1)))
    async with (
        Opened(house) as door,
        FakeEngine() as engine,
        serving(engine, door=door) as served,
        client(served, key) as caller,
    ):
        await caller.chat.completions.create(model="m", messages=QUESTION)
        with pytest.raises(
            openai.RateLimitError, match=r"limit of 1 request a minute: 1 request (is|are) used"
        ) as caught:
            await caller.chat.completions.create(model="m", messages=QUESTION)
        assert (caught.value.type, caught.value.code) == ("rate_limit_error", "requests_limit")
        assert 1 <= int(caught.value.response.headers["retry-after"]) <= 62
    assert len(engine.requests) == 1


async def test_what_was_used_is_settled_to_the_micro_dollar(house: House) -> None:
    key = house.key("acme", CallerLimits(money_per_day=Limit(1_000_000)))
    async with Opened(house) as door, FakeEngine() as engine, serving(engine, door=door) as served:
        assert (await ask(served, key, model="m")).status == 200
        assert (await served.ask(chat("x-api-key: " + key + "\r\n", stream=True))).status == 200
        await served.spans(calls=2)
        (owner,) = house.registry.keys("acme")
        day = counter_name("key", owner.id, "money", "day", time.time())
        await house.until_used(day, 22)  # twice 3 tokens in at 1 and 4 out at 2


async def test_a_call_that_never_was_costs_nothing_and_one_that_failed_at_the_engine_no_tokens(house: House) -> None:
    key = house.key("acme", CallerLimits(tokens_per_minute=Limit(9000)))
    refusal = Reply(status=500, error="broken")
    async with Opened(house) as door, FakeEngine(lambda _: refusal) as engine, serving(engine, door=door) as served:
        for _ in range(3):  # each reserves more than 4,096
            assert (await ask(served, key)).status == 500
    async with FakeEngine() as gone:
        pass
    other = House(house.file.parent)  # the same files, another worker
    async with Opened(other) as door, serving(gone, door=door) as served:
        for _ in range(3):
            assert (await ask(served, key)).status in {502, 503}
    other.registry.close()


async def test_a_client_that_leaves_is_charged_what_was_reserved_and_its_place_is_free_again(house: House) -> None:
    key = house.key("acme", CallerLimits(concurrency=Limit(1)))
    held = Reply(chunks=("a",), gate=asyncio.Event())
    replies = [held, Reply(content="x"), Reply(content="x")]
    async with (
        Opened(house) as door,
        FakeEngine(lambda _: replies.pop(0)) as engine,
        serving(engine, door=door) as served,
    ):
        async with served.connect() as (_, writer):
            writer.write(chat(f"authorization: Bearer {key}\r\n", stream=True))
            await engine.until(lambda: engine.active == 1)
            refused = await ask(served, key)
            assert (refused.status, refused.error["code"]) == (429, "concurrency_limit")
        await engine.wait_cancelled()
        await served.spans(calls=2)
        assert (await ask(served, key)).status == 200


async def test_many_at_once_never_pass_a_limit(house: House) -> None:
    house.tenant("tight", CallerLimits(requests_per_minute=Limit(5)))
    keys = [house.key("tight") for _ in range(2)]
    async with Opened(house) as door, FakeEngine() as engine, serving(engine, door=door) as served:
        answers = await asyncio.gather(*[ask(served, keys[number % 2]) for number in range(20)])
        assert sorted(answer.status for answer in answers) == [200] * 5 + [429] * 15
        assert len(engine.requests) == 5
        await served.spans(calls=20)


async def test_a_tasks_calls_are_capped(house: House) -> None:
    key = house.key("acme", task=TaskLimits(calls=Limit(2)))
    async with Opened(house) as door, FakeEngine() as engine, serving(engine, door=door) as served:
        told = [await ask(served, key, "x-headway-task: t1\r\n") for _ in range(3)]
        assert [answer.status for answer in told] == [200, 200, 429]
        assert (told[2].error["code"], told[2].headers["x-should-retry"]) == ("calls_limit", "false")
        assert (await ask(served, key, "x-headway-task: t2\r\n")).status == 200


async def test_a_task_whose_seconds_are_over_is_ended_in_mid_answer(house: House) -> None:
    key = house.key("acme", task=TaskLimits(seconds=Limit(1)))
    reply = Reply(chunks=("a", "b"), gate=asyncio.Event())
    async with Opened(house) as door, FakeEngine(lambda _: reply) as engine, serving(engine, door=door) as served:
        answer = await ask(served, key)
        assert (answer.status, answer.error["code"]) == (429, "seconds_limit")
        await engine.wait_cancelled()


async def test_tenants_share_no_task_however_one_names_it(house: House) -> None:
    mine, theirs = house.key("acme"), house.key("zeta")
    trace = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
    conversation = [
        *QUESTION,
        {"role": "assistant", "content": "echo: one two three"},
        {"role": "user", "content": "more"},
    ]
    async with Opened(house) as door, FakeEngine() as engine, serving(engine, door=door) as served:
        tasks: dict[str, set[str]] = {}
        for key in (mine, theirs):
            answers = [
                await ask(served, key, "x-headway-task: shared\r\n"),
                await ask(served, key, trace),
                await ask(served, key),
                await ask(served, key, messages=conversation),
                await ask(served, key, "x-session-id: s\r\n"),
            ]
            tasks[key] = {answer.headers["x-headway-task"] for answer in answers}
        stolen = await ask(served, theirs, f"x-headway-task: {min(tasks[mine])}\r\n")
        tasks[theirs].add(stolen.headers["x-headway-task"])
        assert not tasks[mine] & tasks[theirs]
        spans = [span for span in await served.spans(calls=11) if isinstance(span.work, ModelCall)]
        assert {span.session for span in spans if span.tenant == "acme"}.isdisjoint(
            {span.session for span in spans if span.tenant == "zeta"}
        )


async def test_spans_that_a_tenant_sends_join_its_own_tasks_alone(house: House) -> None:
    mine, theirs = house.key("acme"), house.key("zeta")
    trace = "0af7651916cd43dd8448eb211c80319c"
    span = {
        "traceId": trace,
        "spanId": "b7ad6b7169203331",
        "name": "execute_tool x",
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
    }
    span["attributes"] = [{"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}}]  # type: ignore[assignment] - JSON
    export = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()

    def post(key: str) -> bytes:
        head = (
            f"POST /v1/traces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
        )
        return f"{head}content-length: {len(export)}\r\n\r\n".encode() + export

    async with Opened(house) as door, FakeEngine() as engine, serving(engine, door=door) as served:
        call = await ask(served, mine, f"traceparent: 00-{trace}-b7ad6b7169203331-01\r\n")
        for key in (mine, theirs):
            assert (await served.ask(post(key))).status == 200
        stored = await served.stored(3)
    by_tenant = {(one.tenant, one.task) for one in stored}
    assert len(by_tenant) == 2
    assert ("acme", call.headers["x-headway-task"]) in by_tenant


async def test_who_may_see_metrics_and_how_the_fleet_fares(house: House) -> None:
    member, operator, viewer = house.key("acme"), house.key("acme", role="operator"), house.key("acme", role="viewer")
    async with Opened(house) as door, FakeEngine() as engine, serving(engine, door=door) as served:

        async def get(path: str, key: str | None = None) -> int:
            line = f"authorization: Bearer {key}\r\n" if key else ""
            return (await served.ask(f"GET {path} HTTP/1.1\r\nhost: x\r\n{line}\r\n".encode())).status

        assert [await get("/metrics", key) for key in (None, member, operator)] == [401, 403, 200]
        assert [await get("/v1/models", key) for key in (None, viewer)] == [401, 200]
        assert (await ask(served, viewer)).status == 403
        health = await served.ask(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
    assert json.loads(health.body) == {"status": "ok"}


async def test_the_dearest_of_a_chain_is_reserved_and_the_one_that_answered_is_paid(house: House) -> None:
    cheap = Naming(catalog([Alias(name="fast", models=("local", "m"))], []))
    tight = house.key("acme", CallerLimits(money_per_day=Limit(1000)))
    wide = house.key("acme", CallerLimits(money_per_day=Limit(1_000_000)))
    async with Opened(house) as door, FakeEngine() as engine:
        replica = Replica(id=ReplicaId("r0"), url=engine.url, models=("m",))
        async with serving(replica, door=door, naming=cheap) as served:
            refused = await ask(served, tight, model="fast")  # of `m` it may write 4,096 tokens at 2
            assert (refused.status, refused.error["code"]) == (429, "money_limit")
            assert (await ask(served, wide, model="fast")).status == 200
            owner = next(key for key in house.registry.keys("acme") if wide.startswith(key.prefix))
            await house.until_used(counter_name("key", owner.id, "money", "day", time.time()), 11)


async def test_a_stream_is_settled_and_its_client_gets_all_of_it(house: House) -> None:
    events = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    key = house.key("acme", CallerLimits(concurrency=Limit(1)))
    async with (
        Opened(house) as door,
        raw_engine(streamed(events), streamed(events)) as engine,
        serving(engine, door=door) as served,
    ):
        for _ in range(2):
            raw = await served.raw(chat(f"authorization: Bearer {key}\r\nconnection: close\r\n", stream=True))
            assert events in raw


async def test_of_a_replica_that_was_cut_off_unheard_the_prompt_is_charged_too(house: House) -> None:
    key = house.key("acme", CallerLimits(money_per_day=Limit(1_000_000)))
    hedging = Hedging(HedgeRules())
    for _ in range(20):
        hedging.hedger.observe("m", 0.02)
    stuck = Reply(chunks=("x",), gate=asyncio.Event())
    written = Reply(chunks=("x",), usage=Usage(input_tokens=100, output_tokens=7))
    async with (
        Opened(house) as door,
        FakeEngine(lambda _: stuck) as slow,
        FakeEngine(lambda _: written) as quick,
        serving(slow, quick, passes=Passes(door=door, hedging=hedging)) as served,
    ):
        raw = await served.raw(chat(f"authorization: Bearer {key}\r\nconnection: close\r\n", stream=True))
        assert raw.startswith(b"HTTP/1.1 200")
        await slow.wait_cancelled()
        owner = next(one for one in house.registry.keys("acme") if key.startswith(one.prefix))
        # 100 tokens read at 1 and 7 written at 2 micro-USD, and 100 that the other may have read
        await house.until_used(counter_name("key", owner.id, "money", "day", time.time()), 214)
