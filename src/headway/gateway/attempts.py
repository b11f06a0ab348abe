"""The attempts of one call that are under way: one, or two in a race; and what they wait for."""

import asyncio
from collections.abc import Callable

from headway.gateway.attempt import Attempt
from headway.gateway.errand import Errand, Sender
from headway.gateway.race import Race
from headway.gateway.responses import Failure
from headway.policy.route import RouteDone


class Attempts:
    """What holds them; whoever decides about them is built on it."""

    _attempt: Attempt | None = None
    """The one under way; the fleet counts this call as in flight on its replica."""
    _race: Race | None = None
    """It and another, made because it was late."""
    _setback: Failure | None = None
    """Why the replica that was tried last did not serve."""
    _tried: Attempt | None = None
    """That one; it becomes a setback when another begins."""
    _timer: asyncio.TimerHandle | None = None
    """Of the pause before a retry, or of a first token that is late."""

    def __init__(self, errand: Errand, sender: Sender) -> None:
        self._errand = errand
        self._sender = sender

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

    def met(self, error: Exception) -> None:
        """As `Attempting.met`."""
        self._sender.met(error)

    def _note_setback(self, now: float) -> None:
        if self._tried is not None and self._setback is not None:
            self._tried.set_back(self._setback.error, now)
            self._tried = None

    def _set_back(self, attempt: Attempt, setback: Failure) -> None:
        self._setback, self._tried = setback, attempt
        self._attempt = None
        self._release(attempt, failed=True)
        self._leads_no_more()

    def _leads_no_more(self) -> None:
        """Nobody needs to wait for it to begin."""
        if (leading := self._errand.wiring.passes.leading) is not None:
            leading.ended(self._errand.record)

    def _release(self, attempt: Attempt, *, failed: bool) -> None:
        wiring, replica = self._errand.wiring, attempt.replica.id
        wiring.fleet.finished(replica)
        if (breakers := wiring.passes.breakers) is not None:
            breakers.ended(replica, wiring.clock.now(), well=attempt.well, trial=attempt.trial)
        if (turns := wiring.passes.turns) is None:
            task, unserved = self._errand.record.task, attempt.unserved
            wiring.observe(RouteDone(replica=replica, task=task, failed=failed, unserved=unserved))
        else:
            turns.ended(self._errand.record, replica, failed=failed, unserved=attempt.unserved)

    def _later(self, seconds: float, what: Callable[[], None]) -> asyncio.TimerHandle:
        def run() -> None:
            try:
                what()
            except Exception as error:  # noqa: BLE001 - the event loop would only log it, and the client would wait
                self.met(error)

        return asyncio.get_running_loop().call_later(max(0.0, seconds), run)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
