"""Other workers' calls, for identity: what ended here is told, what is not known here is asked for, not for long."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import msgspec

from headway.core.errors import HeadwayError
from headway.gateway.exposition import family
from headway.gateway.journal import CallRecord, Journal
from headway.policy.elsewhere import Told, keys_of
from headway.wire.dialect import Asked

_LOG: Final = logging.getLogger(__name__)
PATIENCE_SECONDS: Final = 0.01
"""What a call waits at most to learn of others."""
_AGAIN_SECONDS: Final = 0.001
"""What is on its way may be there then."""
_AT_ONCE: Final = 256
"""Questions under way; beyond, calls go by what is known here."""
_REST_SECONDS: Final = 1.0
"""How long a shelf that could not be used is left alone."""


class Shelf(Protocol):
    """Where workers leave what they tell each other."""

    def put(self, keys: tuple[str, ...], told: bytes) -> None:
        """Leave it under each of these keys. Never waits, and never fails: what cannot be left is not."""
        ...

    async def find(self, keys: tuple[str, ...]) -> list[bytes]:
        """What was left under these keys.

        Raises:
            HeadwayError: that cannot be told now.
        """
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...


class Unidentified(Protocol):
    """A call, before its task is known."""

    record: CallRecord

    def identified(self) -> None:
        """Its task is known."""
        ...

    def met(self, error: Exception) -> None:
        """A fault of our own."""
        ...


class Siblings:
    """The shelf, from the calls' side; on the event loop.

    Args:
        shelf: closed with this.
        patience: seconds.
    """

    def __init__(self, shelf: Shelf, patience: float = PATIENCE_SECONDS) -> None:
        self._shelf = shelf
        self._patience = patience
        self._asking: set[asyncio.Task[None]] = set()
        self._rests_until = float("-inf")
        self._up = True
        self._outcomes = dict.fromkeys(("found", "missing", "late", "unavailable"), 0)

    def join(self, journal: Journal) -> None:
        """Tell of each call whose account ``journal`` closes."""
        journal.told = self._tell

    def identify(
        self, call: Unidentified, journal: Journal, asked: Asked, fields: dict[bytes, bytes], now: float
    ) -> None:
        """Find out for which task a call is; it is told, at once where all is known here."""

        def known() -> None:
            journal.identify(call.record, asked, fields, now)
            call.identified()

        keys = journal.wanted(call.record, asked, fields)
        loop = asyncio.get_running_loop()
        if not keys:
            known()
        elif len(self._asking) >= _AT_ONCE or loop.time() < self._rests_until:
            self._outcomes["unavailable"] += 1
            known()
        else:
            task = loop.create_task(self._ask(call, keys, journal, known))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    def families(self) -> Iterator[str]:
        """For the page of metrics."""
        yield from family(
            "headway_tasks_asked_for_total",
            "counter",
            "Calls that other workers were asked about, by what came of it.",
            [({"outcome": outcome}, count) for outcome, count in self._outcomes.items()],
        )

    async def close(self) -> None:
        """Ask no more."""
        for task in self._asking:
            task.cancel()
        if self._asking:
            await asyncio.wait(self._asking)
        self._shelf.close()

    def _tell(self, told: Told) -> None:
        self._shelf.put(keys_of(told), msgspec.msgpack.encode(told))

    async def _ask(
        self, call: Unidentified, keys: tuple[str, ...], journal: Journal, known: Callable[[], None]
    ) -> None:
        looking = asyncio.ensure_future(self._look(keys))
        try:
            await asyncio.wait({looking}, timeout=self._patience)
            if looking.done():
                self._learn(looking, journal, call.record)
            else:
                self._outcomes["late"] += 1
        finally:
            looking.cancel()
        try:
            known()
        except Exception as error:  # noqa: BLE001 - nobody looks at a task's exception, and the client would wait
            call.met(error)

    async def _look(self, keys: tuple[str, ...]) -> list[bytes]:
        """Until something is found, where an earlier call must have been: what tells of it may be on its way."""
        expected, pause = any(key.startswith("c") for key in keys), _AGAIN_SECONDS
        found = await self._shelf.find(keys)
        while expected and not found:
            await asyncio.sleep(pause)  # nobody tells when something is left; until our caller's patience ends
            pause *= 2
            found = await self._shelf.find(keys)
        return found

    def _learn(self, looking: "asyncio.Future[list[bytes]]", journal: Journal, record: CallRecord) -> None:
        error = looking.exception()
        if isinstance(error, HeadwayError):
            self._outcomes["unavailable"] += 1
            self._rests_until = asyncio.get_running_loop().time() + _REST_SECONDS
            if self._up:
                self._up = False
                _LOG.warning("tasks: other workers' calls are not known for now: %s", error)
            return
        found = looking.result()
        if not self._up:
            self._up = True
            _LOG.info("tasks: other workers' calls are known again")
        self._outcomes["found" if found else "missing"] += 1
        journal.learn([_decoder.decode(one) for one in found], record.tenant)


_decoder: Final = msgspec.msgpack.Decoder(Told)
