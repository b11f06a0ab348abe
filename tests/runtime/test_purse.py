import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import BadInputError, OverBudgetError
from headway.core.money import MicroUsd
from headway.runtime.purse import NOTHING, Amount, Budget, Hold, Purse


def usd(micro: int) -> Amount:
    return Amount(money=MicroUsd(micro))


def test_a_budget_in_dollars_is_whole_micro_dollars() -> None:
    assert Budget(usd=2).money == 2_000_000
    assert Budget(usd="0.02 USD").money == 20_000
    assert Budget().money is None


@pytest.mark.parametrize("bad", [{"usd": -1}, {"tokens": -1}, {"calls": -1}, {"seconds": float("nan")}])
def test_what_is_no_limit_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(BadInputError, match="Budget"):
        Budget(**bad)  # pyright: ignore[reportArgumentType] - wrong on purpose


def test_what_was_not_used_is_there_again() -> None:
    purse = Purse(Budget(usd=0.0001, calls=3))
    hold = purse.take(Amount(money=MicroUsd(90), calls=1))
    assert hold is not None
    assert purse.left == (10, None, 2)
    hold.settle(Amount(money=MicroUsd(40), calls=1))
    hold.settle(Amount(money=MicroUsd(40), calls=1))
    assert purse.left == (60, None, 2)
    assert purse.spent == Amount(money=MicroUsd(40), calls=1)


def test_more_than_is_left_is_refused_with_what_to_do() -> None:
    purse = Purse(Budget(usd=0.0001), name="review")
    with pytest.raises(
        OverBudgetError, match=r"review: of its budget of 100 micro-USD, 100 are left and 101 .*max_tokens"
    ):
        purse.take(usd(101))
    assert purse.held == NOTHING


def test_a_negative_reservation_is_refused() -> None:
    with pytest.raises(BadInputError, match="negative"):
        Purse().take(Amount(tokens=-1))


def test_ninety_nine_calls_of_a_cent_and_the_hundredth() -> None:
    purse = Purse(Budget(usd=1))
    for _ in range(100):
        hold = purse.take(usd(10_000))
        assert hold is not None
        hold.settle(usd(10_000))
    with pytest.raises(OverBudgetError):
        purse.take(usd(1))


def test_a_childs_spending_is_its_parents_and_its_limit_its_own() -> None:
    parent = Purse(Budget(usd=0.0001))
    child = Purse(Budget(calls=1), parent)
    hold = child.take(Amount(money=MicroUsd(70), calls=1))
    assert hold is not None
    assert parent.take(usd(40)) is None
    assert child.left == (30, None, 0)
    assert parent.left == (30, None, None)
    hold.settle(Amount(money=MicroUsd(70), calls=1))
    with pytest.raises(OverBudgetError):
        child.take(usd(31))
    assert parent.spent.money == 70


async def test_who_waits_is_served_in_order_and_refused_when_nothing_can_come() -> None:
    purse = Purse(Budget(usd=0.0001))
    first = await purse.reserve(usd(80))
    big, small = (asyncio.create_task(purse.reserve(usd(most))) for most in (60, 10))
    await asyncio.sleep(0)
    assert not small.done()
    first.settle(usd(50))
    with pytest.raises(OverBudgetError):
        await big
    (await small).settle(usd(10))
    assert purse.spent.money == 60


async def test_what_takes_nothing_waits_behind_nobody() -> None:
    """A free tool would else wait for a call that waits for what the tool's own agent holds."""
    purse = Purse(Budget(usd=0.0001))
    first = await purse.reserve(usd(100))
    waiting = asyncio.create_task(purse.reserve(usd(100)))
    await asyncio.sleep(0)
    (await purse.reserve(NOTHING)).settle(NOTHING)
    assert not waiting.done()
    first.settle(NOTHING)
    (await waiting).settle(NOTHING)


async def test_who_stops_waiting_leaves_nothing_reserved() -> None:
    purse = Purse(Budget(usd=0.0001))
    first = await purse.reserve(usd(100))
    waiting = [asyncio.create_task(purse.reserve(usd(100))) for _ in range(2)]
    await asyncio.sleep(0)
    first.settle(NOTHING)
    waiting[0].cancel()
    (await waiting[1]).settle(NOTHING)
    assert purse.held == NOTHING


calls = st.lists(st.tuples(st.integers(0, 60), st.floats(0, 1)), min_size=64, max_size=200)


@given(calls, st.integers(0, 400), st.integers(0, 400))
def test_sixty_four_concurrent_calls_never_pass_a_limit_by_one_micro_dollar(
    calls: list[tuple[int, float]], parents: int, childs: int
) -> None:
    asyncio.run(_spend(calls, parents, childs))


async def _spend(calls: list[tuple[int, float]], parents: int, childs: int) -> None:
    parent = Purse(Budget(usd=parents / 1_000_000))
    purses = [parent, Purse(Budget(usd=childs / 1_000_000), parent), Purse(None, parent)]
    at_once = asyncio.Semaphore(64)
    paid = refused = 0

    async def call(number: int, most: int, share: float) -> None:
        nonlocal paid, refused
        async with at_once:
            try:
                hold: Hold = await purses[number % 3].reserve(usd(most))
            except OverBudgetError:
                refused += most
                return
            with hold:
                for _ in range(number % 4):
                    await asyncio.sleep(0)
                hold.settle(usd(int(most * share)))
                paid += int(most * share)
        assert all(
            purse.spent.money + purse.held.money <= limit
            for purse, limit in zip(purses, (parents, childs), strict=False)
        )

    await asyncio.gather(*(call(number, most, share) for number, (most, share) in enumerate(calls)))
    assert parent.spent.money == paid <= parents
    assert purses[1].spent.money <= childs
    assert all(purse.held == NOTHING for purse in purses)
