"""Each selectable policy does what its published rule says; the expected numbers are worked out by hand."""

import pytest
from msgspec import structs
from routing import A, B, call, chain, done, fleet, load, scores, sent, started, winner

from headway.core.fleet import FleetView, ReplicaId
from headway.policy.route import RouteDone, RouteLost, RoutePolicy
from headway.policy.routing.cache_aware import CacheAware
from headway.policy.routing.dynamo import DynamoCost
from headway.policy.routing.expected_seconds import ExpectedSeconds
from headway.policy.routing.least_loaded import LeastLoaded
from headway.policy.routing.preble import PrebleE2
from headway.policy.routing.round_robin import RoundRobin
from headway.policy.routing.session_home import SessionHome

PROMPT = chain((1, 1000), (2, 600))


@pytest.mark.parametrize("kind", [RoundRobin, SessionHome, CacheAware, DynamoCost, PrebleE2, ExpectedSeconds])
def test_no_policy_sends_a_call_where_it_cannot_be_answered(kind: type[RoutePolicy]) -> None:
    policy = kind()
    view = FleetView((load("a", healthy=False), load("b", models=("other",)), load("c"), load("d")))
    assert {winner(policy, call(excluded=("d",)), view) for _ in range(4)} == {"c"}
    refused = policy.decide(call(excluded=("c", "d")), view, 0.0)
    assert (refused.replica, refused.refusal) == (None, "excluded")


@pytest.mark.parametrize("kind", [LeastLoaded, SessionHome, CacheAware, DynamoCost, PrebleE2, ExpectedSeconds])
def test_whom_a_replica_could_not_serve_is_sent_elsewhere(kind: type[RoutePolicy]) -> None:
    policy, view, request = kind(), fleet(a=0, b=0), call("x", PROMPT, session="s")
    first = winner(policy, request, view)
    sent(policy, first, request)
    unserved = RouteDone(replica=ReplicaId(first), task=request.task, failed=True, unserved=True, call=request.call)
    policy.observe(structs.replace(unserved, at=1.0))
    again = call("y", PROMPT, session="s")
    receipt = policy.decide(again, view, 2.0).receipt
    assert {first, receipt.winner} == {"a", "b"}
    assert receipt.notes == (f"{first} was left out, as it could not serve this task's last call.",)
    alone = call("z", PROMPT, session="s", excluded=tuple({"a", "b"} - {first}))
    only = policy.decide(alone, view, 2.0).receipt
    assert (only.winner, only.notes) == (first, ())


def test_round_robin_goes_round_whatever_the_load() -> None:
    policy = RoundRobin()
    assert [winner(policy, call(), fleet(a=9, b=0, c=3)) for _ in range(5)] == ["a", "b", "c", "a", "b"]


def test_a_session_stays_at_home_and_a_new_one_goes_to_the_least_loaded() -> None:
    policy, view = SessionHome(), fleet(a=5, b=0)
    assert winner(policy, call(session="s"), view) == "b"
    sent(policy, "a", call("x", session="s"))
    assert winner(policy, call(session="s"), view) == "a"
    assert winner(policy, call(session="s", excluded=("a",)), view) == "b"


def test_a_home_is_forgotten_ten_minutes_after_its_last_call_ended() -> None:
    policy, view = SessionHome(), fleet(a=5, b=0)
    sent(policy, "a", call("x", session="s"), at=0.0)
    done(policy, "a", "x", 100.0, (10, 0, 5))
    assert winner(policy, call(session="s"), view, now=700.0) == "a"
    assert winner(policy, call(session="s"), view, now=700.1) == "b"


def test_sglangs_rule_needs_more_than_half_of_the_prompt() -> None:
    policy, view = CacheAware(), fleet(a=1, b=0)
    sent(policy, "a", call("x", chain((1, 1000))))
    assert winner(policy, call(prompt=chain((1, 1000), (2, 999))), view) == "a"
    assert winner(policy, call(prompt=chain((1, 1000), (2, 1000))), view) == "b"


