"""Reducing, judging and racing: many results become one, and the losers are stopped."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import Gate, double, in_a_run

from headway.core.errors import BadInputError, ItemsFailedError, NoQuorumError
from headway.runtime import Run


@given(st.lists(st.text("ab", max_size=2), min_size=1, max_size=40), st.integers(2, 7), st.integers(1, 9))
def test_reduce_merges_neighbours_in_order(items: list[str], fan_in: int, limit: int) -> None:
    sizes: list[int] = []

    async def join(_run: Run, parts: list[str]) -> str:
        sizes.append(len(parts))
        await asyncio.sleep(0)
        return "".join(parts)

    async def body(run: Run) -> str:
        return await run.reduce(join, items, fan_in=fan_in, limit=limit)

    assert asyncio.run(in_a_run(body)) == "".join(items)
    assert all(2 <= size <= fan_in for size in sizes)


async def test_a_merge_starts_when_its_own_parts_are_there() -> None:
    """A barrier between levels held fast branches back elsewhere (langgraph#3617)."""
    slow, upper = asyncio.Event(), asyncio.Event()

    async def join(_run: Run, parts: list[str]) -> str:
        if parts == ["g", "h"]:
            await slow.wait()
        if parts == ["ab", "cd"]:
            upper.set()
            slow.set()
        return "".join(parts)

    async def body(run: Run) -> str:
        return await run.reduce(join, "abcdefgh", fan_in=2)

    async with asyncio.timeout(10):
        assert await in_a_run(body) == "abcdefgh"
    assert upper.is_set()


async def test_there_is_nothing_to_reduce_or_to_race() -> None:
    async def join(_run: Run, parts: list[int]) -> int:
        return sum(parts)

    async def empty(run: Run) -> None:
        await run.reduce(join, [])

    async def one_by_one(run: Run) -> None:
        await run.reduce(join, [1], fan_in=1)

    async def no_race(run: Run) -> None:
        await run.race(double, [])

    for body, what in ((empty, "nothing to reduce"), (one_by_one, "fan_in=1"), (no_race, "nothing to race")):
        with pytest.raises(BadInputError, match=what):
            await in_a_run(body)


async def test_a_quorum_stops_the_losers() -> None:
    gate = Gate()

    async def vote(run: Run, x: int) -> str:
        return "yes" if int(run.path.rpartition("/")[2]) < 3 else str(await gate(run, x))

    async def body(run: Run) -> str:
        return await run.judge(vote, 7, votes=5, quorum=3)

    assert await in_a_run(body) == "yes"
    assert (gate.entered, gate.inside) == (2, 0)


@given(st.lists(st.sampled_from(["a", "b", "fail"]), min_size=1, max_size=7), st.data())
def test_a_verdict_is_what_enough_votes_agree_on_or_an_error(votes: list[str], data: st.DataObject) -> None:
    quorum = data.draw(st.integers(1, len(votes)))

    async def vote(run: Run, _: int) -> str:
        verdict = votes[int(run.path.rpartition("/")[2])]
        if verdict == "fail":
            raise ValueError(verdict)
        return verdict

    async def body(run: Run) -> str:
        return await run.judge(vote, 0, votes=len(votes), quorum=quorum)

    winners = {verdict for verdict in ("a", "b") if votes.count(verdict) >= quorum}
    if winners:
        assert asyncio.run(in_a_run(body)) in winners
    else:
        with pytest.raises(NoQuorumError, match=f"no verdict reaches {quorum} of {len(votes)} votes"):
            asyncio.run(in_a_run(body))


async def test_a_quorum_that_cannot_be_is_refused() -> None:
    async def body(run: Run) -> None:
        await run.judge(double, 1, votes=2, quorum=3)

    with pytest.raises(BadInputError, match="quorum=3 of votes=2"):
        await in_a_run(body)


async def test_a_race_is_won_by_the_first_result_and_stops_the_others() -> None:
    gate = Gate()

    async def runner(run: Run, number: int) -> int:
        if number == 0:
            raise ValueError("fell")
        return number if number == 2 else await gate(run, number)

    async def body(run: Run) -> int:
        return await run.race(runner, [0, 1, 2])

    assert await in_a_run(body) == 2
    assert gate.inside == 0


async def test_a_race_that_nobody_finishes_fails() -> None:
    async def runner(_run: Run, _: int) -> None:
        raise ValueError("fell")

    async def body(run: Run) -> None:
        await run.race(runner, [0, 1])

    with pytest.raises(ItemsFailedError, match=r"2 of 2 items failed.*fell"):
        await in_a_run(body)
