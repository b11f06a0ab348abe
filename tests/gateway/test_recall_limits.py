"""What a kept answer does to limits: a request like any other that used nothing."""

import asyncio
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from house import House, Opened
from keeping import keeping
from serving import Served, chat, serving

from headway.core.limits import CallerLimits, Limit, TaskLimits
from headway.gateway.fake import FakeEngine, Reply
from headway.policy.cache.rules import CacheRule
from headway.policy.limits.periods import counter_name


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    house = House(tmp_path)
    house.tenant("acme")
    yield house
    house.registry.close()


async def ask(served: Served, key: str, extra: str = "", **fields: Any) -> Any:  # noqa: ANN401 - any JSON
    return await served.ask(chat(f"authorization: Bearer {key}\r\n{extra}", **fields))


async def test_an_answer_given_again_costs_no_money_and_no_tokens(house: House) -> None:
    key = house.key("acme", CallerLimits(money_per_day=Limit(1_000_000)))
    async with (
        Opened(house) as door,
        FakeEngine() as engine,
        serving(engine, door=door, cache=keeping(), tariff=door.tariff) as served,
    ):
        for _ in range(5):
            assert (await ask(served, key)).status == 200
        (owner,) = house.registry.keys("acme")
        await served.spans(5)
    book = House(house.file.parent)
    # once 3 tokens read at 1 and 4 written at 2; what was reserved for the others is free again
    await book.until_used(counter_name("key", owner.id, "money", "day", time.time()), 11)
    book.registry.close()
    assert len(engine.requests) == 1


async def test_it_counts_as_a_request_and_as_a_call_of_its_task(house: House) -> None:
    often = house.key("acme", CallerLimits(requests_per_minute=Limit(3)))
    looped = house.key("acme", task=TaskLimits(calls=Limit(3)))
    async with (
        Opened(house) as door,
        FakeEngine() as engine,
        serving(engine, door=door, cache=keeping()) as served,
    ):
        assert [(await ask(served, often)).status for _ in range(4)] == [200, 200, 200, 429]
        task = f"x-headway-task: {7:032x}\r\n"
        assert [(await ask(served, looped, task)).status for _ in range(4)] == [200, 200, 200, 429]
    assert len(engine.requests) == 1


async def test_many_tokens_a_minute_are_not_used_by_answers_given_again(house: House) -> None:
    key = house.key("acme", CallerLimits(tokens_per_minute=Limit(5000)))  # each call reserves more than 4,096
    async with (
        Opened(house) as door,
        FakeEngine() as engine,
        serving(engine, door=door, cache=keeping()) as served,
    ):
        assert [(await ask(served, key)).status for _ in range(10)] == [200] * 10
    assert len(engine.requests) == 1


async def test_those_who_wait_hold_their_places_and_free_them(house: House) -> None:
    key = house.key("acme", CallerLimits(concurrency=Limit(2)))
    gate = asyncio.Event()
    async with (
        Opened(house) as door,
        FakeEngine(lambda _: Reply(content="x", gate=gate)) as engine,
        serving(engine, door=door, cache=keeping()) as served,
    ):
        asking = [asyncio.create_task(ask(served, key)) for _ in range(2)]
        cache = served.gateway.cache
        assert cache is not None
        async with asyncio.timeout(10):
            while not cache.report().memory.waiters:  # noqa: ASYNC110 - what is waited for is another connection's
                await asyncio.sleep(0)
        assert (await ask(served, key)).status == 429
        gate.set()
        assert [answer.status for answer in await asyncio.gather(*asking)] == [200, 200]
        assert [(await ask(served, key)).status for _ in range(3)] == [200] * 3
    assert len(engine.requests) == 1


async def test_a_task_whose_seconds_are_over_waits_no_longer_for_anothers_answer(house: House) -> None:
    patient, hasty = house.key("acme"), house.key("acme", task=TaskLimits(seconds=Limit(1)))
    gate = asyncio.Event()
    async with (
        Opened(house) as door,
        FakeEngine(lambda _: Reply(content="x", gate=gate)) as engine,
        serving(engine, door=door, cache=keeping(CacheRule(name="all", wait=600))) as served,
    ):
        first = asyncio.create_task(ask(served, patient))
        await engine.until(lambda: len(engine.requests) == 1)
        over = await ask(served, hasty)
        gate.set()
        assert (await first).status == 200
    assert (over.status, over.error["code"]) == (429, "seconds_limit")
    assert len(engine.requests) == 1


async def test_a_key_that_may_not_ask_a_model_is_not_given_its_answers(house: House) -> None:
    house.tenant("zeta", models=("other",))
    key, wrong = house.key("acme"), house.key("zeta")
    async with (
        Opened(house) as door,
        FakeEngine() as engine,
        serving(engine, door=door, cache=keeping()) as served,
    ):
        assert (await ask(served, key)).status == 200
        assert (await ask(served, wrong)).status == 403
