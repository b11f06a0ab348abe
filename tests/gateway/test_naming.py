"""Names of models at work: aliases, tiers, rules and fallbacks before real engines, asked by real clients."""

import asyncio
import json
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import QUESTION, chat, raw_engine, serving, whole

from headway.core.fleet import Replica, ReplicaId
from headway.core.span import ModelCall
from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.naming import Naming
from headway.policy.models.catalog import Alias, Rule, Tier, catalog
from headway.wire.model_field import with_model
from wire import JSON

SMALL = Tier(name="basic", models=("small",), context=1000, tools="none")
LARGE = Tier(name="premium", models=("large", "small"))


def named(engine: FakeEngine | Replica, name: str, *models: str) -> Replica:
    return Replica(id=ReplicaId(name), url=engine.url, models=models)


def naming(*aliases: Alias, tiers: tuple[Tier, ...] = (SMALL, LARGE)) -> Naming:
    return Naming(catalog(aliases, tiers))


FAST = naming(Alias(name="fast", models=("large", "small")))


@given(fields=st.dictionaries(st.text(max_size=6), JSON, max_size=4), model=st.text(max_size=8))
def test_only_the_model_is_another(fields: dict[str, Any], model: str) -> None:
    body = json.dumps({**fields, "model": "old"}).encode()
    assert json.loads(with_model(body, model)) == {**fields, "model": model}


def test_values_keep_their_bytes_known_or_not() -> None:
    body = b'{ "seed" : 1.50e1, "model":"fast" ,"odd":{"model" :  "nested"}, "messages":[ {"a":"\\u00e9"} ]}'
    told = b'{"seed":1.50e1,"model":"large","odd":{"model" :  "nested"},"messages":[ {"a":"\\u00e9"} ]}'
    assert with_model(body, "large") == told


async def test_an_alias_is_answered_by_what_it_stands_for_and_the_receipt_says_so() -> None:
    async with FakeEngine() as engine, serving(named(engine, "r0", "large", "small"), naming=FAST) as served:
        async with served.client() as client:
            await client.chat.completions.create(model="fast", messages=QUESTION, extra_body={"odd": [1.5]})
            events = await client.chat.completions.create(model="fast", messages=QUESTION, stream=True)
            assert [event async for event in events]
            assert [model.id async for model in client.models.list()] == ["fast", "large", "small"]
        spans = await served.spans(calls=2)
    (first, one), *_ = [(span, span.work) for span in spans if isinstance(span.work, ModelCall)]
    assert (first.name, one.model) == ("chat large", "large")
    assert one.route is not None
    assert one.route.notes == ("large is asked: 'fast' stands for it.",)
    assert [request["model"] for request in engine.requests] == ["large", "large"]
    assert engine.requests[0]["odd"] == [1.5]


async def test_a_model_without_an_alias_is_asked_byte_for_byte() -> None:
    seen: list[bytes] = []
    async with raw_engine(whole(b"{}"), seen=seen) as engine, serving(engine, naming=FAST) as served:
        await served.ask(chat(model="own"))
    assert seen[0].partition(b"\r\n\r\n")[2] == chat(model="own").partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("streams", [False, True])
async def test_a_model_that_cannot_serve_is_followed_by_the_next(status: int, streams: bool) -> None:
    async with FakeEngine(lambda _: Reply(status=status)) as ill, FakeEngine() as well:
        replicas = named(ill, "r0", "large"), named(well, "r1", "small")
        async with serving(*replicas, naming=FAST) as served:
            raw = await served.raw(chat("connection: close\r\n", model="fast", stream=streams))
            span, call = await served.call()
    assert raw.startswith(b"HTTP/1.1 200")
    assert b"x-headway-replica: r1" in raw
    assert well.requests[0]["model"] == "small"
    assert (span.error, call.model, call.replica, call.attempts) == (None, "small", "r1", 2)
    assert [(setback.replica, setback.error) for setback in call.setbacks] == [("r0", f"http_{status}")]
    assert call.route is not None
    assert call.route.notes[1] == f"large could not answer (http_{status}), so small is asked."


async def test_a_model_that_nobody_serves_or_that_is_down_is_followed_by_the_next() -> None:
    async with FakeEngine() as gone:
        pass
    async with FakeEngine() as well:
        for replicas in ((named(well, "r1", "small"),), (named(gone, "r0", "large"), named(well, "r1", "small"))):
            async with serving(*replicas, naming=FAST) as served:
                assert (await served.ask(chat(model="fast"))).status == 200
                _, call = await served.call()
            assert (call.model, call.attempts) == ("small", 1)


