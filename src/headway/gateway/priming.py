"""llama.cpp's slots, primed: what one has computed is saved and read into others, which share nothing of themselves.

A slot is saved whole, its prompt and what was answered; a call that begins like it computes only what differs. One file
for each replica is all that is ever written, into the folder that the engine was started with: `--slot-save-path`.
"""

import asyncio
from collections import defaultdict
from secrets import token_hex
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from headway.core.fleet import Replica, ReplicaId

_OK: Final = 200
_UNKNOWN: Final = frozenset({403, 404, 405, 501})
"""Statuses with which an engine says that it has no such thing."""
_ALIKE: Final = 4
"""Tokens by which an engine's count of what a slot holds may differ from what it told of the call."""
_SECONDS: Final = 5.0
"""For each request: a slot that is at work is saved when it is through."""


class _Slot(Struct):
    id: int
    is_processing: bool
    id_task: int = -1
    """Of the last call in it, which count upwards; -1: it has served none."""
    n_prompt_tokens: int = 0
    """What it holds."""


class _Saved(Struct):
    n_saved: int = 0


_slots: Final = msgspec.json.Decoder(list[_Slot])


class Fetch(Protocol):
    """As `Upstream.fetch`."""

    async def __call__(
        self,
        replica: Replica,
        method: str,
        path: str,
        body: bytes = ...,
        *,
        timeout: float,  # noqa: ASYNC109 - kept by whoever fetches
        beside: bool,
    ) -> tuple[int, bytes]:
        """Status and body of the answer."""
        ...


class Priming:
    """Primes slots; used from one event loop only.

    Args:
        fetch: for small requests to replicas.
    """

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._file: Final = f"headway-{token_hex(8)}.bin"
        self._locks: defaultdict[ReplicaId, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._unable: set[ReplicaId] = set()
        self.primed = 0
        """Slots, since the start."""

    def able(self, replica: Replica) -> bool:
        """Whether its slots may be primed, for all that is known."""
        return replica.engine == "llama.cpp" and replica.id not in self._unable

    async def spread(self, replica: Replica, tokens: int | None, slots: int) -> int:
        """Read what the call that ended last has computed into idle slots, those first that were used longest ago.

        Args:
            replica: whose.
            tokens: that call's, prompt and answer, by which its slot is told from others; ``None``: unknown.
            slots: how many at most.

        Returns:
            How many there are now. A replica that cannot do this is not asked again.

        Raises:
            UpstreamError: it did not answer.
        """
        async with self._locks[replica.id]:
            idle = [slot for slot in await self._idle(replica) if not slot.is_processing]
            source = _of(idle, tokens)
            others = sorted([slot for slot in idle if slot is not source], key=lambda slot: slot.id_task)[:slots]
            if source is None or not others or not await self._do(replica, source, "save"):
                return 0
            done = [slot for slot in others if await self._do(replica, slot, "restore")]
        self.primed += len(done)
        return len(done)

    async def _idle(self, replica: Replica) -> list[_Slot]:
        status, body = await self._fetch(replica, "GET", "/slots", timeout=_SECONDS, beside=True)
        if status in _UNKNOWN:
            self._unable.add(replica.id)
        try:
            return _slots.decode(body) if status == _OK else []
        except msgspec.DecodeError:
            self._unable.add(replica.id)
            return []

    async def _do(self, replica: Replica, slot: _Slot, what: str) -> bool:
        path, body = f"/slots/{slot.id}?action={what}", msgspec.json.encode({"filename": self._file})
        status, answer = await self._fetch(replica, "POST", path, body, timeout=_SECONDS, beside=True)
        if status in _UNKNOWN:
            self._unable.add(replica.id)
        if what == "restore" or status != _OK:
            return status == _OK
        try:
            return msgspec.json.decode(answer, type=_Saved).n_saved > 0
        except msgspec.DecodeError:
            return False


def _of(idle: list[_Slot], tokens: int | None) -> _Slot | None:
    """Where a call of so many tokens was: of slots that hold as much the one used last."""
    held = [slot for slot in idle if slot.id_task >= 0]
    fitting = [slot for slot in held if tokens is None or abs(slot.n_prompt_tokens - tokens) <= _ALIKE]
    return max(fitting, key=lambda slot: slot.id_task, default=None)
