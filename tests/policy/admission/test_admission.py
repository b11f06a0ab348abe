"""Tasks get places by what stays warm, give them up when they stay away, and nobody waits for ever."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from routing import A, B, call, chain

from headway.core.fleet import Replica, ReplicaId
from headway.core.task import SpanId, TaskId
from headway.policy.admission.capacity import Capacity
from headway.policy.admission.gaps import ToolGaps
from headway.policy.admission.places import Places
from headway.policy.admission.promises import Promises
from headway.policy.admission.window import Window
from headway.policy.order.waiting import Waiting
from headway.policy.route import RouteDone
from headway.policy.routing.flights import Load
from headway.policy.speed import GUESS, Speeds


def test_a_place_is_kept_for_as_long_as_pays() -> None:
    gaps = ToolGaps()
    for seconds in (1, 1, 1, 1, 1, 1, 9, 9):
        gaps.returned("bash", float(seconds))
    # For 10 s saved: 6/8 · 10 - 1 = 6.5 at 1 s, 10 - 9 = 1 at 9 s.
    assert gaps.ttl("bash", worth=10.0, cost=1.0) == 1.0
    # For 40 s saved: 30 - 1 = 29 at 1 s, 40 - 9 = 31 at 9 s.
    assert gaps.ttl("bash", worth=40.0, cost=1.0) == 9.0
    # For 1 s saved: 0.75 - 1 < 0.
    assert gaps.ttl("bash", worth=1.0, cost=1.0) == 0.0


def test_before_enough_is_seen_durations_are_exponential() -> None:
    gaps = ToolGaps()
    # Mean 2 s; quantiles at -2 ln(1 - q): 9.5 - 2 · 3.0 = 3.5 at 95 %, 9 - 4.6 = 4.4 at 90 %, 7.5 - 2.8 = 4.7 at 75 %.
    assert gaps.ttl("bash", worth=10.0, cost=1.0) == pytest.approx(-2 * log(0.25))


def test_tasks_that_never_came_back_shorten_the_wait_for_others() -> None:
    gaps = ToolGaps()
    gaps.returned("", 5.0)
    for _ in range(9):
        gaps.gone("")
    # One in ten comes back, after 5 s: 0.1 · 40 - 5 < 0.
    assert gaps.ttl("", worth=40.0, cost=1.0) == 0.0
    gaps.returned("", 1.0, given_up=True)
    # Two in ten: 0.1 · 40 - 1 = 3 at 1 s.
    assert gaps.ttl("", worth=40.0, cost=1.0) == 1.0


def used(
    capacity: Capacity,
    expected: int,
    cached: int,
    *,
    count: int = 2,
    held: float,
    since: float,
    now: float,
    idle: bool = False,
) -> None:
    capacity.used(expected, cached, count, held, since, now, idle=idle)


def test_capacity_is_unknown_until_something_is_lost_and_then_cut() -> None:
    capacity = Capacity()
    used(capacity, 1000, 1000, held=9000, since=0.0, now=1.0)
    used(capacity, 1000, 900, held=9000, since=0.0, now=1.0)  # a tenth may be missing
    assert capacity.tokens is None
    used(capacity, 1000, 0, held=8000, since=0.0, now=2.0)
    assert capacity.tokens == 4000.0
    used(capacity, 1000, 0, held=8000, since=1.9, now=3.0)  # lost before the cut
    assert capacity.tokens == 4000.0
    used(capacity, 1000, 500, held=4000, since=2.5, now=4.0)
    assert capacity.tokens == 3000.0


def test_capacity_climbs_while_full_and_creeps_near_where_it_was_lost() -> None:
    capacity = Capacity()
    used(capacity, 1000, 0, held=4000, since=0.0, now=1.0)
    assert capacity.tokens == 2000.0
    used(capacity, 1000, 1000, held=1700, since=1.0, now=2.0)  # not full: says nothing
    assert capacity.tokens == 2000.0
    used(capacity, 1000, 1000, held=1900, since=1.0, now=2.0)
    assert capacity.tokens == 2100.0
    used(capacity, 10_000, 10_000, held=2000, since=1.0, now=2.0)
    used(capacity, 10_000, 10_000, held=4000, since=1.0, now=2.0)
    assert capacity.tokens == 4100.0
    used(capacity, 1000, 1000, held=4000, since=1.0, now=2.0)
    assert capacity.tokens == 4110.0  # beyond 0.9 · 4000


def test_an_engine_that_says_how_many_it_serves_has_as_many_tasks_until_it_stands_idle_with_all_of_them() -> None:
    capacity = Capacity()
    capacity.told(2)
    assert capacity.fits(1, held=10**9, need=10**9)
    assert not capacity.fits(2, held=0, need=1)
    used(capacity, 1000, 1000, held=2000, since=0.0, now=1.0, idle=False)  # as busy as it can be
    used(capacity, 1000, 1000, count=1, held=1000, since=0.0, now=1.0, idle=True)  # a place is free
    assert not capacity.fits(2, held=0, need=1)
    used(capacity, 1000, 1000, held=2000, since=0.0, now=2.0, idle=True)
    used(capacity, 1000, 1000, count=3, held=2000, since=1.9, now=3.0, idle=True)  # it had left before there were three
    assert capacity.fits(2, held=2000, need=10**6)
    assert not capacity.fits(3, held=0, need=1)


def test_what_was_lost_counts_in_tokens_and_as_many_as_are_served_side_by_side_always_fit() -> None:
    capacity = Capacity()
    capacity.told(2)
    used(capacity, 1000, 0, count=3, held=3000, since=0.0, now=1.0)
    assert capacity.tokens == 1500.0
    assert capacity.fits(1, held=1400, need=1000)
    assert not capacity.fits(2, held=1400, need=1000)
    assert capacity.fits(2, held=400, need=1000)


class Shop:
    """Places at one replica, spoken to briefly."""

    def __init__(self, room: float | None = None) -> None:
        self.places = Places(Speeds())
        self.number = 0
        if room is not None:
            self.places.capacities[A] = Capacity()
            self.places.capacities[A].tokens = room

    def call(
        self,
        task: str,
        tokens: int,
        at: float,
        *,
        ends: float | None = None,
        cached: int | None = None,
        tool: str = "t",
    ) -> str:
        self.number += 1
        name = f"{task}{self.number}"
        request = call(name, chain((hash(task), tokens)), session=task)
        self.places.sent(A, request, 0, at)
        if ends is not None:
            self.end(name, task, tokens, ends, cached=cached, tool=tool)
        return name

    def end(self, name: str, task: str, tokens: int, at: float, *, cached: int | None = None, tool: str = "t") -> None:
        done = RouteDone(replica=A, task=TaskId(task), failed=False, call=SpanId(name), at=at)
        self.places.done(_with(done, tokens, cached, tool))


def _with(done: RouteDone, tokens: int, cached: int | None, tool: str) -> RouteDone:
    return RouteDone(
        replica=done.replica,
        task=done.task,
        failed=False,
        call=done.call,
        at=done.at,
        input_tokens=tokens,
        cached_tokens=cached,
        output_tokens=0,
        tools=(tool,) if tool else (),
    )


def test_one_task_always_has_room_and_more_only_as_far_as_it_goes() -> None:
    shop = Shop(room=1000)
    assert shop.places.room(A, 5000)
    shop.call("s", 600, 0.0)
    assert shop.places.room(A, 400)
    assert not shop.places.room(A, 401)
    assert shop.places.room(B, 10**9)
    assert (shop.places.home(TaskId("s")), shop.places.home(TaskId("x"))) == (A, None)


def test_a_working_set_is_the_last_prompt_of_each_history() -> None:
    places = Places(Speeds())
    main, sub = chain((1, 100), (2, 300)), chain((7, 50))
    places.sent(A, call("1", main, session="t"), 10, 0.0)
    places.sent(A, call("2", sub, session="t"), 10, 0.0)
    assert places.held(A) == 410 + 60
    places.sent(A, call("3", (*main, (3, 900)), session="t"), 10, 1.0)
    assert places.held(A) == 910 + 60


def test_a_task_that_stays_away_for_longer_than_pays_gives_up_its_place_when_somebody_waits() -> None:
    shop = Shop(room=1000)
    shop.call("s", 900, 0.0, ends=1.0)
    # Worth 900 · 0.0002 + 2 s of queueing = 2.18 s; exponential with a mean of 2 s: 0.5 · 2.18 - 1.39 < 0 but
    # 0.25 · 2.18 - 0.58 < 0 too: nothing pays.
    assert shop.places.make_room(A, 500, requeue=2.0, now=1.1)
    assert shop.places.home(TaskId("s")) is None
    shop.call("v", 900, 2.0)
    assert not shop.places.make_room(A, 500, requeue=2.0, now=50.0)  # it is being served


def test_what_pays_is_kept() -> None:
    shop = Shop(room=1000)
    shop.call("s", 900, 0.0, ends=1.0)
    # Worth 20.18 s: 0.9 · 20.18 - 4.61 = 13.6 is the best, at 4.61 s.
    assert not shop.places.make_room(A, 500, requeue=20.0, now=5.5)
    assert shop.places.make_room(A, 500, requeue=20.0, now=5.7)


def test_more_than_stays_warm_is_paused_smallest_at_its_tools_first() -> None:
    shop = Shop()
    shop.call("big", 500, 0.0, ends=1.0)
    shop.call("small", 100, 0.0, ends=1.0)
    busy = shop.call("busy", 400, 0.0)
    shop.places.capacities[A] = Capacity()
    shop.places.capacities[A].tokens = 450.0
    shop.places.shrink(A)
    # 1,000 tokens against 450: small (100) and big (500) go; 400 stay.
    assert [shop.places.home(TaskId(task)) for task in ("small", "big", "busy")] == [None, None, A]
    shop.end(busy, "busy", 400, 2.0)
    assert shop.places.held(A) == 400


def test_those_being_served_are_paused_at_the_end_of_their_turn() -> None:
    shop = Shop()
    first, second = shop.call("a", 500, 0.0), shop.call("b", 400, 0.0)
    shop.places.capacities[A] = Capacity()
    shop.places.capacities[A].tokens = 500.0
    shop.places.shrink(A)
    assert shop.places.count(A) == 2
    shop.end(second, "b", 400, 1.0)
    assert (shop.places.home(TaskId("b")), shop.places.home(TaskId("a"))) == (None, A)
    shop.end(first, "a", 500, 1.0)
    assert shop.places.home(TaskId("a")) == A


def test_nothing_is_concluded_of_an_engine_that_never_says_that_it_had_anything_cached() -> None:
    shop = Shop()
    shop.call("a", 1000, 0.0, ends=1.0, cached=0)
    shop.call("b", 1000, 1.0, ends=2.0, cached=0)
    shop.call("a", 1000, 3.0, ends=4.0, cached=0)
    assert A not in shop.places.capacities


def test_capacity_is_learnt_from_what_a_task_did_not_find() -> None:
    shop = Shop()
    shop.call("a", 1000, 0.0, ends=1.0, cached=0)
    shop.call("b", 1000, 1.0, ends=2.0, cached=16)
    assert A not in shop.places.capacities  # nothing was expected of first calls
    shop.call("a", 1000, 3.0, ends=4.0, cached=0)
    assert shop.places.capacities[A].tokens == 1000.0  # half of the 2,000 that were held


def test_a_replica_that_serves_two_has_two_tasks_and_a_third_once_it_stands_idle() -> None:
    shop = Shop()
    shop.places.meet(Replica(id=A, url="http://127.0.0.1:1/v1", slots=2))
    shop.call("a", 1000, 0.0, ends=1.0, cached=0)
    assert shop.places.room(A, 1000)
    busy = shop.call("b", 1000, 0.0)
    shop.call("a", 1000, 2.0, ends=3.0, cached=1000)  # beside b: both are busy
    assert not shop.places.room(A, 1000)
    shop.end(busy, "b", 1000, 4.0)
    shop.call("a", 1000, 5.0, ends=6.0, cached=1000)  # alone, and warm
    assert shop.places.room(A, 1000)
    shop.call("c", 1000, 6.0, ends=7.0, cached=0)
    assert not shop.places.room(A, 1000)


def test_a_task_that_is_kept_waiting_for_is_pressed_for() -> None:
    shop = Shop(room=1000)
    shop.call("old", 500, 0.0, ends=1.0)
    busy = shop.call("older", 400, -5.0)
    shop.places.press(A)
    assert shop.places.home(TaskId("older")) == A
    shop.places.press(A)  # one at a time
    assert shop.places.home(TaskId("old")) == A
    shop.end(busy, "older", 400, 3.0)
    assert shop.places.home(TaskId("older")) is None


def test_a_lost_replica_has_no_tasks() -> None:
    shop = Shop(room=1000)
    name = shop.call("s", 900, 0.0)
    shop.places.lost(A)
    assert (shop.places.home(TaskId("s")), shop.places.held(A), shop.places.count(A)) == (None, 0, 0)
    shop.end(name, "s", 900, 1.0)
    shop.places.press(A)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "end", "room", "shrink", "press", "lost"]),
        st.sampled_from([A, B]),
        st.integers(0, 5),
        st.integers(1, 900),
    ),
    max_size=80,
)


@given(STEPS)
def test_tokens_held_are_those_of_who_has_a_place(steps: list[tuple[str, ReplicaId, int, int]]) -> None:
    places, flying, now = Places(Speeds()), list[tuple[str, str, ReplicaId]](), 0.0
    for number, (kind, replica, task, tokens) in enumerate(steps):
        now += tokens / 100
        if kind == "send":
            places.sent(replica, call(str(number), chain((task, tokens)), session=f"t{task}"), 5, now)
            flying.append((str(number), f"t{task}", replica))
        elif kind == "end" and flying:
            name, owner, where = flying.pop(task % len(flying))
            done = RouteDone(replica=where, task=TaskId(owner), failed=False, call=SpanId(name), at=now)
            places.done(_with(done, tokens, tokens // 2, "t"))
        elif kind == "room":
            places.make_room(replica, tokens, 1.0, now)
        elif kind == "shrink":
            places.shrink(replica)
        elif kind == "press":
            places.press(replica)
        elif kind == "lost":
            places.lost(replica)
        for one in (A, B):
            at = places._at.get(one)  # pyright: ignore[reportPrivateUsage] - the sum must be seen inside
            assert places.held(one) == sum(place.tokens for place in (at or {}).values())
            assert all(place.flying >= 0 for place in (at or {}).values())


def test_a_window_grows_by_one_until_something_is_late_then_shrinks() -> None:
    window = Window()
    window.observe(0.1, alone=0.1, calls=8)
    assert window.limit == 9.0
    window.observe(0.1, alone=0.1, calls=3)  # it was not full
    assert window.limit == 9.0
    window.observe(1.0, alone=0.1, calls=8)
    assert window.limit == pytest.approx(6.8)
    window.observe(1.0, alone=0.1, calls=6)  # the same windowful
    assert window.limit == pytest.approx(6.8)
    window.observe(0.1, alone=0.1, calls=6)
    assert window.limit == pytest.approx(6.8 + 1 / 6.8)


def test_a_window_lets_one_call_through_always_and_half_a_second_of_prefill() -> None:
    window = Window()
    assert window.open("batch", Load(), 10**6, GUESS, 0.0)
    # 0.0002 s a token: 2,500 tokens are half a second.
    assert window.open("interactive", Load(calls=1, prefill=1000), 1500, GUESS, 0.0)
    assert not window.open("interactive", Load(calls=1, prefill=1000), 1501, GUESS, 0.0)
    assert window.open("interactive", Load(calls=1, decoding=1), 10**6, GUESS, 0.0)
    assert not window.open("interactive", Load(calls=8, decoding=8), 1, GUESS, 0.0)


def test_batch_takes_one_of_ten_while_there_are_interactive_calls_and_everything_when_there_are_none() -> None:
    window = Window()
    assert window.open("batch", Load(calls=7, decoding=7), 1, GUESS, 0.0)
    window.sent("interactive", 0.0)
    assert window.open("batch", Load(calls=1, decoding=1), 1, GUESS, 60.0)
    assert not window.open("batch", Load(calls=2, decoding=2), 1, GUESS, 60.0)  # one of two is of batch
    assert not window.open("batch", Load(calls=1, prefill=10), 1, GUESS, 60.0)  # a prompt is being computed
    assert window.open("interactive", Load(calls=3, prefill=10), 1, GUESS, 60.0)
    window.ended("interactive")
    assert window.open("batch", Load(calls=7, decoding=7), 1, GUESS, 60.1)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10), st.integers(0, 50)), max_size=100))
def test_a_window_stays_in_bounds(steps: list[tuple[float, float, int]]) -> None:
    window = Window()
    for seconds, alone, calls in steps:
        window.observe(seconds, alone, calls)
        assert 2 <= window.limit <= 1024


def asking(deadline: float | None) -> Waiting:
    return Waiting(request=call(), arrived=0.0, deadline=deadline)


def test_what_cannot_be_done_in_time_is_refused_with_a_time_to_come_again() -> None:
    promises = Promises()
    assert promises.late(asking(5.0), seconds=4.0, ahead=100, now=0.0) is None  # the queue was never seen
    promises.sent(0.0, left=5)
    promises.sent(2.0, left=5)
    assert promises.wait(3, 2.0) == 6.0
    assert promises.wait(3, 5.0) == 7.0  # it has not moved for 3 s and usually does after 2
    refused = promises.late(asking(10.0), seconds=4.0, ahead=3, now=2.0)
    assert refused is not None
    assert (refused.cause, refused.retry_after) == ("deadline", 2.0)  # 6 + 4 of 8 s
    assert "3 calls wait before it" in refused.reason
    assert promises.late(asking(12.0), seconds=4.0, ahead=3, now=2.0) is None
    assert promises.late(asking(None), seconds=1e9, ahead=10**9, now=2.0) is None


def test_where_waiting_does_not_help_no_time_is_given() -> None:
    refused = Promises().late(asking(3.0), seconds=4.0, ahead=0, now=0.0)
    assert refused is not None
    assert refused.retry_after is None
    assert "without any waiting" in refused.reason


def test_pauses_with_an_empty_queue_are_no_measure_of_its_speed() -> None:
    promises = Promises()
    promises.sent(0.0, left=0)
    promises.sent(100.0, left=1)
    assert promises.wait(5, 100.0) == 0.0
