"""How a call gets its answer: which replica is asked, and who after it where that one cannot answer."""

from typing import Final, Protocol

from msgspec import structs

from headway.core.errors import HeadwayError
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.attempt import Attempt
from headway.gateway.connection import Breakdown
from headway.gateway.errand import Errand
from headway.gateway.naming import UNSERVED
from headway.gateway.refusals import broke_off, no_answer, unserved
from headway.gateway.relay import BrokenAnswerError
from headway.gateway.responses import Failure, failure
from headway.policy.route import RouteDone, RouteRequest

_NOWHERE: Final[frozenset[ReplicaId]] = frozenset()


class Sender(Protocol):
    """Whose call it is."""

    def done(self) -> None:
        """The client has its answer, or a failure for one. Told once."""
        ...

    def met(self, error: Exception) -> None:
        """A fault of our own that nobody foresaw."""
        ...


class Sending:
    """Attempts, one after the other, until one of them has answered.

    Sent twice, a call may cost twice. So a model is sent it again only where no byte of an answer came and whoever had
    it cannot be at work on it any more:

    - No connection was had: every other replica is tried in turn.
    - The replica hung up without a word: it crashed, and what it had computed is lost. One other replica gets the call:
      a request that kills its engine must not kill them all.
    - What an `Attempt` does by itself.

    Where the model cannot answer, and the client has had no byte, the next of its chain is asked, if it has one.
    """

    _attempt: Attempt | None = None
    """The one under way; the fleet counts this call as in flight on its replica."""
    _excluded: frozenset[ReplicaId] = _NOWHERE
    _setback: Failure | None = None
    """Why the replica that was tried last did not serve."""
    _tried: Attempt | None = None
    """That one; it becomes a setback when another begins."""
    _moved = False
    """A replica hung up without a word, and the call went to another."""

    def __init__(self, errand: Errand, sender: Sender) -> None:
        self._errand = errand
        self._sender = sender

    def start(self, now: float) -> None:
        """Send the call."""
        self._excluded = self._errand.wiring.fleet.deaf_to(self._errand.dialect)
        self._route(now)

    def _route(self, now: float) -> None:
        """Choose a replica, and send the call to it."""
        errand = self._errand
        wiring, record, chain = errand.wiring, errand.record, errand.chain
        request = RouteRequest(model=record.model, task=record.task, excluded=self._excluded)
        decision = wiring.policy.decide(request, wiring.fleet.view(), now)
        if decision.replica is None:
            record.receipt = record.receipt or decision.receipt
            problem = self._setback or no_answer(decision, record.model, errand.dialect, wiring.fleet)
            if not self._falls_back(problem):
                self.failed(problem)
            return
        receipt = decision.receipt
        notes = record.notes if chain is None else record.notes + chain.notes
        record.receipt = structs.replace(receipt, notes=notes) if notes else receipt
        self._begin(decision.replica, now)

    def _begin(self, replica: Replica, now: float) -> None:
        errand = self._errand
        if self._tried is not None and self._setback is not None:
            self._tried.set_back(self._setback.error, now)
            self._tried = None
        errand.record.replica = replica.id
        errand.wiring.fleet.started(replica.id)
        attempt = self._attempt = Attempt(errand, self, replica, now)
        attempt.start()

    # --- what an attempt tells

    def unreachable(self, error: HeadwayError) -> None:
        """As `Attempting.unreachable`: choose another."""
        if (attempt := self._attempt) is not None:
            self._errand.wiring.fleet.mark(attempt.replica.id, False, str(error))  # noqa: FBT003 - the fleet's signature
            self._try_another(attempt, failure("upstream_connect", 502, error))

    def broken(self, breakdown: Breakdown) -> None:
        """As `Attempting.broken`."""
        if (attempt := self._attempt) is None:
            return
        problem = broke_off(attempt.replica.id, breakdown)
        if breakdown.silent and breakdown.error == "upstream_closed" and not self._moved:
            self._moved = True
            self._try_another(attempt, problem)
        elif attempt.answered or not self._falls_back(problem):
            self.failed(problem)

    def complete(self, now: float) -> None:
        """As `Attempting.complete`."""
        attempt, chain = self._attempt, self._errand.chain
        if attempt is None:
            return
        if chain is not None and chain.more and attempt.status in UNSERVED:
            self._falls_back(unserved(attempt.replica.id, attempt.status))
            return
        try:
            attempt.finish(now)
        except BrokenAnswerError as error:
            self.failed(failure(error.error, 502, error))
        else:
            self._sender.done()

    def failed(self, problem: Failure) -> None:
        """As `Attempting.failed`."""
        errand = self._errand
        errand.record.error = problem.error
        if self._attempt is None:
            errand.client.fail(problem)
        else:
            self._attempt.fail(problem)
        self._sender.done()

    def met(self, error: Exception) -> None:
        """As `Attempting.met`."""
        self._sender.met(error)

    def _try_another(self, attempt: Attempt, setback: Failure) -> None:
        self._excluded |= {attempt.replica.id}
        self._again(attempt, setback)

    def _falls_back(self, problem: Failure) -> bool:
        """Ask the next model that may answer; whether there is one."""
        errand, chain = self._errand, self._errand.chain
        if chain is None or not chain.more:
            return False
        chain.next(problem.error)
        errand.record.model = chain.model
        self._excluded = errand.wiring.fleet.deaf_to(errand.dialect)
        self._moved = False
        self._again(self._attempt, problem)
        return True

    def _again(self, attempt: Attempt | None, setback: Failure) -> None:
        now = self._errand.wiring.clock.now()
        self._setback = setback
        if attempt is not None:
            self._tried = attempt
            self._release(failed=True)
        self._route(now)

    # --- what the call tells

    @property
    def said_all(self) -> bool:
        """The client was sent all that it waits for."""
        return self._attempt is not None and self._attempt.said_all

    def pause(self) -> None:
        """The client cannot keep up, so the engine's answer is read no further."""
        if self._attempt is not None:
            self._attempt.pause()

    def resume(self) -> None:
        """The client has caught up."""
        if self._attempt is not None:
            self._attempt.resume()

    def cut(self) -> None:
        """Ask nobody any more."""
        if self._attempt is not None:
            self._attempt.cut()

    def end(self) -> None:
        """The call has ended: write down what was learnt, and give back what it held."""
        try:
            if self._attempt is not None:
                self._attempt.note()
        finally:
            self._release(failed=self._errand.record.error is not None)

    def _release(self, *, failed: bool) -> None:
        if self._attempt is not None:
            replica, self._attempt = self._attempt.replica.id, None
            wiring = self._errand.wiring
            wiring.fleet.finished(replica)
            wiring.observe(RouteDone(replica=replica, task=self._errand.record.task, failed=failed))
