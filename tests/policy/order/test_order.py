"""Whose turn it is: every order as it says, shares within their bound, nobody starved, nothing lost."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.task import SpanId, TaskId
from headway.policy.order.orders import EarliestDeadline, FirstCome, LeastAttained, LongestPath
from headway.policy.order.queue import Fairness, Queue
from headway.policy.order.shares import Shares
from headway.policy.order.waiting import Lane, Order, Served, Waiting
from headway.policy.route import RouteRequest

ORDERS = [FirstCome, LeastAttained, EarliestDeadline, LongestPath]


def waiting(
    name: str,
    arrived: float = 0.0,
    *,
    task: str = "",
    tenant: str = "",
    lane: Lane = "interactive",
    deadline: float | None = None,
    parent: str | None = None,
    priority: int = 0,
) -> Waiting:
    return Waiting(
        request=RouteRequest(model="m", task=TaskId(task or name), call=SpanId(name)),
        arrived=arrived,
        tenant=tenant,
        lane=lane,
        deadline=deadline,
        parent=None if parent is None else SpanId(parent),
        priority=priority,
    )


def served(name: str, task: str, seconds: float, parent: str | None = None) -> Served:
    return Served(call=SpanId(name), task=TaskId(task), parent=parent and SpanId(parent), seconds=seconds)  # type: ignore[arg-type] - drawn


def drained(queue: Queue, fairness: Fairness, tokens: float = 1.0) -> list[str]:
    names: list[str] = []
    while (first := queue.first()) is not None:
        queue.remove(first.request.call)
        fairness.take(first, tokens)
        names.append(first.request.call)
    return names


def in_order(order: Order, *calls: Waiting) -> list[str]:
    fairness = Fairness()
    queue = Queue(order, fairness)
    for call in calls:
        queue.push(call)
    return drained(queue, fairness)


def test_first_come_is_by_task() -> None:
    order = FirstCome()
    in_order(order, waiting("a1", 1.0, task="a"), waiting("b1", 2.0, task="b"))
    assert in_order(order, waiting("c1", 3.0, task="c"), waiting("a2", 9.0, task="a")) == ["a2", "c1"]
    assert in_order(order, waiting("c2", 9.0, task="c"), waiting("a3", 302.0, task="a")) == ["a3", "c2"]
    assert in_order(order, waiting("c3", 9.0, task="c"), waiting("a4", 304.0, task="a")) == ["c3", "a4"]


def test_least_attained_ages() -> None:
    order = LeastAttained()
    order.observe(served("x", "old", 3.0))
    order.observe(served("y", "old", 1.0))
    # 4 seconds of service are made up for by 32 of waiting.
    assert in_order(order, waiting("o", 0.0, task="old"), waiting("n", 31.0, task="new")) == ["n", "o"]
    assert in_order(order, waiting("o", 0.0, task="old"), waiting("n", 33.0, task="new")) == ["o", "n"]


def test_service_while_a_call_waits_moves_it_back() -> None:
    order, fairness = LeastAttained(), Fairness()
    queue = Queue(order, fairness)
    queue.push(waiting("a", 0.0, task="a"))
    queue.push(waiting("b", 1.0, task="b"))
    order.observe(served("x", "a", 5.0))
    assert drained(queue, fairness) == ["b", "a"]


def test_earliest_deadline_first_and_five_minutes_for_those_without() -> None:
    calls = (waiting("none", 0.0), waiting("late", 0.0, deadline=301.0), waiting("soon", 9.0, deadline=299.0))
    assert in_order(EarliestDeadline(), *calls) == ["soon", "none", "late"]


def test_the_longest_path_goes_first() -> None:
    order = LongestPath()
    order.observe(served("root", "t", 2.0))
    order.observe(served("left", "t", 5.0, parent="root"))
    order.observe(served("right", "t", 1.0, parent="root"))
    calls = (waiting("r", 0.0, parent="right"), waiting("l", 0.0, parent="left"), waiting("new", 0.0))
    assert in_order(order, *calls) == ["l", "r", "new"]


def test_a_level_of_priority_is_worth_ten_seconds() -> None:
    calls = (waiting("plain", 0.0), waiting("early", 9.0, priority=1), waiting("late", 11.0, priority=1))
    assert in_order(FirstCome(), *calls) == ["early", "plain", "late"]


@pytest.mark.parametrize("kind", ORDERS)
def test_calls_that_are_alike_keep_their_order(kind: type[Order]) -> None:
    names = [f"{number:02}" for number in range(30)]
    assert in_order(kind(), *(waiting(name, 5.0) for name in names)) == names


TENANTS = st.sampled_from(["a", "b", "c"])


@given(
    st.dictionaries(TENANTS, st.floats(0.1, 10), min_size=3, max_size=3),
    st.lists(st.floats(1, 100), min_size=10, max_size=200),
)
def test_tenants_who_keep_asking_differ_by_no_more_than_their_largest_requests(
    weights: dict[str, float], sizes: list[float]
) -> None:
    shares, got, largest = Shares(weights), Counter[str](), Counter[str]()
    for size in sizes:
        name = min("abc", key=shares.start)
        shares.take(name, size)
        got[name] += size  # type: ignore[assignment] - drawn
        largest[name] = max(largest[name], size)  # type: ignore[assignment] - drawn
    most = max(sizes)
    for one, other in combinations("abc", 2):
        bound = most / weights[one] + most / weights[other]
        assert abs(got[one] / weights[one] - got[other] / weights[other]) <= bound + 1e-6


def test_who_was_away_saves_nothing_up() -> None:
    shares = Shares()
    for _ in range(100):
        shares.take("a", 10)
    # Virtual time stands at 990: b begins there and not at 0, so it gets no hundred turns in a row.
    turns: list[str] = []
    for _ in range(6):
        name = min("ab", key=shares.start)
        shares.take(name, 10)
        turns.append(name)
    assert turns.count("b") <= 4
    assert turns.count("a") >= 2


def test_a_tenant_pays_for_what_was_used_in_the_end() -> None:
    shares = Shares()
    shares.take("a", 10)
    shares.take("b", 10)
    shares.correct("a", 100)
    assert min("ab", key=shares.start) == "b"
    assert shares.start("a") == 110
    shares.correct("nobody", 5)


def test_a_flood_of_one_tenant_does_not_delay_another() -> None:
    fairness = Fairness()
    queue = Queue(FirstCome(), fairness)
    for number in range(100):
        queue.push(waiting(f"a{number}", 0.0, tenant="a"))
    queue.push(waiting("b", 50.0, tenant="b"))
    assert "b" in drained(queue, fairness)[:2]


def test_batch_gets_a_twentieth_while_interactive_wants_everything_and_all_when_it_wants_nothing() -> None:
    fairness = Fairness()
    queue = Queue(FirstCome(), fairness)
    for number in range(95):
        queue.push(waiting(f"i{number}", 0.0))
    for number in range(20):
        queue.push(waiting(f"b{number}", 0.0, lane="batch"))
    order = drained(queue, fairness)
    assert sum(name.startswith("b") for name in order[:100]) in {4, 5, 6}
    assert len(order) == 115


CALLS = st.lists(
    st.tuples(TENANTS, st.sampled_from(["interactive", "batch"]), st.integers(0, 9), st.integers(0, 5)), max_size=40
)


@pytest.mark.parametrize("kind", ORDERS)
@given(CALLS, st.sets(st.integers(0, 39)))
def test_every_call_comes_out_once_unless_it_left(
    kind: type[Order], calls: list[tuple[str, Lane, int, int]], leave: set[int]
) -> None:
    fairness = Fairness({"a": 3.0})
    queue = Queue(kind(), fairness)
    for number, (tenant, lane, task, priority) in enumerate(calls):
        name = str(number)
        queue.push(waiting(name, float(number), task=f"t{task}", tenant=tenant, lane=lane, priority=priority))
    left = {str(number) for number in leave if number < len(calls)}
    assert all(queue.remove(SpanId(name)) is not None for name in left)
    assert queue.remove(SpanId("unknown")) is None
    assert len(queue) == len(calls) - len(left) == queue.count("interactive") + queue.count("batch")
    assert sorted(drained(queue, fairness)) == sorted({str(n) for n in range(len(calls))} - left)
    assert len(queue) == 0


@pytest.mark.parametrize("kind", ORDERS)
def test_nobody_starves_however_many_come_that_the_order_likes_better(kind: type[Order]) -> None:
    order, fairness = kind(), Fairness()
    order.observe(served("p", "victim", 10_000.0))
    order.observe(served("long", "other", 10_000.0))
    queue = Queue(order, fairness)
    queue.push(waiting("victim", 0.0, task="victim", deadline=5_000.0))
    waited = 0
    for second in range(1, 20_000):
        # One is served each second, and one comes that is fresh, urgent, and on the longest path.
        queue.push(waiting(str(second), float(second), parent="long", deadline=float(second) + 1))
        first = queue.first()
        assert first is not None
        queue.remove(first.request.call)
        fairness.take(first, 1.0)
        waited = second
        if first.request.call == "victim":
            break
    assert waited <= 8 * 600 + 201  # as aging promises; see the orders


def test_lookahead_gives_those_who_come_next() -> None:
    fairness = Fairness()
    queue = Queue(FirstCome(), fairness)
    for number in range(6):
        queue.push(waiting(str(number), float(number)))
    first = queue.first()
    assert first is not None
    assert [call.request.call for call in queue.after(first, 2)] == ["1", "2"]
