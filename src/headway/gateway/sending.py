"""How a call gets its answer: which replica is asked, and who after it or beside it where that one cannot answer."""

import asyncio
from typing import Final

from msgspec import structs

from headway.core.errors import HeadwayError
from headway.core.fleet import Replica, ReplicaId
from headway.core.span import HEDGED, ErrorType, Receipt
from headway.gateway.attempt import Attempt
from headway.gateway.attempts import Attempts
from headway.gateway.choice import choose
from headway.gateway.connection import Breakdown
from headway.gateway.race import Race
from headway.gateway.refusals import broke_off, no_answer, too_late, unserved
from headway.gateway.relay import BrokenAnswerError
from headway.gateway.responses import Failure, failure
from headway.gateway.retrying import retry_after
from headway.policy.resend.retry import UNSERVED, Retries
from headway.policy.route import RouteDecision, RouteRequest
from headway.policy.routing.candidates import able

_NOWHERE: Final[frozenset[ReplicaId]] = frozenset()
_BROKEN: Final = 500
"""From this status on an answer is the engine's fault."""


class Sending(Attempts):
    """Attempts, one after the other, until one of them has answered; never once the client has had a byte.

    Sent twice, a call may cost twice. So where no retries are configured a model is sent it again only where no byte of
    an answer came and whoever had it cannot be at work on it any more:

    - No connection was had: every other replica is tried in turn.
    - The replica hung up without a word: it crashed, and what it had computed is lost. One other replica gets the call:
      a request that kills its engine must not kill them all.
    - What an `Attempt` does by itself.

    Then come retries, where they are configured; then the next model of the call's chain, if it has one.
    """

    _excluded: frozenset[ReplicaId] = _NOWHERE
    _moved = False
    """A replica hung up without a word, and the call went to another."""
    _retries: Retries | None = None
    """Of the model that is asked now, once it had to be asked again."""
    _overdue: asyncio.TimerHandle | None = None
    """Of the call's deadline."""

    def start(self, now: float) -> None:
        """Send the call."""
        errand = self._errand
        self._excluded = errand.wiring.fleet.deaf_to(errand.dialect)
        if (retrying := errand.wiring.passes.retries) is not None:
            retrying.budget.called()
        if (deadline := errand.record.deadline) is not None:
            if deadline <= now:
                self._out_of_time()
                return
            self._overdue = self._later(deadline - now, self._out_of_time)
        self._route(now)

    def _route(self, now: float) -> None:
        """Have a replica chosen, at once or when it is the call's turn."""
        errand = self._errand
        record = errand.record
        if (turns := errand.wiring.passes.turns) is not None:
            self._note_setback(now)
            turns.arrive(self, record, errand.asks, self._excluded, now)
        else:
            self.decided(self._decide(self._excluded, now), now)

    # --- what comes of it

    def decided(self, decision: RouteDecision, now: float) -> None:
        """As `Held.decided`: send the call to the replica that was chosen for it."""
        errand = self._errand
        record = errand.record
        if decision.replica is None:
            record.receipt = record.receipt or decision.receipt
            problem = self._setback or no_answer(decision, record.model, errand.dialect, errand.wiring.fleet)
            again = self._setback is not None and self._retried(None, now)
            if not again and not self._falls_back(problem):
                self.failed(problem)
            return
        record.receipt = self._receipt(decision)
        if errand.wiring.passes.leading is None:
            self._begin(decision.replica, now)
        else:
            self.lead(decision.replica, now, wait=True)

    def lead(self, replica: Replica, now: float, *, wait: bool) -> None:
        """As `Follower.lead`."""
        wiring, record = self._errand.wiring, self._errand.record
        leading = wiring.passes.leading
        if leading is None or not wait or not leading.holds(self, record, replica, now):
            self._begin(replica, now)

    def turned_away(self, problem: Failure, receipt: Receipt) -> None:
        """As `Held.turned_away`."""
        record = self._errand.record
        record.receipt = structs.replace(receipt, notes=record.notes)
        if not self._falls_back(problem):
            self.failed(problem)

    def _decide(self, excluded: frozenset[ReplicaId], now: float) -> RouteDecision:
        wiring, record = self._errand.wiring, self._errand.record
        if (turns := wiring.passes.turns) is not None:
            return turns.beside(record, self._errand.asks, excluded, now)
        request = RouteRequest(model=record.model, task=record.task, excluded=excluded)
        if wiring.passes.breakers is None:
            return wiring.policy.decide(request, wiring.fleet.view(), now)
        return choose(wiring, request, wiring.passes.breakers, now)

    def _receipt(self, decision: RouteDecision) -> Receipt:
        """The decision's, with what else was decided about the call."""
        record, chain, receipt = self._errand.record, self._errand.chain, decision.receipt
        notes = record.notes if chain is None else record.notes + chain.notes
        return structs.replace(receipt, notes=notes + receipt.notes) if notes else receipt

    def _begin(self, replica: Replica, now: float) -> None:
        if self._tried is not None:
            self._note_setback(now)
        self._errand.record.replica = replica.id
        attempt = self._attempt = self._attempted(replica, now)
        attempt.start()
        if self._attempt is attempt and self._errand.wiring.passes.hedging is not None:
            self._await_beginning()

    def _attempted(self, replica: Replica, now: float) -> Attempt:
        wiring = self._errand.wiring
        wiring.fleet.started(replica.id)
        attempt = Attempt(self._errand, self, replica, now)
        if (breakers := wiring.passes.breakers) is not None:
            attempt.trial = breakers.sent(replica.id)
        return attempt

    # --- what an attempt tells

    def begun(self, attempt: Attempt, now: float) -> None:
        """As `Attempting.begun`."""
        self._stop_waiting()
        passes = self._errand.wiring.passes
        if passes.leading is not None:
            passes.leading.begun(self._errand.record, attempt.replica, now)
        hedging = passes.hedging
        if hedging is not None and (kind := self._kind()) is not None:
            hedging.hedger.observe(kind, now - attempt.sent)
        if self._race is not None:
            self._won(self._race, attempt, now)

    def unreachable(self, attempt: Attempt, error: HeadwayError) -> None:
        """As `Attempting.unreachable`: choose another."""
        attempt.well = False
        self._errand.wiring.fleet.mark(attempt.replica.id, False, str(error))  # noqa: FBT003 - the fleet's signature
        problem = failure("upstream_connect", 502, error)
        if not self._drops_out(attempt, problem):
            self._try_another(attempt, problem)

    def broken(self, attempt: Attempt, breakdown: Breakdown) -> None:
        """As `Attempting.broken`."""
        attempt.well = False
        problem = broke_off(attempt.replica.id, breakdown)
        if self._drops_out(attempt, problem):
            return
        crashed = breakdown.silent and breakdown.error == "upstream_closed"
        if crashed and not self._moved:
            self._moved = True
            self._try_another(attempt, problem)
        elif attempt.told or not self._sent_again(attempt, problem, retry=not crashed):
            self.failed(problem)

    def complete(self, attempt: Attempt, now: float) -> None:
        """As `Attempting.complete`."""
        attempt.well = attempt.status < _BROKEN
        if attempt.status in UNSERVED:
            problem = unserved(attempt.replica.id, attempt.status)
            if self._drops_out(attempt, problem) or self._sent_again(attempt, problem, retry=True):
                return
        if self._race is not None:
            self._won(self._race, attempt, now)
        try:
            attempt.finish(now)
        except BrokenAnswerError as error:
            attempt.well = False
            self.failed(failure(error.error, 502, error))
        else:
            self._sender.done()

    def refused(self, attempt: Attempt, problem: Failure) -> None:
        """As `Attempting.refused`."""
        if not self._drops_out(attempt, problem):
            self.failed(problem)

    def failed(self, problem: Failure) -> None:
        """The call is over, with this for its answer."""
        errand = self._errand
        errand.record.error = problem.error
        if self._attempt is None:
            errand.client.fail(problem)
        else:
            self._attempt.fail(problem)
        self._sender.done()

    # --- who is asked after it

    def _try_another(self, attempt: Attempt, setback: Failure) -> None:
        self._excluded |= {attempt.replica.id}
        self._stop_waiting()
        self._set_back(attempt, setback)
        self._route(self._errand.wiring.clock.now())

    def _sent_again(self, attempt: Attempt, problem: Failure, *, retry: bool) -> bool:
        """Have the call answered after a failure of ``attempt``; whether it can be.

        Another replica of the model is asked rather than the same, whose own wish to be left alone then is no matter.
        """
        wiring = self._errand.wiring
        self._stop_waiting()
        if retry and wiring.passes.retries is not None:
            now = wiring.clock.now()
            self._excluded |= {attempt.replica.id}
            if self._retried(None if self._has_others() else retry_after(attempt.fields, now), now):
                self._set_back(attempt, problem)
                return True
        return self._falls_back(problem)

    def _retried(self, asked: float | None, now: float) -> bool:
        """Ask the same model again in a while, at whichever of its replicas; whether that may be.

        Args:
            asked: seconds for which all that serve it wish to be left alone.
            now: epoch seconds.
        """
        retrying, record = self._errand.wiring.passes.retries, self._errand.record
        if retrying is None:
            return False
        retries = self._retries = self._retries or Retries(retrying.rules)
        wait = retrying.wait(retries, asked, now, record.deadline)
        if wait is None:
            return False
        self._timer = self._later(wait, self._ask_again)
        return True

    def _ask_again(self) -> None:
        self._timer = None
        wiring = self._errand.wiring
        if not self._has_others():
            self._excluded = wiring.fleet.deaf_to(self._errand.dialect)
        self._route(wiring.clock.now())

    def _has_others(self) -> bool:
        """Whether some replica of the model has not had the call."""
        record, view = self._errand.record, self._errand.wiring.fleet.view()
        return bool(able(RouteRequest(model=record.model, task=record.task, excluded=self._excluded), view))

    def _falls_back(self, problem: Failure) -> bool:
        """Ask the next model that may answer; whether there is one."""
        errand, chain = self._errand, self._errand.chain
        if chain is None or not chain.more:
            return False
        chain.next(problem.error)
        errand.record.model = chain.model
        self._excluded = errand.wiring.fleet.deaf_to(errand.dialect)
        self._moved, self._retries = False, None
        if (attempt := self._attempt) is not None:
            self._set_back(attempt, problem)
        self._setback = problem
        self._route(errand.wiring.clock.now())
        return True

    # --- who is asked beside it

    def _kind(self) -> str | None:
        errand = self._errand
        hedging = errand.wiring.passes.hedging
        if hedging is None:
            return None
        return hedging.kind(errand.dialect.path, errand.record.model, streams=errand.asks.stream is True)

    def _await_beginning(self) -> None:
        """Have another replica asked too if this one does not begin to answer when most would have."""
        hedging, kind = self._errand.wiring.passes.hedging, self._kind()
        if hedging is not None and kind is not None and (seconds := hedging.hedger.after(kind)) is not None:
            self._timer = self._later(seconds, self._hedge)

    def _hedge(self) -> None:
        self._timer = None
        errand, first, kind = self._errand, self._attempt, self._kind()
        hedging = errand.wiring.passes.hedging
        if first is None or first.answered or hedging is None or kind is None:
            return
        now = errand.wiring.clock.now()
        decision = self._decide(self._excluded | {first.replica.id}, now)
        if decision.replica is not None and hedging.hedger.allows(kind):
            race = self._race = Race(errand, first, self._attempted(decision.replica, now))
            race.start(self._receipt(decision))

    def _won(self, race: Race, attempt: Attempt, now: float) -> None:
        """Of two, this one has begun to answer: the other is cut off."""
        race.other(attempt).cut()
        self._errand.record.unheard += 1
        if (hedging := self._errand.wiring.passes.hedging) is not None:
            hedging.settled(won=attempt is race.rival)
        self._goes_on(race, attempt, HEDGED, now)

    def _drops_out(self, attempt: Attempt, problem: Failure) -> bool:
        """One of two has failed: the other goes on alone; whether there is another."""
        race = self._race
        if race is None:
            return False
        self._excluded |= {attempt.replica.id}
        self._setback = problem
        self._goes_on(race, race.other(attempt), problem.error, self._errand.wiring.clock.now())
        return True

    def _goes_on(self, race: Race, attempt: Attempt, error: ErrorType, now: float) -> None:
        self._attempt, self._race = attempt, None
        loser = race.settle(attempt, error, now)
        self._release(loser, failed=error != HEDGED)

    # --- what the call tells

    def cut(self) -> None:
        """Ask nobody any more."""
        self._stop_waiting()
        if self._attempt is not None:
            self._attempt.cut()
        elif (turns := self._errand.wiring.passes.turns) is not None:
            turns.leave(self._errand.record)
        if self._race is not None:
            self._race.rival.cut()

    def end(self) -> None:
        """The call has ended: write down what was learnt, and give back what it held."""
        if self._timer is not None:
            self._stop_waiting()
        if self._overdue is not None:
            self._overdue.cancel()
        attempt, self._attempt = self._attempt, None
        try:
            if attempt is not None:
                attempt.note()
        finally:
            if attempt is not None:
                self._release(attempt, failed=self._errand.record.error is not None)
            if (race := self._race) is not None:
                self._race = None
                self._release(race.rival, failed=True)
            self._leads_no_more()

    # --- within

    def _out_of_time(self) -> None:
        self._overdue = None
        if self.said_all:
            return
        self.cut()
        record = self._errand.record
        self.failed(too_late((record.deadline or record.received) - record.received))
