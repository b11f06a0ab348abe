"""Routing never sends a call where it cannot be answered, and spreads calls evenly where it can."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headway.core.fleet import FleetView, Replica, ReplicaId, ReplicaLoad
from headway.core.span import Candidate
from headway.core.task import TaskId
from headway.policy.route import RouteDone, RoutePolicy, RouteRequest, RouteSent
from headway.policy.routing.least_loaded import LeastLoaded

TASK = TaskId("t")


def load(name: str, in_flight: int = 0, *, healthy: bool = True, models: tuple[str, ...] = ()) -> ReplicaLoad:
    replica = Replica(id=ReplicaId(name), url=f"http://127.0.0.1:1/{name}/v1", models=models)
    return ReplicaLoad(replica=replica, healthy=healthy, in_flight=in_flight)


def call(model: str = "m", *excluded: str) -> RouteRequest:
    return RouteRequest(model=model, task=TASK, excluded=frozenset(ReplicaId(name) for name in excluded))


def test_the_least_loaded_replica_wins_and_the_receipt_shows_all_candidates() -> None:
    decision = LeastLoaded().decide(call(), FleetView((load("a", 2), load("b", 1), load("c", 3))), 0.0)
    assert decision.replica is not None
    assert decision.replica.id == "b"
    assert decision.refusal is None
    receipt = decision.receipt
    assert (receipt.policy, receipt.winner, receipt.reason) == ("least-loaded", "b", "fewest in flight")
    assert receipt.candidates == (Candidate("a", 2), Candidate("b", 1), Candidate("c", 3))


def test_equal_replicas_take_turns() -> None:
    policy, view = LeastLoaded(), FleetView((load("a"), load("b"), load("c", 5)))
    decisions = [policy.decide(call(), view, 0.0) for _ in range(4)]
    assert [decision.receipt.winner for decision in decisions] == ["a", "b", "a", "b"]
    assert {decision.receipt.reason for decision in decisions} == {"as few in flight as any, chosen longest ago"}


def test_a_new_replica_takes_its_first_call_before_its_equals() -> None:
    policy = LeastLoaded()
    policy.decide(call(), FleetView((load("a"),)), 0.0)
    decision = policy.decide(call(), FleetView((load("a"), load("new"))), 0.0)
    assert decision.receipt.winner == "new"


def test_the_only_candidate_says_so() -> None:
    decision = LeastLoaded().decide(call("m", "b"), FleetView((load("a", 7), load("b", 1))), 0.0)
    assert (decision.receipt.winner, decision.receipt.reason) == ("a", "the only one")


def test_why_there_is_no_replica() -> None:
    ill = load("ill", healthy=False)
    busy = load("ok")
    other = load("other", models=("x", "y"))
    for view, request, refusal, words in (
        ((), call(), "unhealthy", "empty"),
        ((other,), call(), "unknown_model", "no replica serves the model 'm'"),
        ((ill, other), call(), "unhealthy", "unhealthy"),
        ((busy, other), call("m", "ok"), "excluded", "tried already"),
        ((busy, ill), call("m", "ok"), "excluded", "every healthy replica"),
        ((ill,), call("m", "ill"), "unhealthy", "unhealthy"),
    ):
        decision = LeastLoaded().decide(request, FleetView(view), 0.0)
        assert decision.replica is None
        assert decision.refusal == refusal
        assert words in decision.receipt.reason
        assert (decision.receipt.winner, decision.receipt.candidates) == ("", ())


def home(policy: RoutePolicy, replica: str, task: str = TASK) -> None:
    policy.observe(RouteSent(replica=ReplicaId(replica), task=TaskId(task)))
    policy.observe(RouteDone(replica=ReplicaId(replica), task=TaskId(task), failed=False))


def test_among_equals_a_task_stays_where_its_prompt_was_computed() -> None:
    policy, view = LeastLoaded(), FleetView((load("a"), load("b"), load("c")))
    home(policy, "b")
    receipts = [policy.decide(call(), view, 0.0).receipt for _ in range(3)]
    assert [receipt.winner for receipt in receipts] == ["b", "b", "b"]
    assert receipts[0].reason == "as few in flight as any, served the task last"


def fail(policy: LeastLoaded, replica: str, *, unserved: bool = True) -> None:
    policy.observe(RouteSent(replica=ReplicaId(replica), task=TASK))
    policy.observe(RouteDone(replica=ReplicaId(replica), task=TASK, failed=True, unserved=unserved))


def test_a_replica_that_could_not_serve_a_task_comes_after_all_others() -> None:
    policy = LeastLoaded()
    home(policy, "a")
    fail(policy, "a")
    view = FleetView((load("a"), load("b", 3), load("c", 4)))
    assert [policy.decide(call(), view, 0.0).receipt.winner for _ in range(2)] == ["b", "b"]
    assert policy.decide(call("m", "b", "c"), view, 0.0).receipt.winner == "a"
    home(policy, "b")
    assert policy.decide(call(), view, 0.0).receipt.winner == "a"
    assert policy.decide(call(), FleetView((load("a"), load("b"))), 0.0).receipt.winner == "b"


def test_a_call_that_failed_for_what_it_asked_leaves_the_home_alone() -> None:
    policy, view = LeastLoaded(), FleetView((load("a"), load("b"), load("c")))
    home(policy, "b")
    fail(policy, "b", unserved=False)
    assert [policy.decide(call(), view, 0.0).receipt.winner for _ in range(2)] == ["b", "b"]


def test_load_comes_before_home() -> None:
    policy: RoutePolicy = LeastLoaded()
    home(policy, "a")
    assert policy.decide(call(), FleetView((load("a", 1), load("b"))), 0.0).receipt.winner == "b"


def test_a_home_that_cannot_answer_is_passed_over() -> None:
    policy = LeastLoaded()
    home(policy, "a")
    assert policy.decide(call(), FleetView((load("a", healthy=False), load("b"))), 0.0).receipt.winner == "b"
    assert policy.decide(call("m", "a"), FleetView((load("a"), load("b"))), 0.0).receipt.winner == "b"


def test_calls_of_no_known_task_have_no_home() -> None:
    policy, view = LeastLoaded(), FleetView((load("a"), load("b")))
    home(policy, "b", task="")
    nobody = RouteRequest(model="m", task=TaskId(""))
    assert [policy.decide(nobody, view, 0.0).receipt.winner for _ in range(3)] == ["a", "b", "a"]


def test_homes_are_bounded_and_the_oldest_is_forgotten() -> None:
    policy, view = LeastLoaded(), FleetView((load("a"), load("b")))
    home(policy, "b")
    for number in range(10_000):
        home(policy, "b", task=f"other {number}")
    assert policy.decide(call(), view, 0.0).receipt.winner == "a"


MODELS = st.sampled_from(["m", "n", "o"])
NAMES = st.sampled_from(list("abcdefgh"))


@st.composite
def fleets(draw: st.DrawFn) -> FleetView:
    names = draw(st.lists(NAMES, unique=True, max_size=8))
    return FleetView(
        tuple(
            load(
                name,
                draw(st.integers(0, 5)),
                healthy=draw(st.booleans()),
                models=tuple(draw(st.lists(MODELS, unique=True, max_size=2))),
            )
            for name in names
        )
    )


@given(st.lists(st.tuples(fleets(), MODELS, st.frozensets(NAMES)), max_size=8))
def test_a_call_goes_only_where_it_can_be_answered_and_only_to_the_least_loaded(
    steps: list[tuple[FleetView, str, frozenset[str]]],
) -> None:
    policy = LeastLoaded()
    for view, model, excluded in steps:
        fit = {
            one.replica.id: one.in_flight
            for one in view.loads
            if one.healthy and one.replica.id not in excluded
            if not one.replica.models or model in one.replica.models
        }
        decision = policy.decide(call(model, *excluded), view, 0.0)
        if decision.replica is None:
            assert not fit
            assert decision.refusal is not None
        else:
            assert fit[decision.replica.id] == min(fit.values())
            assert {candidate.name: candidate.score for candidate in decision.receipt.candidates} == fit


@given(st.integers(1, 6), st.integers(1, 80))
def test_calls_that_never_end_are_spread_evenly(replicas: int, calls: int) -> None:
    policy, flying = LeastLoaded(), Counter[str]({str(i): 0 for i in range(replicas)})
    for _ in range(calls):
        view = FleetView(tuple(load(name, count) for name, count in flying.items()))
        flying[policy.decide(call(), view, 0.0).receipt.winner] += 1
    assert max(flying.values()) - min(flying.values()) <= 1


@given(st.integers(1, 6), st.integers(1, 10))
def test_calls_that_end_at_once_still_go_round_the_whole_fleet(replicas: int, rounds: int) -> None:
    policy, view = LeastLoaded(), FleetView(tuple(load(str(i)) for i in range(replicas)))
    winners = Counter(policy.decide(call(), view, 0.0).receipt.winner for _ in range(replicas * rounds))
    assert set(winners.values()) == {rounds}
    assert len(winners) == replicas