def test_sglangs_rule_balances_only_when_both_thresholds_are_passed() -> None:
    policy = CacheAware()
    sent(policy, "a", call("x", PROMPT))
    assert winner(policy, call(prompt=PROMPT), fleet(a=32, b=0)) == "a"  # 32 is not more than 32
    assert winner(policy, call(prompt=PROMPT), fleet(a=33, b=0)) == "b"
    assert winner(policy, call(prompt=PROMPT), fleet(a=440, b=400)) == "a"  # 440 is not more than 1.1 · 400
    policy.observe(RouteLost(replica=A))
    assert winner(policy, call(prompt=PROMPT), fleet(a=1, b=0)) == "b"


def test_dynamos_cost_in_blocks() -> None:
    policy = DynamoCost()
    sent(policy, "a", call("x", PROMPT))
    # a: prefill of 1,600 under way and 1,600 to come, 100 of 200 blocks held: 200 - 100; its call takes 100 blocks.
    assert scores(policy, call("y", PROMPT), fleet(a=1, b=0)) == {"a": 200.0, "b": 100.0}
    started(policy, "a", "x", 1.0)
    assert scores(policy, call("y", PROMPT), fleet(a=1, b=0)) == {"a": 100.0, "b": 100.0}
    done(policy, "a", "x", 2.0, (1600, 0, 10))
    assert scores(policy, call("y", PROMPT), fleet(a=0, b=0)) == {"a": 0.0, "b": 100.0}


def test_dynamos_credit_shrinks_under_excess_load() -> None:
    policy = DynamoCost(decay=0.01)
    sent(policy, "a", call("x", PROMPT))
    started(policy, "a", "x", 1.0)
    # 100 decode blocks more than b: the credit of 100 blocks is halved.
    assert scores(policy, call("y", PROMPT), fleet(a=1, b=0))["a"] == 100 - 100 / 2 + 100


def test_dynamos_temperature_draws_by_cost() -> None:
    policy, view = DynamoCost(temperature=1.0), fleet(a=0, b=0)
    sent(policy, "a", call("x", PROMPT))
    done(policy, "a", "x", 2.0, (1600, 0, 10))
    # Costs 0 and 100, so weights 1 and 1/e: a has 1 / (1 + 1/e) = 0.7311 of the draws.
    assert winner(policy, call("y", PROMPT, draw=0.7310), view) == "a"
    assert winner(policy, call("y", PROMPT, draw=0.7312), view) == "b"


def test_preble_explores_with_a_new_prompt_and_exploits_a_cached_one() -> None:
    policy, view = PrebleE2(), fleet(a=0, b=0)
    sent(policy, "a", call("x", PROMPT), at=0.0)
    # 1,600 tokens were computed at a within the window and none at b.
    assert winner(policy, call("y", chain((7, 500))), view, now=2.0) == "b"
    sent(policy, "b", call("z", chain((8, 1200))), at=2.0)
    # 1,599 new tokens are fewer than the 1,600 that a holds; 1,600 are not.
    assert winner(policy, call("y", (*PROMPT, (3, 3199))), view, now=2.0) == "a"
    assert winner(policy, call("y", (*PROMPT, (3, 3200))), view, now=2.0) == "b"


def test_preble_forgets_after_three_minutes() -> None:
    policy, view = PrebleE2(), fleet(a=0, b=0)
    sent(policy, "a", call("x", PROMPT), at=0.0)
    assert scores(policy, call("y", chain((7, 5))), view, now=180.0)["a"] > 0
    assert scores(policy, call("y", chain((7, 5))), view, now=180.1) == {"a": 0.0, "b": 0.0}


