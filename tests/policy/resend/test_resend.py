"""Sending again never harms: bounded in number, in load and in time, and never what may not be sent twice."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.policy.resend import deadline
from headway.policy.resend.breaker import Breaker
from headway.policy.resend.budget import ResendBudget
from headway.policy.resend.hedge import Delays, Hedger
from headway.policy.resend.retry import Again, Failure, Fallback, GiveUp, Retries, RetryRules

OVERLOADED = Failure(status=503)


def test_a_budget_begins_full_and_fills_by_a_tenth_for_each_call() -> None:
    budget = ResendBudget(ratio=0.5, burst=2.0)
    assert [budget.take() for _ in range(3)] == [True, True, False]
    budget.called()
    assert not budget.take()
    budget.called()
    assert budget.take()
    for _ in range(9):
        budget.called()
    assert budget.left == 2.0


@given(st.lists(st.booleans(), max_size=200))
def test_resends_are_never_more_than_the_burst_and_a_tenth_of_calls(steps: list[bool]) -> None:
    budget, calls, resends = ResendBudget(), 0, 0
    for call in steps:
        if call:
            calls += 1
            budget.called()
        else:
            resends += budget.take()
        assert resends <= 10 + 0.1 * calls + 1e-9


def test_waits_double_and_are_drawn() -> None:
    retries, budget = Retries(chain=("m",), rules=RetryRules(attempts=4, cap=0.3)), ResendBudget()
    waits = [retries.decide(OVERLOADED, budget, 0.5, 0.0) for _ in range(4)]
    assert waits == [Again(0.05), Again(0.1), Again(0.15), GiveUp("attempts")]


def test_an_upstreams_own_wait_is_kept_up_to_a_bound() -> None:
    budget = ResendBudget()
    assert Retries(chain=("m",)).decide(Failure(status=429, retry_after=7.0), budget, 0.9, 0.0) == Again(7.0)
    assert Retries(chain=("m",)).decide(Failure(status=429, retry_after=31.0), budget, 0.9, 0.0) == GiveUp("patience")
    assert budget.left == 9.0


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (Failure(status=400), "permanent"),
        (Failure(status=401), "permanent"),
        (Failure(status=503, begun=True), "begun"),
        (Failure(idempotent=False), "not_idempotent"),
    ],
)
def test_what_must_not_be_sent_twice_is_not(failure: Failure, reason: str) -> None:
    budget = ResendBudget()
    verdict = Retries(chain=("m", "n")).decide(failure, budget, 0.0, 0.0)
    assert isinstance(verdict, GiveUp)
    assert (verdict.reason, budget.left) == (reason, 10.0)


def test_the_chain_is_gone_down_when_a_model_is_used_up() -> None:
    retries, budget = Retries(chain=("m", "n"), rules=RetryRules(attempts=2)), ResendBudget()
    steps = [retries.decide(OVERLOADED, budget, 0.0, 0.0) for _ in range(4)]
    assert steps == [Again(0.0), Fallback("n"), Again(0.0), GiveUp("attempts")]


def test_without_budget_the_next_model_is_tried_at_once() -> None:
    budget = ResendBudget(burst=0.0)
    assert Retries(chain=("m", "n")).decide(OVERLOADED, budget, 0.0, 0.0) == Fallback("n")
    assert Retries(chain=("m",)).decide(OVERLOADED, budget, 0.0, 0.0) == GiveUp("budget")


def test_nothing_is_sent_after_the_deadline() -> None:
    late = Retries(chain=("m", "n"), deadline=10.0)
    assert late.decide(OVERLOADED, ResendBudget(), 0.0, 10.0) == GiveUp("deadline")
    soon = Retries(chain=("m", "n"), deadline=10.0)
    assert soon.decide(OVERLOADED, ResendBudget(), 1.0, 9.95) == Fallback("n")  # a wait of 0.1 s would be too long


@given(st.lists(st.tuples(st.sampled_from([429, 500, 503, None]), st.floats(0, 0.999)), max_size=30))
def test_attempts_end(failures: list[tuple[int | None, float]]) -> None:
    retries, budget = Retries(chain=("a", "b", "c")), ResendBudget()
    verdicts = [retries.decide(Failure(status=status), budget, draw, 0.0) for status, draw in failures]
    sends = 1 + sum(not isinstance(verdict, GiveUp) for verdict in verdicts)
    assert sends <= 3 * 3


def fail(breaker: Breaker, at: float, times: int = 1) -> None:
    for _ in range(times):
        breaker.ended(at, failed=True)


def test_a_breaker_opens_at_half_of_five() -> None:
    breaker = Breaker()
    breaker.ended(0.0, failed=False)
    breaker.ended(0.0, failed=False)
    fail(breaker, 1.0, 2)
    assert breaker.allows(1.0)  # four calls say nothing
    fail(breaker, 1.0)
    assert breaker.state == "open"
    assert breaker.retry_after(2.0) == 4.0
    assert not breaker.allows(5.9)


def test_what_is_older_than_the_window_is_forgotten() -> None:
    breaker = Breaker()
    fail(breaker, 0.0, 4)
    fail(breaker, 30.1)
    assert breaker.state == "closed"


def test_one_trial_decides_and_rests_double() -> None:
    breaker = Breaker()
    fail(breaker, 0.0, 5)
    assert breaker.allows(5.0)
    breaker.sent()
    assert not breaker.allows(5.0)
    breaker.cancelled()
    assert breaker.allows(5.0)
    breaker.sent()
    fail(breaker, 6.0)
    assert (breaker.allows(15.9), breaker.allows(16.0)) == (False, True)
    breaker.sent()
    breaker.ended(17.0, failed=False)
    assert (breaker.state, breaker.retry_after(17.0)) == ("closed", 0.0)
    fail(breaker, 18.0, 5)
    assert breaker.allows(23.0)  # five seconds again


@given(st.lists(st.tuples(st.floats(0, 20), st.booleans()), max_size=60))
def test_a_breaker_always_lets_somebody_through_in_the_end(steps: list[tuple[float, bool]]) -> None:
    breaker, now = Breaker(), 0.0
    for passed, failed in steps:
        now += passed
        if breaker.allows(now):
            breaker.sent()
            breaker.ended(now, failed=failed)
    assert breaker.allows(now + breaker.retry_after(now) + 1e-6)
    assert breaker.retry_after(now) <= 120


def test_what_is_late_is_the_95th_percentile_of_the_last_200() -> None:
    delays = Delays()
    for hundredth in range(19):
        delays.observe(hundredth / 100)
    assert delays.late is None
    delays.observe(0.19)
    assert delays.late == 0.18  # the 19th of 20
    for _ in range(200):
        delays.observe(1.0)
    assert delays.late == 1.0


def test_hedges_stop_when_everything_is_late() -> None:
    hedger = Hedger(ResendBudget())
    assert hedger.after("gpu", idempotent=True) is None
    for _ in range(100):
        hedger.observe("gpu", 0.1)
    assert hedger.after("gpu", idempotent=True) == 0.1
    assert hedger.after("gpu", idempotent=False) is None
    assert hedger.allows("gpu")
    for _ in range(10):
        hedger.observe("gpu", 1.0)
    assert hedger.after("gpu", idempotent=True) is None
    assert not hedger.allows("gpu")


def test_hedges_are_budgeted() -> None:
    hedger = Hedger(ResendBudget(burst=1.0))
    for _ in range(20):
        hedger.observe("gpu", 0.1)
    assert [hedger.allows("gpu"), hedger.allows("gpu"), hedger.allows("other")] == [True, False, False]


def test_a_deadline_travels_as_what_is_left() -> None:
    assert deadline.read("1500", 100.0) == 101.5
    assert deadline.write(101.5, 100.25, margin=0.25) == "1000"
    assert deadline.write(101.5, 200.0) == "0"
    assert (deadline.timeout(None, 0.0, 9.0), deadline.timeout(5.0, 3.0, 9.0), deadline.timeout(1.0, 3.0, 9.0)) == (
        9.0,
        2.0,
        0.0,
    )


@pytest.mark.parametrize("value", [None, "", "soon", "-5", "1e9", "99999999999999999999", "٣"])
def test_a_deadline_that_is_none_is_none(value: str | None) -> None:
    read = deadline.read(value, 0.0)
    assert read is None or value == "٣"


@given(st.floats(0, 1000), st.lists(st.floats(0, 50), min_size=2, max_size=6))
def test_a_deadline_never_grows_on_its_way(end: float, hops: list[float]) -> None:
    times = sorted(hops)
    lefts = [int(deadline.write(end, now)) for now in times]
    assert all(later <= earlier for earlier, later in pairwise(lefts))