@pytest.mark.parametrize("fault", ["close_before_answer", "not_http"])
async def test_a_model_that_breaks_before_the_first_byte_is_followed_by_the_next(fault: Any) -> None:  # noqa: ANN401 - a Fault
    async with FakeEngine(lambda _: Reply(content="x", fault=fault)) as ill, FakeEngine() as well:
        replicas = named(ill, "r0", "large"), named(well, "r1", "small")
        async with serving(*replicas, naming=FAST) as served:
            assert (await served.ask(chat(model="fast"))).status == 200
            assert (await served.call())[1].setbacks[-1].replica == "r0"


async def test_once_a_byte_was_passed_on_nobody_follows() -> None:
    reply = Reply(chunks=("a", "b"), fault="close_mid_stream")
    async with FakeEngine(lambda _: reply) as ill, FakeEngine() as well:
        replicas = named(ill, "r0", "large"), named(well, "r1", "small")
        async with serving(*replicas, naming=FAST) as served:
            raw = await served.raw(chat("connection: close\r\n", model="fast", stream=True))
    assert b"upstream_closed" in raw
    assert well.requests == []


async def test_where_the_last_one_fails_too_its_own_refusal_is_the_answer() -> None:
    refused = Reply(status=503, error="the last word", headers={"retry-after": "9"})
    async with (
        FakeEngine(lambda _: refused) as engine,
        serving(named(engine, "r0", "large", "small"), naming=FAST) as served,
    ):
        answer = await served.ask(chat(model="fast"))
        assert (answer.status, answer.error["message"]) == (503, "the last word")
        assert answer.headers["retry-after"] == "9"
        assert (await served.call())[1].attempts == 2


async def test_a_bad_request_is_no_reason_to_ask_another() -> None:
    refused = Reply(status=400, error="no")
    async with FakeEngine(lambda _: refused) as engine, serving(named(engine, "r", "large"), naming=FAST) as served:
        assert (await served.ask(chat(model="fast"))).status == 400
    assert len(engine.requests) == 1


async def test_rules_choose_a_tier_by_what_is_asked() -> None:
    auto = naming(
        Alias(
            name="auto",
            tier="basic",
            rules=(
                Rule(tier="premium", with_tools=True),
                Rule(tier="premium", with_images=True),
                Rule(tier="premium", over_input_tokens=500),
                Rule(tier="premium", lane="batch"),
                Rule(tier="premium", after_calls=1),
            ),
        )
    )
    tool = {"type": "function", "function": {"name": "weather"}}
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
    long = [{"role": "user", "content": "x" * 1600}]
    async with FakeEngine() as engine, serving(named(engine, "r0", "large", "small"), naming=auto) as served:
        asked: list[tuple[str, dict[str, Any]]] = [
            ("", {}),
            ("", {"tools": [tool]}),
            ("", {"messages": image}),
            ("", {"messages": long}),
            ("x-headway-lane: batch\r\n", {}),
            *[("x-headway-task: t\r\n", {})] * 3,
        ]
        for extra, fields in asked:
            assert (await served.ask(chat(extra, model="auto", **fields))).status == 200
    expected = ["small", "large", "large", "large", "large", "small", "small", "large"]
    assert [request["model"] for request in engine.requests] == expected


async def test_what_a_tier_does_not_permit_is_refused_with_its_reason() -> None:
    basic = naming(Alias(name="auto", tier="basic"))
    tools: list[Any] = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    async with FakeEngine() as engine, serving(named(engine, "r0", "small"), naming=basic) as served:
        async with served.client() as client:
            with pytest.raises(openai.PermissionDeniedError, match="'basic' does not permit the tools weather"):
                await client.chat.completions.create(model="auto", messages=QUESTION, tools=tools)
        answer = await served.ask(chat(model="auto", messages=[{"role": "user", "content": "x" * 4000}]))
        assert (answer.status, answer.error["code"]) == (413, "context_too_long")
        spans = await served.spans(calls=2)
    assert [span.error for span in spans] == ["tools_not_permitted", "context_too_long"]
    assert engine.requests == []


async def test_a_client_that_leaves_while_the_second_model_is_asked_cuts_that_one_off() -> None:
    held = Reply(chunks=("a",), gate=asyncio.Event())
    async with FakeEngine(lambda _: Reply(status=500)) as ill, FakeEngine(lambda _: held) as well:
        replicas = named(ill, "r0", "large"), named(well, "r1", "small")
        async with serving(*replicas, naming=FAST) as served:
            async with served.connect() as (_, writer):
                writer.write(chat(model="fast"))
                await well.until(lambda: well.active == 1)
            await well.wait_cancelled()
            assert (await served.call())[0].error == "client_gone"
