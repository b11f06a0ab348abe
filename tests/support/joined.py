"""A gateway and a runtime that write to one store, so that a task is whole there."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from headway.core.clock import SystemClock
from headway.core.config import Limits, Recording
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.app import Gateway
from headway.gateway.fake import FakeEngine
from headway.gateway.fleet import LiveFleet
from headway.policy.identify import Identifier
from headway.policy.routing.least_loaded import LeastLoaded
from headway.trace.ids import Ids
from headway.trace.record import Recorder
from headway.trace.store import Store


@asynccontextmanager
async def gateway_into(store: Store, engine: FakeEngine) -> AsyncGenerator[str]:
    """A gateway that writes to the same store; its URL."""
    clock = SystemClock()
    with Recorder(store, capacity=1000) as recorder:
        gateway = Gateway(
            LiveFleet([Replica(id=ReplicaId("r"), url=engine.url)]),
            policy=LeastLoaded(),
            identifier=Identifier(Ids(clock).task),
            recorder=recorder,
            limits=Limits(),
            recording=Recording(),
            clock=clock,
        )
        _, port = await gateway.start("127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            await gateway.close(drain=2)
