"""One call on its way: what it passes before it is sent, and the account of it when it has ended, however it did."""

from headway.core.errors import BadInputError
from headway.core.span import ErrorType
from headway.gateway.door import Visit
from headway.gateway.errand import Errand
from headway.gateway.escalating import Escalating, sending_of
from headway.gateway.front import Client, Request
from headway.gateway.naming import Chain
from headway.gateway.recall import Recall
from headway.gateway.responses import Failure, failure
from headway.gateway.sending import Sending
from headway.gateway.urgency import read_urgency
from headway.gateway.wiring import Wiring
from headway.wire.dialect import Asked, Dialect


class Call:
    """A call from the request to the last byte of its answer. It ends exactly once."""

    # Defaults on the class: most calls change few of them, and every microsecond is every caller's.
    _asks: Asked
    _chain: Chain | None = None
    """The models that may answer; ``None``: the one that was asked for."""
    _errand: Errand
    _recall: Recall | None = None
    """Its way through the cache, where answers are kept."""
    _sending: Sending | Escalating | None = None
    """How an engine gives it its answer, once it has passed all else."""
    _ended = False

    def __init__(
        self, wiring: Wiring, request: Request, client: Client, dialect: Dialect, visit: Visit | None = None
    ) -> None:
        self._wiring = wiring
        self._request = request
        self._client = client
        self._dialect = dialect
        self.record = wiring.journal.open(request.received, dialect)
        self._visit = visit
        if visit is not None:
            self.record.tenant = visit.caller.tenant.id

    # --- what it passes

    def start(self) -> None:
        """Read the request, and find out whether and how it may be made."""
        request, wiring = self._request, self._wiring
        self._client.watch(self)
        try:
            asks = self._asks = self._dialect.read(request.body)
        except BadInputError as error:
            self._fail(failure("bad_request", 400, error))
            return
        siblings = wiring.passes.siblings
        if siblings is None:
            wiring.journal.identify(self.record, asks, request.fields, request.received)
            self.identified()
        else:
            siblings.identify(self, wiring.journal, asks, request.fields, request.received)

    def identified(self) -> None:
        """Its task is known: find out which models may answer, and whether it may be made."""
        if self._ended:
            return
        asks, request, passes = self._asks, self._request, self._wiring.passes
        caller = None if self._visit is None else self._visit.caller
        read_urgency(self.record, request.fields, request.received, caller, passes.batch)
        naming = passes.naming
        if naming is not None and (asks.model in naming.known or naming.pins.any):
            chain = naming.choose(self.record, asks, request, request.received)
            if isinstance(chain, Failure):
                self._fail(chain)
                return
            if chain is not None:
                self._chain, self.record.model = chain, chain.model
        if self._visit is None:
            self.admitted(request.received)
        else:
            identity = self.record.identity
            made_here = identity is not None and identity.opens_task and identity.evidence != "explicit"
            fresh = made_here and passes.siblings is None
            self._visit.begin(self, asks, request.body, self._chain, fresh=fresh)

    def admitted(self, now: float) -> None:
        """It may be made: see whether it has to be."""
        errand = self._errand = Errand(
            wiring=self._wiring,
            request=self._request,
            client=self._client,
            dialect=self._dialect,
            asks=self._asks,
            record=self.record,
            chain=self._chain,
        )
        cache = self._wiring.cache
        if cache is None:
            self.send(now)
        else:
            recall = self._recall = Recall(cache, errand, self, self._visit)
            recall.begin(now)

    def send(self, now: float) -> None:
        """Nobody has its answer yet: make it."""
        sending = self._sending = sending_of(self._errand, self)
        sending.start(now)

    # --- what the client's side tells

    def client_gone(self, error: str) -> None:
        """Nobody waits for the answer any more."""
        if self._sending is None or not self._sending.said_all:
            self.record.error = ErrorType(error)
        if self._sending is not None:
            self._sending.cut()
        self.done()

    def client_blocked(self) -> None:
        """The client cannot keep up."""
        if self._sending is not None:
            self._sending.pause()

    def client_ready(self) -> None:
        """The client has caught up."""
        if self._sending is not None:
            self._sending.resume()

    def cancel(self, problem: Failure) -> None:
        """End now, with ``problem`` as the answer."""
        if self._sending is not None:
            self._sending.cut()
        self._fail(problem)

    # --- ending

    def met(self, error: Exception) -> None:
        """A fault that nobody foresaw ends the call that it is met in, and no other."""
        problem = self._wiring.unforeseen.met(error)
        if not self._ended:
            self.cancel(problem)

    def _fail(self, problem: Failure) -> None:
        if self._sending is not None:
            self._sending.failed(problem)
            return
        self.record.error = problem.error
        self._client.fail(problem)
        self.done()

    def done(self) -> None:
        """As `Sender.done`: each that it has passed is told."""
        self._ended = True
        sending, said_all = self._sending, False
        try:
            if sending is not None:
                said_all = sending.said_all
                sending.end()
        finally:
            if self._recall is not None:
                self._recall.end(said_all=said_all)
            if self._visit is not None:
                self._visit.end(self.record)
            self._wiring.journal.close(self.record)
