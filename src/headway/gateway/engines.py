"""The embedded fleet: local replicas of one model, each a llama.cpp server in a process of its own."""

import asyncio
import os
import shutil
import socket
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir

from msgspec import Struct

from headway.core.errors import BadInputError, MissingExtraError
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.engine import Engine, OnChange, Supervision
from headway.gateway.engine_process import Launch
from headway.gateway.models import check_gguf


class EngineSpec(Struct, frozen=True, kw_only=True):
    """What each replica of an embedded fleet runs."""

    weights: Path
    """A GGUF file."""
    alias: str = "embedded"
    """The model's name for clients."""
    slots: int = 2
    """Calls that one replica works on at the same time; more wait in it."""
    context: int = 4096
    """Tokens for each slot; the default model's cost 23 KB each."""
    threads: int | None = None
    """For each replica; ``None``: the machine's cores shared out over the replicas."""
    cache_mib: int = 512
    """Memory for prompts that have left their slot, for each replica."""


class EmbeddedFleet:
    """``count`` replicas of ``spec`` on free ports of 127.0.0.1, kept alive from `start` to `stop`.

    They end with this process, however it ends. ``on_change`` is called on the event loop when a replica is ready,
    goes down, or is given up; its URL stays the same throughout.

    Raises:
        BadInputError: a count or size is below 1.
    """

    def __init__(
        self, spec: EngineSpec, count: int, on_change: OnChange, *, supervision: Supervision | None = None
    ) -> None:
        _check_sizes(spec, count)
        self._spec = spec
        self._count = count
        self._on_change = on_change
        self._supervision = supervision or Supervision()
        self._engines: tuple[Engine, ...] = ()
        self._kept = ExitStack()

    def reserve(self) -> tuple[Replica, ...]:
        """The replicas that `start` starts, each with its port; what can be checked before they start is checked.

        Raises:
            MissingExtraError: xllamacpp is not installed.
            NotFoundError: the weights cannot be read.
            BadInputError: the weights are not a GGUF file.
        """
        if not self._engines:
            if find_spec("xllamacpp") is None:
                raise MissingExtraError("The embedded engine", "embedded")
            check_gguf(self._spec.weights)
            self._engines = tuple(self._engine(number) for number in range(1, self._count + 1))
        return tuple(engine.replica for engine in self._engines)

    async def start(self) -> tuple[Replica, ...]:
        """Start all replicas at once; return when every one serves.

        Raises:
            MissingExtraError: as `reserve`.
            NotFoundError: as `reserve`.
            BadInputError: as `reserve`.
            EngineError: a replica did not come up; none is left running.
        """
        try:
            replicas = self.reserve()
            await self._all_up()
        except BaseException:
            await self.stop()
            raise
        return replicas

    async def stop(self) -> None:
        """End every process and remove what they kept in the temporary folder."""
        await asyncio.gather(*(engine.stop() for engine in self._engines))
        self._engines = ()
        self._kept.close()

    def pids(self) -> dict[ReplicaId, int]:
        """The process of each replica that serves now."""
        return {engine.replica.id: engine.pid for engine in self._engines if engine.pid is not None}

    async def _all_up(self) -> None:
        outcomes = await asyncio.gather(*(engine.start() for engine in self._engines), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    def _engine(self, number: int) -> Engine:
        spec = self._spec
        port: int = self._kept.enter_context(reserve_port()).getsockname()[1]
        folder = Path(gettempdir()) / f"headway-slots-{token_hex(16)}"
        self._kept.callback(shutil.rmtree, folder, ignore_errors=True)
        replica = Replica(
            id=ReplicaId(f"{spec.alias}-{number}"),
            url=f"http://127.0.0.1:{port}/v1",
            engine="llama.cpp",
            slots=spec.slots,
            models=(spec.alias,),
        )
        launch = Launch(
            parent=os.getpid(),
            weights=str(spec.weights.absolute()),
            alias=spec.alias,
            slots=spec.slots,
            context=spec.context,
            threads=spec.threads or max(1, _cores() // self._count),
            cache_mib=spec.cache_mib,
            port=port,
            slot_folder=str(folder),
        )
        return Engine(replica, launch, self._on_change, self._supervision)


def _check_sizes(spec: EngineSpec, count: int) -> None:
    sizes = {"replicas": count, "slots": spec.slots, "context": spec.context, "threads": spec.threads}
    for name, size in sizes.items():
        if size is not None and size < 1:
            raise BadInputError(f"An embedded fleet of {name}={size}: it takes at least 1.")
    if spec.cache_mib < 0:
        raise BadInputError(f"An embedded fleet with cache_mib={spec.cache_mib}: it takes 0 (no cache) or more.")


def reserve_port() -> socket.socket:
    """A free port of 127.0.0.1, held by a socket that never listens: only who sets SO_REUSEPORT too may serve on it."""
    reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def _cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