def test_preble_counts_calls_in_flight_as_answers_to_be_written() -> None:
    policy = PrebleE2()
    # 2 calls · 200 tokens · 0.02 s, before anything is learnt.
    assert scores(policy, call("y", chain((7, 5))), fleet(a=2, b=0)) == {"a": 8.0, "b": 0.0}


def test_preble_leaves_a_holder_that_costs_half_as_much_again_as_the_idlest() -> None:
    policy, view = PrebleE2(), fleet(a=0, b=0)
    sent(policy, "a", call("x", chain((1, 1600))), at=0.0)
    sent(policy, "b", call("z", chain((9, 1000))), at=0.0)
    assert winner(policy, call("y", chain((1, 1600), (2, 10))), view, now=1.0) == "b"
    sent(policy, "b", call("w", chain((9, 1000), (10, 100))), at=0.0)  # 1,600 is less than 1.5 · 1,100
    assert winner(policy, call("y", chain((1, 1600), (2, 10))), view, now=1.0) == "a"


def test_our_cost_before_anything_is_learnt() -> None:
    policy, view = ExpectedSeconds(), fleet(a=1, b=0)
    sent(policy, "a", call("x", PROMPT))
    # a holds 1,600 of 1,700 tokens but has to compute 1,600 first: 0.02 + 0.0002 · (100 + 1,600).
    # b has to compute all: 0.02 + 0.0002 · 1,700.
    new = (*PROMPT, (3, 1700))
    assert scores(policy, call("y", new), view) == pytest.approx({"a": 0.36, "b": 0.36})
    started(policy, "a", "x", 1.0)
    # One call writes at a: 0.02 + 0.0002 · 100 · 2 + 0.01 + 2 · 0.001 · 10 tokens.
    assert scores(policy, call("y", new), view) == pytest.approx({"a": 0.09, "b": 0.36})


def test_a_session_moves_only_for_more_than_a_tenth() -> None:
    policy = ExpectedSeconds()
    view = fleet(a=0, b=0)
    sent(policy, "a", call("x", chain((1, 1000)), session="s"), at=0.0)
    done(policy, "a", "x", 1.0, (None, None, None))
    sent(policy, "b", call("z", chain((1, 1000), (2, 50)), session="other"), at=0.0)
    done(policy, "b", "z", 1.0, (None, None, None))
    request = call("y", chain((1, 1000), (2, 50), (3, 650)), session="s")
    costs = scores(policy, request, view, now=2.0)
    assert costs["b"] < costs["a"]
    assert (winner(policy, request, view, now=2.0) == "a") == (costs["b"] > 0.9 * costs["a"])


def test_an_unknown_prompt_goes_home_for_what_is_held_there() -> None:
    policy = ExpectedSeconds()
    sent(policy, "b", call("x", session="s"), at=0.0)
    done(policy, "b", "x", 1.0, (5000, 0, 100))
    assert winner(policy, call("y", session="s"), fleet(a=0, b=0), now=2.0) == "b"


def test_two_choices_when_nothing_is_known() -> None:
    policy, view = ExpectedSeconds(), fleet(a=5, b=3, c=1)
    # 0.0 draws a and b; 0.5 draws the second of three and, half of the rest, the one after next but one: b and a.
    assert scores(policy, call(draw=0.0), view) == {"a": 5, "b": 3}
    assert winner(policy, call(draw=0.0), view) == "b"
    assert winner(policy, call(draw=0.3), view) == "c"  # a and c
    assert ExpectedSeconds().decide(call(draw=0.999), FleetView((load("a"),)), 0.0).receipt.winner == "a"


def test_a_replica_that_was_lost_is_unknown_again() -> None:
    policy = ExpectedSeconds()
    sent(policy, "a", call("x", PROMPT))
    policy.observe(RouteLost(replica=A))
    assert scores(policy, call("y", PROMPT), fleet(a=0, b=0)) == pytest.approx({"a": 0.34, "b": 0.34})
    assert policy.known.flights.load(B).calls == 0
