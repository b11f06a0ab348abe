"""Fleets and loads in virtual time, and what is measured of them."""

from random import Random

from virtual import Outcome, Session, Speed, Turn, World, ran

from headway.policy.order.orders import FirstCome
from headway.policy.order.waiting import Lane, Order
from headway.policy.route import RoutePolicy
from headway.policy.routing.expected_seconds import ExpectedSeconds
from headway.policy.schedule import Scheduler

SMALL = [Speed(prefill=350.0, token=0.03, token_beside=0.02, slots=2, memory=7_000)] * 2
"""As two small engines on a CPU, that keep two or three grown sessions warm."""
LARGE = [Speed(prefill=4000.0, token=0.02, token_beside=0.001, slots=32, memory=40_000, shared=0.4)] * 2


def coding(count: int, rate: float, seed: int = 1) -> list[Session]:
    """Sessions of six calls that grow from 700 to 3,000 tokens, with tools of half a second; ``rate`` a second."""
    dice = Random(seed)
    return [
        Session(
            f"s{number}",
            number / rate,
            tuple(
                Turn(300 + dice.randrange(200) if turn else 600, 24, "bash", dice.uniform(0.25, 0.75))
                for turn in range(6)
            ),
            system=(1, 100),
        )
        for number in range(count)
    ]


def poisson(
    rate: float, seconds: float, *, seed: int, slack: float | None = None, lane: Lane = "interactive"
) -> list[Session]:
    """Sessions of five calls of about 1,700 tokens and 500 more each time."""
    dice, at, sessions = Random(seed), 0.0, list[Session]()
    while (at := at + dice.expovariate(rate)) <= seconds:
        turns = tuple(
            Turn((300 if turn else 1500) + dice.randrange(400), 60, "t", dice.uniform(0.5, 1.5)) for turn in range(5)
        )
        sessions.append(Session(f"{lane}{len(sessions)}", at, turns, (1, 1000), lane=lane, slack=slack))
    return sessions


def mean(world: World) -> float:
    return sum(outcome.seconds for outcome in world.outcomes) / len(world.outcomes)


def ours(order: type[Order] = FirstCome) -> Scheduler:
    return Scheduler(ExpectedSeconds(), order())


def late(outcomes: list[Outcome], share: float) -> tuple[float, float]:
    """Percentiles of TTFT and of task time, of interactive sessions after the first 40 s."""
    those = [one for one in outcomes if one.session.lane == "interactive" and one.session.start > 40]
    waits = sorted(wait for one in those for wait in one.waits)
    times = sorted(one.seconds for one in those)
    return waits[int(share * (len(waits) - 1))], times[int(share * (len(times) - 1))]


def goodput(rate: float, policy: RoutePolicy | Scheduler) -> float:
    """Tasks a second that were done in time, of those that came after the first 40 s."""
    world = ran(poisson(rate, 160.0, seed=3, slack=60.0), policy, LARGE, until=260)
    return sum(outcome.good and outcome.session.start > 40 for outcome in world.outcomes) / 120
