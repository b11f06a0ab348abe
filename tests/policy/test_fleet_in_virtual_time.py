"""Whole policies against a fleet in virtual time: they come out in the order that theory promises.

No figure here is a measurement: it follows from the engine's model in `virtual` and the sessions' numbers alone.
"""

import json
from random import Random

import pytest
from fleets import LARGE, SMALL, coding, goodput, late, mean, ours, poisson
from importing import sample
from virtual import Session, Speed, Turn, ran

from headway.policy.order.orders import FirstCome, LeastAttained, LongestPath
from headway.policy.order.waiting import Order
from headway.policy.route import RoutePolicy
from headway.policy.routing.cache_aware import CacheAware
from headway.policy.routing.expected_seconds import ExpectedSeconds
from headway.policy.routing.least_loaded import LeastLoaded
from headway.policy.routing.round_robin import RoundRobin
from headway.policy.routing.session_home import SessionHome
from headway.policy.schedule import Scheduler


def test_everybody_computes_least_when_there_is_room_for_all() -> None:
    """Four sessions: those that stay at home compute nothing twice, and ours moves one only where that is quicker."""
    sessions = coding(4, rate=10.0)
    needed = sum(turn.added for session in sessions for turn in session.turns)
    homes, scheduled = ran(sessions, SessionHome(), LARGE), ran(sessions, ours(), LARGE)
    assert needed <= homes.computed <= needed + 4 * 100  # the system prompt, once for each that came at once
    assert needed <= scheduled.computed <= 1.15 * needed
    assert mean(scheduled) <= 1.01 * mean(homes)


@pytest.mark.parametrize("policy", [SessionHome, CacheAware, ExpectedSeconds])
def test_keeping_sessions_computes_less_than_going_round(policy: type[RoutePolicy]) -> None:
    sessions = coding(40, rate=0.15)
    assert ran(sessions, policy(), SMALL).computed < 0.5 * ran(sessions, RoundRobin(), SMALL).computed


@pytest.mark.parametrize("order", [FirstCome, LeastAttained, LongestPath])
def test_admitting_tasks_beats_every_rule_for_calls_when_memory_is_short(order: type[Order]) -> None:
    sessions = coding(40, rate=0.3)
    scheduled = ran(sessions, ours(order), SMALL)
    for policy in (RoundRobin(), SessionHome(), CacheAware(), LeastLoaded()):
        other = ran(sessions, policy, SMALL)
        assert scheduled.computed < 0.5 * other.computed
        assert mean(scheduled) < 0.55 * mean(other)
        worst = max(outcome.seconds for outcome in scheduled.outcomes)
        assert worst <= max(outcome.seconds for outcome in other.outcomes)


def test_admitting_tasks_beats_not_admitting_them_above_the_same_windows_and_orders() -> None:
    sessions = coding(40, rate=0.3)
    without = ran(sessions, Scheduler(ExpectedSeconds(), FirstCome(), admit_tasks=False), SMALL)
    assert mean(ran(sessions, ours(), SMALL)) < 0.6 * mean(without)


def test_what_fits_is_learnt() -> None:
    """7,000 tokens fit, and 60 sessions of 3,000 ask for them: the estimate saws up and down around what fits."""
    scheduler = ours()
    ran(coding(60, rate=0.3), scheduler, SMALL)
    for capacity in scheduler.places.capacities.values():
        assert capacity.tokens is not None
        assert 2_300 <= capacity.tokens <= 14_000


def test_a_fleet_that_is_not_full_serves_no_slower_for_being_scheduled() -> None:
    sessions = coding(20, rate=0.1)
    bare = min(mean(ran(sessions, policy(), SMALL)) for policy in (RoundRobin, SessionHome, CacheAware))
    assert mean(ran(sessions, ours(), SMALL)) <= 1.02 * bare


def test_interactive_tasks_hardly_notice_a_flood_of_batch() -> None:
    interactive = poisson(0.6, 160.0, seed=3)
    alone = late(ran(interactive, ours(), LARGE, until=400).outcomes, 0.99)
    world = ran(interactive + poisson(10.0, 160.0, seed=9, lane="batch"), ours(), LARGE, until=400)
    flooded = late(world.outcomes, 0.99)
    assert flooded[0] <= 1.2 * alone[0]
    assert flooded[1] <= 1.2 * alone[1]
    assert sum(one.calls for one in world.outcomes if one.session.lane == "batch") > 1_000  # and batch is served


def test_goodput_holds_at_ten_times_the_load() -> None:
    peak, overloaded = goodput(1.25, ours()), goodput(12.5, ours())
    assert overloaded >= 0.9 * peak
    assert goodput(12.5, LeastLoaded()) < 0.2 * peak


def recorded(count: int) -> list[Session]:
    """Real sessions of a coding agent, their texts' lengths taken as four characters to a token."""
    files = sorted(sample("workloads/lmcache-agent-trace/miniswe").glob("*.jsonl"))[:count]
    sessions: list[Session] = []
    for number, file in enumerate(files):
        lines = [json.loads(line) for line in file.read_text().splitlines() if line][:10]
        turns: list[Turn] = []
        before = ""
        for line, following in zip(lines, [*lines[1:], None], strict=True):
            text: str = line["input"]
            added = len(text) if not before else max(4, len(text) - len(before))
            gap = 0.0 if following is None else min(10.0, (following["timestamp"] - line["timestamp"]) / 4e6)
            turns.append(Turn(max(1, added // 4), max(1, len(line["output"]) // 4), "bash", gap))
            before = text + line["output"]
        sessions.append(Session(file.stem, number * 0.5, tuple(turns), system=(0, 0)))
    return sessions


def test_recorded_sessions_come_out_in_the_same_order() -> None:
    sessions = recorded(16)
    size = max(sum(turn.added + turn.output for turn in session.turns) for session in sessions)
    speeds = [Speed(prefill=2000.0, token=0.01, token_beside=0.003, slots=4, memory=2 * size)] * 2
    worlds = [ran(sessions, policy, speeds) for policy in (RoundRobin(), SessionHome(), CacheAware(), ours())]
    assert all(outcome.ended is not None for world in worlds for outcome in world.outcomes)
    around, home, aware, scheduled = worlds
    assert home.computed < around.computed
    assert scheduled.computed < home.computed
    assert mean(scheduled) < mean(around)
    assert mean(scheduled) <= min(mean(home), mean(aware))


def test_eight_agents_at_once_lose_little_while_it_is_learnt_what_fits() -> None:
    """Memory for three of them, as two engines of one thread have it: the scheduler begins with what they serve."""
    dice = Random(1)
    sessions = [
        Session(
            f"s{number}",
            number / 100,
            tuple(
                Turn(dice.randrange(45, 135) if turn else dice.randrange(350, 600), 24, "", 0.5) for turn in range(6)
            ),
        )
        for number in range(8)
    ]
    needed = sum(turn.added for session in sessions for turn in session.turns)
    engines = [
        Speed(prefill=150.0, token=0.0115, token_beside=0.011, shared=0.2, slots=2, memory=2_800, tells=True)
    ] * 2
    scheduled = ran(sessions, ours(LeastAttained), engines)
    assert scheduled.computed < 1.3 * needed
    assert mean(scheduled) < 0.4 * mean(ran(sessions, RoundRobin(), engines))
    assert mean(scheduled) < 0.5 * mean(ran(sessions, CacheAware(), engines))
