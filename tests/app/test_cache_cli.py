"""`headway cache`, asking a gateway that runs."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from keeping import keeping
from serving import chat, serving

from headway.gateway.fake import FakeEngine
from headway.policy.cache.rules import CacheRule

Run = Callable[..., Any]
FAQ = CacheRule(name="faq", tags=frozenset({"docs"}))


async def test_a_report_and_a_drop(headway: Run) -> None:
    async with FakeEngine() as engine, serving(engine, cache=keeping(FAQ)) as served:
        for _ in range(3):
            await served.ask(chat())
        told = await asyncio.to_thread(headway, "cache", "report", "--url", served.url)
        machine = await asyncio.to_thread(headway, "cache", "report", "--url", served.url, "--json")
        gone = await asyncio.to_thread(headway, "cache", "drop", "--tag", "docs", "--url", served.url)
        again = await asyncio.to_thread(headway, "cache", "drop", "--all", "--json", "--url", served.url)
    assert (told.code, machine.code, gone.code, again.code) == (0, 0, 0, 0)
    assert "of       1 worker\n" in told.out
    assert "answers  1 in" in told.out
    assert "memory 2" in told.out
    assert json.loads(machine.out)["rules"]["faq"]["hits"] == {"memory": 2}
    assert gone.out == "Dropped 1 answer, by 1 worker.\n"
    assert json.loads(again.out) == {"schema": "headway.cache-drop/1", "dropped": 0, "workers": 1}


async def test_a_gateway_that_keeps_nothing_says_so(headway: Run) -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        told = await asyncio.to_thread(headway, "cache", "report", "--url", served.url)
    assert told.code == 1
    assert "keeps no answers" in told.err
    assert "docs/caching.md" in told.err


@pytest.mark.parametrize("asked", [[], ["--tag", "a", "--rule", "b"], ["--tag", "no tag"], ["--version", "1"]])
def test_what_is_not_clear_is_not_sent(headway: Run, asked: list[str]) -> None:
    told = headway("cache", "drop", "--url", "http://127.0.0.1:9", *asked)
    assert told.code != 0
    assert "cannot be reached" not in told.err
