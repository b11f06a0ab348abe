"""The scheduler sends what may be sent, keeps everything else, and loses nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from routing import A, B, call, chain, fleet, load

from headway.core.fleet import FleetView, ReplicaId
from headway.core.task import SpanId, TaskId
from headway.policy.admission.promises import Refused
from headway.policy.dispatched import Dispatch
from headway.policy.order.orders import FirstCome
from headway.policy.order.waiting import Lane, Waiting
from headway.policy.route import RouteDone, RouteLost, RoutePolicy, RouteStarted
from headway.policy.routing.expected_seconds import ExpectedSeconds
from headway.policy.routing.least_loaded import LeastLoaded
from headway.policy.schedule import Scheduler

ONE, TWO = fleet(a=0), fleet(a=0, b=0)


def asking(
    name: str,
    task: str = "",
    tokens: int = 100,
    *,
    at: float = 0.0,
    lane: Lane = "interactive",
    deadline: float | None = None,
    excluded: tuple[str, ...] = (),
) -> Waiting:
    request = call(name, chain((hash(task or name), tokens)), session=task or name, excluded=excluded, output=0)
    return Waiting(request=request, arrived=at, lane=lane, deadline=deadline)


def sent(step: Dispatch | Refused | None) -> tuple[str, str]:
    assert isinstance(step, Dispatch)
    assert step.decision.replica is not None
    return step.waiting.request.call, step.decision.replica.id


def all_sent(scheduler: Scheduler, view: FleetView, now: float) -> list[str]:
    names: list[str] = []
    while (step := scheduler.next(view, now)) is not None:
        names.append(sent(step)[0])
    return names


def finish(
    scheduler: Scheduler, name: str, task: str, at: float, *, cached: int | None = None, where: str = "a"
) -> None:
    scheduler.observe(
        RouteDone(
            replica=ReplicaId(where),
            task=TaskId(task),
            failed=False,
            call=SpanId(name),
            at=at,
            input_tokens=1000,
            cached_tokens=cached,
            output_tokens=0,
            tools=("t",),
        )
    )


@pytest.fixture(params=[ExpectedSeconds, LeastLoaded])
def route(request: pytest.FixtureRequest) -> RoutePolicy:
    return request.param()


def test_an_idle_fleet_serves_at_once(route: RoutePolicy) -> None:
    scheduler = Scheduler(route, FirstCome())
    assert scheduler.next(ONE, 0.0) is None
    assert scheduler.arrive(asking("1"), ONE, 0.0) is None
    assert scheduler.waiting == 1
    assert sent(scheduler.next(ONE, 0.0)) == ("1", "a")
    assert scheduler.next(ONE, 0.0) is None
    assert scheduler.waiting == 0


def test_calls_wait_while_the_window_is_full(route: RoutePolicy) -> None:
    scheduler = Scheduler(route, FirstCome())
    for number in range(10):
        scheduler.arrive(asking(str(number)), ONE, float(number))
    assert all_sent(scheduler, ONE, 10.0) == [str(number) for number in range(8)]
    finish(scheduler, "3", "3", 6.0)
    assert all_sent(scheduler, ONE, 6.0) == ["8"]


def full(route: RoutePolicy) -> Scheduler:
    """One replica that keeps 1,000 tokens of tasks warm; task ``old`` of 1,000 has its place."""
    scheduler = Scheduler(route, FirstCome(), patience=50.0)
    for number, at in enumerate((0.0, 4.0)):
        for task in ("old", "lost"):
            scheduler.arrive(asking(f"{task}{number}", task, 1000, at=at), ONE, at)
            assert sent(scheduler.next(ONE, at))[0] == f"{task}{number}"
            finish(scheduler, f"{task}{number}", task, at + 1, cached=0 if number and task == "lost" else 1000)
    capacity = scheduler.places.capacities[A]
    assert capacity.tokens == 1000.0
    assert scheduler.places.count(A) == 1
    return scheduler


def test_a_task_waits_for_a_place_while_another_comes_and_goes(route: RoutePolicy) -> None:
    scheduler = full(route)
    place = "old" if scheduler.places.home(TaskId("old")) else "lost"
    scheduler.arrive(asking("new0", "new", 600, at=6.0), ONE, 6.0)
    scheduler.arrive(asking("again", place, 1000, at=6.0), ONE, 6.0)
    assert all_sent(scheduler, ONE, 6.0) == ["again"]
    assert scheduler.waiting == 1


def test_a_place_is_had_again_when_its_task_stays_away(route: RoutePolicy) -> None:
    scheduler = full(route)
    scheduler.arrive(asking("new0", "new", 600, at=6.0), ONE, 6.0)
    assert all_sent(scheduler, ONE, 60.0) == ["new0"]


def test_who_waits_too_long_makes_others_take_turns(route: RoutePolicy) -> None:
    scheduler = full(route)
    place = "old" if scheduler.places.home(TaskId("old")) else "lost"
    scheduler.arrive(asking("new0", "new", 1000, at=6.0), ONE, 6.0)
    turns = 0
    for number in range(200):  # it is never away for long
        now = 6.0 + number
        scheduler.arrive(asking(f"x{number}", place, 1000, at=now), ONE, now)
        assert all_sent(scheduler, ONE, now) == [f"x{number}"]
        finish(scheduler, f"x{number}", place, now + 0.9, cached=1000)
        turns += 1
        if all_sent(scheduler, ONE, now + 0.9) == ["new0"]:
            break
    # Its patience of 50 s has ended when the turn that began then is over.
    assert turns == 51


def test_a_call_that_left_is_not_sent(route: RoutePolicy) -> None:
    scheduler = Scheduler(route, FirstCome())
    scheduler.arrive(asking("1"), ONE, 0.0)
    scheduler.arrive(asking("2"), ONE, 0.0)
    scheduler.leave(SpanId("1"))
    scheduler.leave(SpanId("never"))
    assert all_sent(scheduler, ONE, 0.0) == ["2"]


def test_who_can_be_served_nowhere_is_told_why(route: RoutePolicy) -> None:
    scheduler = Scheduler(route, FirstCome())
    scheduler.arrive(asking("1", excluded=("a",)), ONE, 0.0)
    step = scheduler.next(ONE, 0.0)
    assert isinstance(step, Refused)
    assert (step.cause, step.retry_after) == ("no_replica", None)
    assert step.decision is not None
    assert step.decision.refusal == "excluded"
    assert scheduler.waiting == 0


def test_a_deadline_that_nobody_can_meet_is_refused_on_arrival(route: RoutePolicy) -> None:
    scheduler = Scheduler(route, FirstCome())
    # 0.02 + 0.0002 · 1,000 s of prefill
    refused = scheduler.arrive(asking("1", tokens=1000, deadline=0.2), ONE, 0.0)
    assert refused is not None
    assert refused.cause == "deadline"
    assert scheduler.waiting == 0
    assert scheduler.arrive(asking("2", tokens=1000, deadline=0.3), ONE, 0.0) is None


def test_a_deadline_that_passed_while_waiting_is_refused_and_not_served(route: RoutePolicy) -> None:
    scheduler = Scheduler(route, FirstCome())
    for number in range(8):
        scheduler.arrive(asking(str(number)), ONE, 0.0)
    all_sent(scheduler, ONE, 0.0)
    scheduler.arrive(asking("late", deadline=5.0), ONE, 1.0)
    assert scheduler.next(ONE, 1.0) is None
    finish(scheduler, "0", "0", 6.0)
    step = scheduler.next(ONE, 6.0)
    assert isinstance(step, Refused)
    assert step.cause == "deadline"


def test_the_calls_of_a_lost_replica_go_elsewhere(route: RoutePolicy) -> None:
    scheduler = Scheduler(route, FirstCome())
    view = FleetView((load("a"), load("b", healthy=False)))
    for number in range(9):
        scheduler.arrive(asking(str(number), "t"), view, 0.0)
    assert len(all_sent(scheduler, view, 0.0)) == 8
    scheduler.observe(RouteLost(replica=A))
    other = FleetView((load("a", healthy=False), load("b")))
    assert sent(scheduler.next(other, 1.0)) == ("8", "b")


def test_a_replica_that_is_ill_gives_its_waiting_calls_away_without_being_lost(route: RoutePolicy) -> None:
    scheduler = Scheduler(route, FirstCome())
    for number in range(9):
        scheduler.arrive(asking(str(number), "t"), ONE, 0.0)
    assert len(all_sent(scheduler, ONE, 0.0)) == 8
    other = FleetView((load("a", healthy=False), load("b")))
    assert sent(scheduler.next(other, 1.0)) == ("8", "b")


class Traffic:
    """Calls that come, go, end and are lost, with every one accounted for."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(ExpectedSeconds(), FirstCome(), patience=20.0)
        self.now = 0.0
        self.came = set[str]()
        self.gone = set[str]()
        self.flying = dict[str, tuple[str, str]]()

    def arrive(self, name: str, task: str, tokens: int, lane: Lane) -> None:
        self.came.add(name)
        assert self.scheduler.arrive(asking(name, task, tokens, at=self.now, lane=lane), TWO, self.now) is None

    def leave(self) -> None:
        if self.came > self.gone:
            name = min(self.came - self.gone)
            self.scheduler.leave(SpanId(name))
            self.gone.add(name)

    def start(self, which: int) -> None:
        for name in sorted(self.flying)[which : which + 1]:
            where = ReplicaId(self.flying[name][1])
            self.scheduler.observe(RouteStarted(replica=where, call=SpanId(name), at=self.now))

    def end(self, which: int, cached: int | None = None) -> None:
        for name in sorted(self.flying)[which : which + 1]:
            task, where = self.flying.pop(name)
            finish(self.scheduler, name, task, self.now, cached=cached, where=where)

    def pump(self) -> None:
        while (step := self.scheduler.next(TWO, self.now)) is not None:
            name = step.waiting.request.call
            assert name in self.came - self.gone
            self.gone.add(name)
            if isinstance(step, Dispatch):
                self.flying[name] = (step.waiting.request.task, sent(step)[1])

    def settle(self) -> None:
        for _ in range(2000):
            self.now += 1.0
            while self.flying:
                self.end(0)
            self.pump()
            if not self.scheduler.waiting and not self.flying:
                return


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "start", "end", "leave", "lost"]),
        st.integers(0, 4),
        st.integers(1, 4000),
        st.sampled_from(["interactive", "batch"]),
    ),
    max_size=60,
)


@settings(max_examples=60)
@given(STEPS)
def test_every_call_is_sent_or_refused_once_and_all_are_in_the_end(steps: list[tuple[str, int, int, Lane]]) -> None:
    traffic = Traffic()
    for number, (kind, which, tokens, lane) in enumerate(steps):
        traffic.now += which / 2
        match kind:
            case "arrive":
                traffic.arrive(str(number), f"t{which}", tokens, lane)
            case "leave":
                traffic.leave()
            case "start":
                traffic.start(which)
            case "end":
                traffic.end(which, cached=tokens % 1000)
            case _:
                traffic.scheduler.observe(RouteLost(replica=(A, B)[which % 2]))
        traffic.pump()
    traffic.settle()
    assert traffic.came == traffic.gone
    assert traffic.scheduler.waiting == 0
