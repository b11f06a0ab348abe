"""One tenant tries to be given, to see or to spoil another's answers, through the door of a real gateway."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from house import House, Opened
from keeping import keeping
from serving import QUESTION, Raw, Served, chat, serving

from headway.gateway.fake import FakeEngine, Reply
from headway.policy.cache.labels import Drop


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    house = House(tmp_path)
    house.tenant("acme")
    house.tenant("mallory")
    yield house
    house.registry.close()


def counting() -> Callable[[object], Reply]:
    """Another answer to each call."""
    said = iter(range(1, 100))
    return lambda _: Reply(content=f"number{next(said)}")


async def ask(served: Served, key: str, extra: str = "", **fields: Any) -> Raw:  # noqa: ANN401 - any JSON
    return await served.ask(chat(f"authorization: Bearer {key}\r\n{extra}", **fields))


async def test_equal_questions_of_two_tenants_have_each_its_own_answer(house: House) -> None:
    victim, other, attacker = house.key("acme"), house.key("acme"), house.key("mallory")
    async with (
        Opened(house) as door,
        FakeEngine(counting()) as engine,
        serving(engine, door=door, cache=keeping()) as served,
    ):
        assert b"number1" in (await ask(served, victim)).body
        forged = "x-headway-tenant: acme\r\nx-headway-cache: hit\r\nx-headway-cache-tags: all\r\nx-tenant: acme\r\n"
        theirs = await ask(served, attacker, forged, user="acme", metadata={"tenant": "acme"})
        assert b"number2" in theirs.body
        assert "x-headway-cache" not in theirs.headers
        assert b"number1" in (await ask(served, other)).body, "a tenant's keys share its answers"
    assert len(engine.requests) == 2


async def test_nor_does_one_wait_for_anothers_call_and_so_learn_that_it_is_made(house: House) -> None:
    victim, attacker = house.key("acme"), house.key("mallory")
    gate = asyncio.Event()
    replies = iter([Reply(content="acme's", gate=gate), Reply(content="mallory's")])
    async with (
        Opened(house) as door,
        FakeEngine(lambda _: next(replies)) as engine,
        serving(engine, door=door, cache=keeping()) as served,
    ):
        held = asyncio.create_task(ask(served, victim))
        await engine.until(lambda: len(engine.requests) == 1)
        theirs = await ask(served, attacker)  # while the victim's is held for as long as it takes
        assert b"mallory's" in theirs.body
        gate.set()
        assert b"acme's" in (await held).body
    assert len(engine.requests) == 2


async def test_one_tenants_drop_by_tag_leaves_anothers_answers(house: House) -> None:
    victim, attacker = house.key("acme"), house.key("mallory")
    docs = "x-headway-cache-tags: docs\r\n"
    async with (
        Opened(house) as door,
        FakeEngine(counting()) as engine,
        serving(engine, door=door, cache=keeping()) as served,
    ):
        await ask(served, victim, docs)
        await ask(served, attacker, docs)
        assert served.gateway.cache is not None
        assert served.gateway.cache.drop(Drop(tags=("docs",), tenant="mallory")) == 1
        assert (await ask(served, victim, docs)).headers["x-headway-cache"] == "hit"
        assert "x-headway-cache" not in (await ask(served, attacker, docs)).headers


async def test_without_keys_each_credential_has_its_own(house: House) -> None:
    del house
    async with FakeEngine(counting()) as engine, serving(engine, cache=keeping()) as served:
        for header in ("authorization: Bearer a", "authorization: Bearer b", "x-api-key: a", "api-key: a", "cookie: a"):
            own = await served.ask(chat(f"{header}\r\n"))
            again = await served.ask(chat(f"{header}\r\n"))
            assert "x-headway-cache" not in own.headers, header
            assert again.headers["x-headway-cache"] == "hit"
            assert again.body == own.body
        await served.ask(chat())
    assert len(engine.requests) == 6


async def test_the_page_of_metrics_names_no_tenant_and_no_question(house: House) -> None:
    key, operator = house.key("acme"), house.key("acme", role="operator")
    async with (
        Opened(house) as door,
        FakeEngine() as engine,
        serving(engine, door=door, cache=keeping()) as served,
    ):
        http = openai.DefaultAsyncHttpxClient(verify=False)
        async with openai.AsyncOpenAI(base_url=served.url, api_key=key, max_retries=0, http_client=http) as client:
            for _ in range(2):
                await client.chat.completions.create(model="m", messages=QUESTION)
        head = f"GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {operator}\r\n\r\n"
        page = (await served.ask(head.encode())).body.decode()
    cache = [line for line in page.splitlines() if line.startswith("headway_cache")]
    assert 'headway_cache_hits_total{rule="all",source="memory"} 1' in cache
    assert not any("acme" in line or "two" in line for line in cache)
