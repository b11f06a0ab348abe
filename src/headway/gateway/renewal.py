"""A call that is made for nobody, so that the next who asks the same is given a fresh answer."""

from typing import Final

from msgspec import structs

from headway.core.usage import Usage
from headway.gateway.caches.copying import Nobody
from headway.gateway.caches.outcomes import Ticket
from headway.gateway.caches.station import ResponseCache
from headway.gateway.door import Visit
from headway.gateway.errand import Errand
from headway.gateway.escalating import Escalating, sending_of
from headway.gateway.responses import Failure
from headway.gateway.sending import Sending

_ITS_OWN: Final = frozenset({"http_400", "http_413", "http_422"})
"""An engine's word on the request itself: whoever waits with the same one need not wait for each other's refusal."""


def tell(cache: ResponseCache, ticket: Ticket, errand: Errand, model: str, *, said_all: bool) -> None:
    """Tell the cache how the call of a ticket ended.

    Args:
        cache: whose ticket it is.
        ticket: the right to make the call.
        errand: the call.
        model: the one that was to answer.
        said_all: the client was sent all of the answer, whether or not it stayed to the end of the response.
    """
    record, wiring = errand.record, errand.wiring
    if record.error in _ITS_OWN or record.model != model or record.wanting:
        cache.not_kept(ticket)
    elif record.error is not None or record.sent is None:
        cache.failed(ticket)
    else:
        if said_all and ticket.copy is not None:
            ticket.copy.complete()
        tariff = wiring.passes.tariff
        usage = Usage() if record.answer is None else record.answer.usage
        cost = None if tariff is None else tariff.used(record.model, usage)[1]
        seconds = wiring.clock.now() - record.sent
        cache.answered(ticket, answer=record.answer, seconds=seconds, cost=cost)


class Renewal:
    """Passes limits as the call does whose question it asks again, and is told of in that call's task.

    Its record is another: whoever was given the stale answer has not waited for it.
    """

    _sending: Sending | Escalating | None = None
    _visit: Visit | None = None
    _ended = False

    def __init__(self, cache: ResponseCache, ticket: Ticket, given: Errand, visit: Visit | None) -> None:
        wiring, before = given.wiring, given.record
        record = self.record = wiring.journal.open(wiring.clock.now(), given.dialect)
        record.renews, record.task, record.tenant = before.span, before.task, before.tenant
        record.model, record.stream = before.model, before.stream
        record.lane = "batch"  # nobody waits for it
        self._cache = cache
        self._ticket = ticket
        self._errand = structs.replace(given, client=ticket.copying(Nobody()), record=record)
        if visit is not None:
            self._visit = visit.again()

    def start(self) -> None:
        """Make the call."""
        errand = self._errand
        self._cache.renewals.add(self)
        try:
            if self._visit is None:
                self.admitted(errand.record.received)
            else:
                self._visit.begin(self, errand.asks, errand.request.body, errand.chain)
        except Exception as error:  # noqa: BLE001 - whoever was given the stale answer has it
            self.met(error)

    def admitted(self, now: float) -> None:
        """As `Visiting.admitted`."""
        sending = self._sending = sending_of(self._errand, self)
        sending.start(now)

    def cancel(self, problem: Failure) -> None:
        """End now."""
        if self._ended:
            return
        if self._sending is not None:
            self._sending.cut()
        self.record.error = problem.error
        self.done()

    def met(self, error: Exception) -> None:
        """As `Sender.met`."""
        self.cancel(self._errand.wiring.unforeseen.met(error))

    def done(self) -> None:
        """As `Sender.done`."""
        self._ended = True
        self._cache.renewals.discard(self)
        try:
            if self._sending is not None:
                self._sending.end()
        finally:
            tell(self._cache, self._ticket, self._errand, self.record.model, said_all=False)
            if self._visit is not None:
                self._visit.end(self.record)
            self._errand.wiring.journal.close(self.record)
