"""Of calls that share an uncomputed prefix one leads, and nobody waits for ever."""

from hypothesis import given
from hypothesis import strategies as st
from routing import A, B, chain

from headway.core.task import SpanId
from headway.policy.leader import Follow, Lead, SingleFlight

SHARED = (1, 1500)


def branch(number: int) -> tuple[tuple[int, int], ...]:
    return chain(SHARED, (10 + number, 50))


def test_a_fan_out_follows_its_first_branch() -> None:
    flights = SingleFlight()
    one, two, three = SpanId("1"), SpanId("2"), SpanId("3")
    assert flights.decide(one, A, branch(1), {}, 0.0) == Lead()
    assert flights.decide(two, A, branch(2), {}, 0.0) == Follow(one, 1500)
    assert flights.decide(three, A, branch(3), {}, 0.1) == Follow(one, 1500)
    assert flights.followers(one) == (two, three), "asking lets nobody go"
    assert flights.followers(two) == ()
    assert flights.released(one) == (two, three)
    assert flights.released(one) == flights.followers(one) == ()


def test_who_leads_only_at_another_replica_leads_nobody_here() -> None:
    flights = SingleFlight()
    flights.decide(SpanId("1"), A, branch(1), {}, 0.0)
    assert flights.decide(SpanId("2"), B, branch(2), {}, 0.0) == Lead()


def test_what_is_cached_or_short_is_not_waited_for() -> None:
    flights = SingleFlight(least=512)
    flights.decide(SpanId("1"), A, branch(1), {}, 0.0)
    # 988 of the 1,500 are cached: 512 are left and worth it; of 989, 511 are not.
    assert flights.decide(SpanId("2"), A, branch(2), {A: 988}, 0.0) == Follow(SpanId("1"), 1500)
    assert flights.decide(SpanId("3"), A, branch(3), {A: 989}, 0.0) == Lead()


def test_the_longest_shared_prefix_is_followed() -> None:
    flights = SingleFlight()
    flights.decide(SpanId("1"), A, chain(SHARED, (2, 100), (3, 10)), {}, 0.0)
    assert flights.decide(SpanId("2"), A, chain(SHARED, (2, 100), (4, 10)), {}, 0.0) == Follow(SpanId("1"), 1600)


def test_a_leader_that_never_answers_is_overdue() -> None:
    flights = SingleFlight(longest=30.0)
    flights.decide(SpanId("1"), A, branch(1), {}, 0.0)
    flights.decide(SpanId("2"), A, branch(2), {}, 1.0)
    assert flights.overdue(29.9) == ()
    assert flights.overdue(30.0) == (SpanId("1"),)
    assert flights.decide(SpanId("3"), A, branch(3), {}, 30.0) == Lead()
    assert flights.released(SpanId("1")) == (SpanId("2"),)
    assert flights.decide(SpanId("4"), A, branch(4), {}, 31.0) == Follow(SpanId("3"), 1500)


def test_a_follower_may_leave() -> None:
    flights = SingleFlight()
    flights.decide(SpanId("1"), A, branch(1), {}, 0.0)
    flights.decide(SpanId("2"), A, branch(2), {}, 0.0)
    flights.left(SpanId("2"), SpanId("1"))
    assert flights.released(SpanId("1")) == ()


@given(st.lists(st.tuples(st.sampled_from(["call", "release"]), st.integers(0, 5), st.integers(1, 3)), max_size=60))
def test_every_follower_is_released_once_and_nothing_is_kept(steps: list[tuple[str, int, int]]) -> None:
    flights, leading, following, number = SingleFlight(), set[SpanId](), set[SpanId](), 0
    for kind, which, root in steps:
        if kind == "call":
            number += 1
            call = SpanId(str(number))
            verdict = flights.decide(call, A, chain((root, 600), (1000 + number, 5)), {}, 0.0)
            (leading if isinstance(verdict, Lead) else following).add(call)
        elif leading:
            call = sorted(leading)[which % len(leading)]
            leading.remove(call)
            released = set(flights.released(call))
            assert released <= following
            following -= released
    for call in leading:
        following -= set(flights.released(call))
    assert not following
    assert not flights._leaders  # pyright: ignore[reportPrivateUsage] - that nothing is kept must be seen
