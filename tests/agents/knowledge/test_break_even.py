"""From how many questions on it pays to keep all documents in the prompt."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI

from headway.agents.knowledge.break_even import Asked, Comparison, Ways, break_even, compare
from headway.agents.knowledge.plain_model import PlainModel
from headway.agents.knowledge.retrieval.index import Index
from headway.core.errors import BadInputError
from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine, Reply


@pytest.mark.parametrize(
    ("searched", "first", "later", "questions"),
    [
        (2.0, 10.0, 0.5, 7),  # 10 + 6 * 0.5 = 13 <= 14, and 10 + 5 * 0.5 = 12.5 > 12
        (2.0, 10.0, 1.0, 9),  # 10 + 8 = 18 <= 18
        (2.0, 2.0, 5.0, 1),
        (2.0, 10.0, 2.0, None),
        (2.0, 10.0, 3.0, None),
    ],
)
def test_the_number_of_questions(searched: float, first: float, later: float, questions: int | None) -> None:
    assert break_even(Ways(searched=searched, first=first, later=later)) == questions


SMALL = st.integers(0, 200)


@given(SMALL, SMALL, SMALL)
def test_it_is_the_least_number_at_which_caching_takes_no_more(searched: int, first: int, later: int) -> None:
    ways = Ways(searched=searched, first=first, later=later)
    found = break_even(ways)
    pays = [n for n in range(1, 300) if first + (n - 1) * later <= n * searched]
    assert found == (pays[0] if pays else None)


def asked(seconds: float, tokens: int | None, cached: int | None) -> Asked:
    return Asked(
        seconds=seconds, ttft=seconds - 0.5, usage=Usage(input_tokens=tokens, output_tokens=1, cache_read=cached)
    )


def test_means_rates_and_costs_come_from_the_calls() -> None:
    done = Comparison(
        searched=(asked(2.0, 400, 0), asked(4.0, 600, 0), asked(3.0, 500, 0)),
        cached=(asked(10.5, 5000, 0), asked(1.0, 5010, 5000), asked(2.0, 5030, 5000)),
    )
    assert done.seconds == Ways(searched=3.0, first=10.5, later=1.5)
    assert done.prefill_rate == 500.0
    assert done.costs(lambda usage: usage.input_tokens) == Ways(searched=500, first=5000, later=5020)
    assert done.costs(lambda _: None) is None
    unknown = Comparison(searched=done.searched, cached=(asked(10.5, 5000, None), *done.cached[1:]))
    assert unknown.prefill_rate is None


async def test_both_ways_are_asked_and_nothing_is_found_in_a_cache_by_chance(ferry_index: Index) -> None:
    def script(body: dict[str, Any]) -> Reply:
        whole = "rope" in body["messages"][0]["content"]
        tokens = 900 if whole else 100
        return Reply(content="A rope did it.", usage=Usage(input_tokens=tokens, output_tokens=4, cache_read=0))

    async with FakeEngine(script) as engine, AsyncOpenAI(base_url=engine.url, api_key="k") as client:
        done = await compare(["Why?", "Who was told?"], ferry_index, PlainModel(client, "fake"), "7f")
        with pytest.raises(BadInputError, match="One question"):
            await compare(["Why?"], ferry_index, PlainModel(client, "fake"), "7f")
    assert [one.usage.input_tokens for one in (*done.searched, *done.cached)] == [100, 100, 900, 900]
    assert all(one.seconds >= one.ttft > 0 for one in (*done.searched, *done.cached))
    searched, again, first, later = [request["messages"] for request in engine.requests]
    assert searched[0] == again[0]
    assert [message["content"].startswith(f"(7f-{n})\n") for n, message in enumerate((searched[1], again[1]))] == [
        True
    ] * 2
    assert first[0] == later[0]
    assert first[0]["content"].startswith("(7f)\n")
    assert first[1]["content"].endswith("Why?")
