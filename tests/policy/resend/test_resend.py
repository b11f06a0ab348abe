"""Sending again never harms: bounded in number, in load and in time, and never what may not be sent twice."""

from hypothesis import given
from hypothesis import strategies as st

from headway.policy.resend.breaker import Breaker
from headway.policy.resend.budget import ResendBudget
from headway.policy.resend.hedge import Delays, Hedger
from headway.policy.resend.retry import Again, GiveUp, Retries, RetryRules


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


def decide(
    retries: Retries,
    budget: ResendBudget,
    *,
    retry_after: float | None = None,
    draw: float = 0.0,
    now: float = 0.0,
    deadline: float | None = None,
) -> Again | GiveUp:
    return retries.decide(retry_after, budget, draw, now, deadline)


def test_waits_double_and_are_drawn() -> None:
    retries, budget = Retries(RetryRules(attempts=4, cap=0.3)), ResendBudget()
    waits = [decide(retries, budget, draw=0.5) for _ in range(4)]
    assert waits == [Again(0.05), Again(0.1), Again(0.15), GiveUp("attempts")]


def test_an_upstreams_own_wait_is_kept_up_to_a_bound() -> None:
    budget = ResendBudget()
    assert decide(Retries(RetryRules()), budget, retry_after=7.0, draw=0.9) == Again(7.0)
    assert decide(Retries(RetryRules()), budget, retry_after=31.0, draw=0.9) == GiveUp("patience")
    assert budget.left == 9.0


def test_without_budget_nothing_is_sent_again() -> None:
    assert decide(Retries(RetryRules()), ResendBudget(burst=0.0)) == GiveUp("budget")


def test_nothing_is_sent_after_the_deadline() -> None:
    retries, budget = Retries(RetryRules()), ResendBudget()
    assert decide(retries, budget, deadline=10.0, now=10.0) == GiveUp("deadline")
    assert decide(retries, budget, deadline=10.0, now=9.95, draw=0.9) == GiveUp("deadline")  # 0.09 s is too long a wait
    assert decide(retries, budget, deadline=10.0, now=9.8, draw=0.5) == Again(0.05)
    assert budget.left == 9.0


@given(st.integers(1, 5), st.lists(st.floats(0, 0.999), max_size=30))
def test_attempts_end(attempts: int, draws: list[float]) -> None:
    retries, budget = Retries(RetryRules(attempts=attempts)), ResendBudget()
    verdicts = [decide(retries, budget, draw=draw) for draw in draws]
    assert 1 + sum(isinstance(verdict, Again) for verdict in verdicts) <= attempts


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
    assert breaker.sent()
    assert not breaker.allows(5.0)
    breaker.cancelled()
    assert breaker.allows(5.0)
    assert breaker.sent()
    assert not breaker.sent()
    breaker.ended(6.0, failed=True, trial=True)
    assert (breaker.allows(15.9), breaker.allows(16.0)) == (False, True)
    assert breaker.sent()
    breaker.ended(17.0, failed=False, trial=True)
    assert (breaker.state, breaker.retry_after(17.0), breaker.opens) == ("closed", 0.0, 2)
    fail(breaker, 18.0, 5)
    assert breaker.allows(23.0)  # five seconds again


def test_calls_from_before_it_opened_decide_nothing() -> None:
    breaker = Breaker(rest=5.0, share=1.0, least=2)
    fail(breaker, 0.0, 2)
    breaker.ended(1.0, failed=False)
    assert breaker.allows(5.0)
    breaker.ended(5.5, failed=False)
    fail(breaker, 5.6)
    assert (breaker.state, breaker.opens) == ("half_open", 1)


@given(st.lists(st.tuples(st.floats(0, 20), st.booleans()), max_size=60))
def test_a_breaker_always_lets_somebody_through_in_the_end(steps: list[tuple[float, bool]]) -> None:
    breaker, now = Breaker(), 0.0
    for passed, failed in steps:
        now += passed
        if breaker.allows(now):
            breaker.ended(now, failed=failed, trial=breaker.sent())
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
    assert hedger.after("gpu") is None
    for _ in range(100):
        hedger.observe("gpu", 0.1)
    assert hedger.after("gpu") == 0.1
    assert hedger.allows("gpu")
    for _ in range(10):
        hedger.observe("gpu", 1.0)
    assert hedger.after("gpu") is None
    assert not hedger.allows("gpu")


def test_hedges_are_budgeted() -> None:
    hedger = Hedger(ResendBudget(burst=1.0))
    for _ in range(20):
        hedger.observe("gpu", 0.1)
    assert [hedger.allows("gpu"), hedger.allows("gpu"), hedger.allows("other")] == [True, False, False]


def test_kinds_that_were_met_first_are_forgotten() -> None:
    hedger = Hedger(ResendBudget())
    for number in range(201):
        for _ in range(20):
            hedger.observe(str(number), 0.1)
    assert (hedger.after("0"), hedger.after("1"), hedger.after("200")) == (None, 0.1, 0.1)
