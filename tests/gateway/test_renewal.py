"""A stale answer is given at once, and made anew for whoever asks next."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from house import PRICES, House, Opened
from keeping import keeping
from serving import Served, chat, serving

from headway.core.limits import CallerLimits, Limit
from headway.core.span import ModelCall, Span
from headway.gateway.caches import figures
from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.tariff import Tariff
from headway.policy.cache.rules import CacheRule
from headway.policy.limits.periods import counter_name
from headway.trace.account import recorded

STALE = CacheRule(name="stale", ttl=1e-9, stale=60.0)
"""Every answer is past its freshness when the next call comes."""


async def ask(served: Served, extra: str = "") -> tuple[str, str]:
    """What the head says of the cache, and the answer."""
    answer = await served.ask(chat(extra))
    return answer.headers.get("x-headway-cache", ""), answer.body.decode()


def answers() -> Callable[[object], Reply]:
    """1, 2, 3 … for each call."""
    said = iter(range(1, 100))
    return lambda _: Reply(content=f"number{next(said)}")


async def until_renewed(served: Served) -> None:
    cache = served.gateway.cache
    assert cache is not None
    async with asyncio.timeout(10):
        while cache.renewals:  # noqa: ASYNC110 - what is waited for is a socket's
            await asyncio.sleep(0)


def calls_of(spans: list[Span]) -> list[tuple[Span, ModelCall]]:
    return sorted([(s, s.work) for s in spans if isinstance(s.work, ModelCall)], key=lambda call: call[0].start)


async def test_the_stale_answer_is_given_and_the_next_is_new() -> None:
    tariff = Tariff(PRICES, frozenset[str]())
    async with FakeEngine(answers()) as engine, serving(engine, cache=keeping(STALE), tariff=tariff) as served:
        first, second = await ask(served), await ask(served)
        await until_renewed(served)
        third = await ask(served)
        await until_renewed(served)
        spans = await served.spans(5)
    assert [how for how, _ in (first, second, third)] == ["", "stale", "stale"]
    assert "number1" in second[1]
    assert "number2" in third[1]
    assert len(engine.requests) == 3
    made, given, renewal, *_ = calls_of(spans)
    assert made[1].given_again is None
    assert given[1].given_again is not None
    assert given[1].given_again.source == "stale"
    assert renewal[1].given_again is None
    assert (renewal[0].task, renewal[0].parent, renewal[0].awaited) == (given[0].task, given[0].id, False)
    assert renewal[1].identity is None, "what nobody asked is nobody's history"
    assert renewal[1].usage.output_tokens == 1


async def test_a_task_has_not_waited_for_the_renewal_and_has_paid_for_it() -> None:
    gate = asyncio.Event()
    replies = iter([Reply(content="one"), Reply(content="two", gate=gate)])
    async with FakeEngine(lambda _: next(replies)) as engine, serving(engine, cache=keeping(STALE)) as served:
        await ask(served)
        await ask(served)
        await engine.until(lambda: len(engine.requests) == 2)
        gate.set()
        await until_renewed(served)
        spans = await served.spans(3)
    (_, given, renewal) = [span for span, _ in calls_of(spans)]
    account = recorded([span for span in spans if span.task == given.task], prices=lambda call, _: PRICES[call.model])
    assert given.end is not None
    assert account.anatomy.e2e == pytest.approx(given.end - given.start)
    assert renewal.end is not None
    assert renewal.end > given.end
    assert account.anatomy.cost == 3 + 2 * 1, "the renewal's three words read and one written, and nothing else"
    assert account.anatomy.n == 1


async def test_one_renewal_at_a_time() -> None:
    gate = asyncio.Event()
    replies = iter([Reply(content="one"), Reply(content="two", gate=gate)])
    async with FakeEngine(lambda _: next(replies)) as engine, serving(engine, cache=keeping(STALE)) as served:
        await ask(served)
        for _ in range(3):
            assert (await ask(served))[0] == "stale"
        await engine.until(lambda: len(engine.requests) == 2)
        gate.set()
        await until_renewed(served)


@pytest.mark.parametrize("fault", ["close_before_answer", "malformed_json", "stall_before"])
async def test_a_renewal_that_fails_hurts_nobody(fault: Any) -> None:  # noqa: ANN401 - a Fault
    replies = iter([Reply(content="one")])
    async with (
        FakeEngine(lambda _: next(replies, Reply(fault=fault))) as engine,
        serving(engine, cache=keeping(STALE)) as served,
    ):
        await ask(served)
        assert "one" in (await ask(served))[1]
        await engine.until(lambda: len(engine.requests) >= 2)
        if fault != "stall_before":
            await until_renewed(served)
        assert "one" in (await ask(served))[1]
    assert served.gateway.cache is not None
    assert not served.gateway.cache.renewals, "a gateway that ends, ends what it asks for nobody"


async def test_who_was_given_the_stale_answer_pays_for_the_new_one_and_its_limit_holds(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.tenant("acme", CallerLimits(requests_per_minute=Limit(3)))
    key = house.key("acme", CallerLimits(money_per_day=Limit(1_000_000)))
    line = f"authorization: Bearer {key}\r\n"
    async with (
        Opened(house) as door,
        FakeEngine(answers()) as engine,
        serving(engine, door=door, cache=keeping(STALE), tariff=door.tariff) as served,
    ):
        await ask(served, line)
        await ask(served, line)  # with its renewal these are three requests
        await until_renewed(served)
        refused = await served.ask(chat(line))
        spans = await served.spans(4)
        (owner,) = house.registry.keys("acme")
        # twice by the engine, three words read and one written each time
        await house.until_used(counter_name("key", owner.id, "money", "day", time.time()), 2 * 5)
    house.registry.close()
    assert refused.status == 429
    assert len(engine.requests) == 2
    assert {span.tenant for span in spans} == {"acme"}


async def test_a_renewal_that_a_limit_refuses_is_not_made_and_the_stale_answer_is_given_all_the_same(
    tmp_path: Path,
) -> None:
    house = House(tmp_path)
    house.tenant("acme", CallerLimits(requests_per_minute=Limit(2)))
    line = f"authorization: Bearer {house.key('acme')}\r\n"
    async with (
        Opened(house) as door,
        FakeEngine(answers()) as engine,
        serving(engine, door=door, cache=keeping(STALE), tariff=door.tariff) as served,
    ):
        await ask(served, line)
        how, said = await ask(served, line)
        await until_renewed(served)
        assert await figure_of(served, "headway_cache_flights") == 0, "the next who may has it made"
    house.registry.close()
    assert how == "stale"
    assert "number1" in said
    assert len(engine.requests) == 1


async def figure_of(served: Served, name: str) -> int:
    cache = served.gateway.cache
    assert cache is not None
    page = figures.page(cache.report()).decode()
    return int(next(line for line in page.splitlines() if line.startswith(name)).rsplit(" ", 1)[1])
