"""The live fleet counts calls exactly, and shows policies what is true now."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import NotFoundError
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.fleet import LiveFleet
from headway.wire.dialects import CHAT, EMBEDDINGS, MESSAGES

A, B = ReplicaId("a"), ReplicaId("b")


def replica(name: str, *models: str) -> Replica:
    return Replica(id=ReplicaId(name), url=f"http://127.0.0.1:1/{name}/v1", models=models)


def in_flight(fleet: LiveFleet) -> dict[str, int]:
    return {load.replica.id: load.in_flight for load in fleet.view().loads}


def test_calls_in_flight_are_counted_per_replica() -> None:
    fleet = LiveFleet([replica("a"), replica("b")])
    fleet.started(A)
    fleet.started(A)
    fleet.started(B)
    fleet.finished(A)
    assert in_flight(fleet) == {"a": 1, "b": 1}


def test_the_view_lives_and_is_built_anew_only_when_a_replica_comes_or_goes() -> None:
    fleet = LiveFleet([replica("a")])
    before = fleet.view()
    fleet.started(A)
    fleet.mark(A, healthy=False, reason="does not answer")
    assert fleet.view() is before
    assert (before.loads[0].in_flight, before.loads[0].healthy) == (1, False)
    fleet.put(replica("b"))
    assert fleet.view() is not before
    assert in_flight(fleet) == {"a": 1, "b": 0}


def test_a_call_cannot_end_twice() -> None:
    fleet = LiveFleet([replica("a")])
    fleet.started(A)
    fleet.finished(A)
    with pytest.raises(ValueError, match="no call in flight"):
        fleet.finished(A)
    assert in_flight(fleet) == {"a": 0}


def test_a_replica_that_leaves_or_is_replaced_keeps_its_calls() -> None:
    fleet = LiveFleet([replica("a"), replica("b")])
    fleet.started(A)
    fleet.started(A)
    fleet.remove(A)
    assert in_flight(fleet) == {"b": 0}
    fleet.finished(A)
    fleet.put(replica("a", "m"))
    assert in_flight(fleet) == {"b": 0, "a": 1}
    fleet.put(replica("a", "n"))
    fleet.finished(A)
    assert in_flight(fleet) == {"b": 0, "a": 0}
    fleet.started(B)
    fleet.remove(B)
    fleet.finished(B)
    with pytest.raises(ValueError, match="no call in flight"):
        fleet.finished(B)


def test_health_turns_are_told_once_with_their_reason() -> None:
    turns: list[tuple[str, bool, str]] = []
    fleet = LiveFleet([replica("a")], on_change=lambda who, healthy, why: turns.append((who, healthy, why)))
    fleet.mark(A, healthy=False, reason="refused the connection")
    fleet.mark(A, healthy=False, reason="still refuses")
    assert not fleet.view().loads[0].healthy
    assert fleet.health()[0].reason == "still refuses"
    fleet.mark(A, healthy=True, reason="answers")
    fleet.mark(ReplicaId("gone"), healthy=True, reason="passed over")
    assert turns == [("a", False, "refused the connection"), ("a", True, "answers")]
    assert fleet.view().loads[0].healthy


def test_a_fleet_is_taken_over_from_another_process_with_calls_of_its_own() -> None:
    turns: list[tuple[str, bool, str]] = []
    updates: list[int] = []
    there = LiveFleet([replica("a", "m"), replica("b")], on_update=lambda: updates.append(len(updates)))
    here = LiveFleet(on_change=lambda who, healthy, why: turns.append((who, healthy, why)))
    here.take_over(there.states())
    here.started(A)
    here.started(B)
    there.mark(A, healthy=False, reason="refuses")
    there.remove(B)
    there.put(replica("c", "n"))
    assert len(updates) == 5  # a and b came, a turned, b went, c came
    here.take_over(there.states())
    assert in_flight(here) == {"a": 1, "c": 0}
    assert [(one.id, one.healthy, one.models) for one in here.health()] == [("a", False, ("m",)), ("c", True, ("n",))]
    assert turns == [("b", False, "removed"), ("a", False, "refuses")]
    here.finished(B)  # it had left, its call may end
    assert A in here
    assert B not in here
    there.counted({A: 7})
    assert in_flight(there) == {"a": 7, "c": 0}


def test_models_and_look_ups() -> None:
    fleet = LiveFleet([replica("a", "m", "n"), replica("b", "n", "o"), replica("c")])
    assert fleet.models() == ("m", "n", "o")
    assert fleet.get(B).models == ("n", "o")
    fleet.put(replica("starting"), healthy=False, reason="loads its model")
    assert [(one.id, one.healthy, one.reason, one.in_flight) for one in fleet.health()][-1] == (
        "starting",
        False,
        "loads its model",
        0,
    )
    for use in (fleet.get, fleet.started, fleet.remove):
        with pytest.raises(NotFoundError, match=r"no replica 'x'.*a, b, c, starting"):
            use(ReplicaId("x"))


@given(st.lists(st.tuples(st.sampled_from(["start", "finish", "remove", "put", "ill", "well"]), st.sampled_from("ab"))))
def test_counts_never_go_negative_and_never_leak(steps: list[tuple[str, str]]) -> None:
    fleet = LiveFleet()
    open_calls = {"a": 0, "b": 0}
    there: set[str] = set()
    for step, name in steps:
        one = ReplicaId(name)
        match step:
            case "start" if name in there:
                fleet.started(one)
                open_calls[name] += 1
            case "finish" if open_calls[name]:
                fleet.finished(one)
                open_calls[name] -= 1
            case "finish":
                with pytest.raises(ValueError, match="no call"):
                    fleet.finished(one)
            case "remove" if name in there:
                fleet.remove(one)
                there.discard(name)
            case "put":
                fleet.put(replica(name))
                there.add(name)
            case _:
                fleet.mark(one, healthy=step == "well", reason=step)
        assert in_flight(fleet) == {name: open_calls[name] for name in there}
    for name, count in open_calls.items():
        for _ in range(count):
            fleet.finished(ReplicaId(name))
    assert set(in_flight(fleet).values()) <= {0}


def test_who_cannot_be_asked_is_known_anew_when_replicas_come_change_and_go() -> None:
    chat_only = Replica(id=ReplicaId("a"), url="http://a/v1")
    vectors = Replica(id=ReplicaId("b"), url="http://b/v1", speaks=("openai-embeddings", "unheard-of"))
    fleet = LiveFleet([chat_only])
    assert fleet.deaf_to(MESSAGES) == frozenset()  # translated
    fleet.put(vectors)
    assert fleet.deaf_to(MESSAGES) == fleet.deaf_to(CHAT) == {"b"}
    assert fleet.deaf_to(EMBEDDINGS) == frozenset()
    fleet.remove(ReplicaId("b"))
    assert fleet.deaf_to(MESSAGES) == frozenset()
