"""Probes against real servers: down after failures in a row, up again after one success."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from headway.core.clock import SystemClock
from headway.core.config import Limits
from headway.core.fleet import EngineKind, Replica, ReplicaId
from headway.gateway.deadlines import Deadlines
from headway.gateway.fake import FakeEngine
from headway.gateway.fleet import LiveFleet
from headway.gateway.health import Prober
from headway.gateway.upstream import Upstream

R = ReplicaId("r")


@asynccontextmanager
async def upstream() -> AsyncGenerator[Upstream]:
    clock = SystemClock()
    one = Upstream(Limits(), clock, Deadlines(clock, 1.0))
    try:
        yield one
    finally:
        await one.close()


def fleet_of(engine: FakeEngine, kind: EngineKind = "openai", **more: str) -> LiveFleet:
    return LiveFleet([Replica(id=R, url=engine.url, engine=kind, api_key=more.get("api_key"))])


async def test_down_after_three_failures_and_up_after_one_success() -> None:
    async with FakeEngine() as engine, upstream() as up:
        fleet = fleet_of(engine)
        prober = Prober(fleet, up.fetch)
        await engine.go_down()
        states: list[bool] = []
        for _ in range(3):
            await prober.probe()
            states.append(fleet.health()[0].healthy)
        assert states == [True, True, False]
        assert "r" in fleet.health()[0].reason
        await engine.come_up()
        await prober.probe()
        assert fleet.health()[0].healthy
        assert fleet.health()[0].reason == "GET /models answered 200"
        await engine.go_down()
        await prober.probe()
        assert fleet.health()[0].healthy  # failures count in a row, so it has all three again


async def test_what_counts_as_well_depends_on_the_engine() -> None:
    async with FakeEngine(api_key="secret") as engine, upstream() as up:
        engine.health = 503
        loading = fleet_of(engine, "llama.cpp")
        await Prober(loading, up.fetch, failures=1).probe()
        assert not loading.health()[0].healthy
        assert loading.health()[0].reason == "GET /health answered 503"
        engine.health = 200
        await Prober(loading, up.fetch, failures=1).probe()
        assert loading.health()[0].healthy
        elsewhere = LiveFleet([Replica(id=R, url=engine.url.removesuffix("/v1") + "/not-there")])
        await Prober(elsewhere, up.fetch, failures=1).probe()
        assert elsewhere.health()[0].reason == "GET /models answered 404"
        assert elsewhere.health()[0].healthy


async def test_undeclared_models_are_learnt_and_declared_ones_are_left_alone() -> None:
    async with FakeEngine(models=("small", "large")) as engine, upstream() as up:
        told = Replica(id=ReplicaId("told"), url=engine.url, models=("mine",))
        fleet = LiveFleet([Replica(id=R, url=engine.url), told])
        await Prober(fleet, up.fetch, discover=frozenset({R})).probe()
        assert fleet.get(R).models == ("small", "large")
        assert fleet.get(told.id).models == ("mine",)


async def test_a_list_of_models_that_cannot_be_read_changes_nothing() -> None:
    async def fetch(*_: object, timeout: float) -> tuple[int, bytes]:  # noqa: ASYNC109 - the seam's own name
        del timeout
        return 200, b"<html>welcome</html>"

    fleet = LiveFleet([Replica(id=R, url="http://127.0.0.1:1/v1")])
    await Prober(fleet, fetch, discover=frozenset({R})).probe()
    assert fleet.get(R).models == ()
    assert fleet.health()[0].healthy


async def test_rounds_go_on_until_they_are_stopped() -> None:
    async with FakeEngine() as engine, upstream() as up:
        prober = Prober(fleet_of(engine), up.fetch, period=0.0)
        prober.start()
        await engine.until(lambda: len(engine.probes) >= 3)
        await prober.stop()
        seen = len(engine.probes)
        await engine.until(lambda: engine.open_connections == 0)
        assert len(engine.probes) == seen
        await prober.stop()


async def test_a_fault_of_our_own_is_told_and_not_swallowed(caplog: pytest.LogCaptureFixture) -> None:
    told = asyncio.Event()

    async def fetch(*_: object, timeout: float) -> tuple[int, bytes]:  # noqa: ASYNC109 - the seam's own name
        del timeout
        told.set()
        raise LookupError("a fault")

    prober = Prober(LiveFleet([Replica(id=R, url="http://127.0.0.1:1/v1")]), fetch)
    prober.start()
    await told.wait()
    for _ in range(5):
        await asyncio.sleep(0)  # the group, the round and its callback each take a turn of the loop to end
    assert "replicas are no longer probed" in caplog.text
    with pytest.raises(ExceptionGroup):
        await prober.stop()
