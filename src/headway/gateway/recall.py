"""One call's way through the cache: given an answer, waiting for one, or made so that others may have its answer."""

import asyncio
from typing import Final, Protocol

from msgspec import structs

from headway.core.span import GivenAgain, Receipt
from headway.core.usage import Usage
from headway.gateway.caches.outcomes import Given, Ticket, Wait
from headway.gateway.caches.station import ResponseCache
from headway.gateway.door import Visit
from headway.gateway.errand import Errand
from headway.gateway.refusals import too_late
from headway.gateway.renewal import Renewal, tell
from headway.gateway.responses import Failure

NOTHING_USED: Final = Usage(input_tokens=0, output_tokens=0, cache_read=0, cache_write=0, reasoning=0)
"""What a call takes whose answer was there: no engine read or wrote anything for it."""
_HOW: Final = {
    "memory": "the same question was answered {age} s ago",
    "stale": "the same question was answered {age} s ago; that is past its freshness, so it is asked anew for the next",
    "flight": "another call with the same question was under way, and this one waited for its answer",
    "shared": "another process of Headway was asked the same question {age} s ago",
    "semantic": "a question that means the same was answered {age} s ago",
}


class Recalling(Protocol):
    """Whose way it is."""

    def send(self, now: float) -> None:
        """There is no answer: it has to be made."""
        ...

    def done(self) -> None:
        """The client has its answer."""
        ...

    def cancel(self, problem: Failure) -> None:
        """It is over."""
        ...

    def met(self, error: Exception) -> None:
        """A fault of our own."""
        ...


class Recall:
    """A `Waiter`. Its end is told once, however the call ends."""

    __slots__ = ("_begun", "_cache", "_call", "_errand", "_model", "_ticket", "_timer", "_visit", "_wait")

    def __init__(self, cache: ResponseCache, errand: Errand, call: Recalling, visit: Visit | None) -> None:
        self._cache = cache
        self._errand = errand
        self._call = call
        self._visit = visit
        self._model = errand.record.model
        """The one whose answers these are; one that came from a fallback is not kept as its."""
        self._ticket: Ticket | None = None
        self._wait: Wait | None = None
        self._timer: asyncio.TimerHandle | None = None
        """Of the call's own deadline, while it waits."""

    def begin(self, now: float) -> None:
        """Ask; the call is sent, or has its answer, now or later."""
        errand, self._begun = self._errand, now
        tenant = None if self._visit is None else errand.record.tenant
        outcome = self._cache.ask(errand.request, errand.dialect, self._model, tenant=tenant, waiter=self)
        if outcome is None:
            self._call.send(now)
        elif isinstance(outcome, Ticket):
            self._make(outcome, now)
        elif isinstance(outcome, Given):
            self._give(outcome)
        else:
            self._wait = outcome
            if (deadline := errand.record.deadline) is not None:
                overdue = too_late(deadline - errand.record.received)
                self._timer = asyncio.get_running_loop().call_later(deadline - now, self._call.cancel, overdue)

    def cached(self, given: Given) -> None:
        """As `Waiter.cached`."""
        self._waited()
        try:
            self._give(given)
        except Exception as error:  # noqa: BLE001 - whoever tells it is another call, which is not to suffer for it
            self._call.met(error)

    def uncached(self, ticket: Ticket) -> None:
        """As `Waiter.uncached`."""
        now = self._waited()
        try:
            self._make(ticket, now)
        except Exception as error:  # noqa: BLE001 - as above
            self._call.met(error)

    def end(self, *, said_all: bool) -> None:
        """The call has ended; ``said_all``: its client was sent all of the answer."""
        if self._timer is not None:
            self._timer.cancel()
        if self._wait is not None:
            self._wait.leave()
        if self._ticket is not None:
            tell(self._cache, self._ticket, self._errand, self._model, said_all=said_all)

    def _waited(self) -> float:
        self._wait = None
        if self._timer is not None:
            self._timer.cancel()
        errand, now = self._errand, self._errand.wiring.clock.now()
        errand.record.queued += now - self._begun
        return now

    def _make(self, ticket: Ticket, now: float) -> None:
        self._ticket = ticket
        self._errand.client = ticket.copying(self._errand.client)
        self._call.send(now)

    def _give(self, given: Given) -> None:
        errand, kept = self._errand, given.kept
        record, chain = errand.record, errand.chain
        record.given_again = GivenAgain(
            source=given.source, made=kept.made, usage=kept.answer.usage, seconds=kept.seconds, cost=kept.cost
        )
        record.answer = structs.replace(kept.answer, usage=NOTHING_USED, engine=None)
        why = "answered from the cache: " + _HOW[given.source].format(age=given.age)
        record.receipt = Receipt(
            policy="cache", winner=given.rule, reason=why, notes=record.notes + (() if chain is None else chain.notes)
        )
        task = ((b"x-headway-task", record.task.encode("latin-1", "replace")),) if record.task else ()
        given.deliver(errand.client, *task)
        self._call.done()
        if given.refresh is not None:
            Renewal(self._cache, given.refresh, errand, self._visit).start()
