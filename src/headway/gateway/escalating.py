"""A call whose answer has to be good enough: tried at a lesser tier, and repeated at a better one where it is not.

What is streamed cannot be taken back. So the answer of every tier but the last is held until it is known to stand; the
last tier's has nothing to be compared with, and is passed on as it comes.
"""

from typing import Final

from msgspec import Struct, structs

from headway.core.span import ErrorType, Receipt, Setback
from headway.core.task import SpanId
from headway.gateway.errand import Errand, Sender
from headway.gateway.holding import Holding, Standby
from headway.gateway.journal import CallRecord
from headway.gateway.judging import Judging
from headway.gateway.ladder import NOWHERE, Ladder, Rung
from headway.gateway.naming import Chain
from headway.gateway.probe import Probe
from headway.gateway.responses import Failure
from headway.gateway.sending import Sending
from headway.policy.models.declining import declines
from headway.policy.models.escalate import Answered, Escalation, escalate
from headway.policy.models.fitting import keeps
from headway.policy.resend.retry import UNSERVED
from headway.wire.form import form_of

_OK: Final = 200
_UNSERVED: Final = frozenset(["no_replica", "unknown_model", *[f"http_{status}" for status in UNSERVED]])
"""Errors for which a tier is not to blame the request; those of connections begin with `_BROKEN`."""
_BROKEN: Final = "upstream_"
_REFUSED: Final = frozenset({"http_400", "http_403", "http_422"})
_NO_LOGPROBS: Final = ErrorType("logprobs_refused")
_OF_ONE_ANSWER: Final = (
    "begun", "model", "replica", "provider", "receipt", "queued", "sent", "attempts", "setbacks", "unheard",
    "first_token", "first_visible", "last_token", "itl", "answer", "error",
)  # fmt: skip
"""What a record says of the answer that was made last; all else in it is the call's."""


class _Made(Struct, eq=False):
    """An answer that was made and is not the client's, or not yet."""

    record: CallRecord
    ended: float
    holding: Holding | None
    probe: Probe | None
    tier: str


class Escalating:
    """Tier by tier until an answer stands; for `Call` as one `Sending`, for each tier's `Sending` its `Sender`.

    Where a better tier cannot answer, the best answer that was made is the client's.
    """

    def __init__(self, errand: Errand, ladder: Ladder, sender: Sender) -> None:
        self._errand = errand
        self._ladder = ladder
        self._sender = sender
        self._tier = ladder.tier
        self._left: list[Rung] = list(ladder.above)
        self._chain: Chain | None = errand.chain
        self._sending: Sending | None = None
        self._judging: Judging | None = None
        self._holding: Holding | None = None
        """Of the tier that is asked now; ``None``: its answer is passed on as it comes."""
        self._probe: Probe | None = None
        self._standby: Standby | None = None
        self._made: list[_Made] = []
        """Answers that were found wanting and tiers that could not answer, first to last."""
        self._ended = 0.0
        """When the tier that was asked last was through; epoch seconds."""
        self._over = False

    # --- what the call tells, as to a `Sending`

    @property
    def said_all(self) -> bool:
        """The client was sent all that it waits for."""
        live = self._holding is None or self._holding.let_go
        return self._over or (live and self._sending is not None and self._sending.said_all)

    def start(self, now: float) -> None:
        """Ask the first tier."""
        self._ask(now)

    def pause(self) -> None:
        """As `Sending.pause`."""
        if self._sending is not None:
            self._sending.pause()

    def resume(self) -> None:
        """As `Sending.resume`."""
        if self._sending is not None:
            self._sending.resume()

    def cut(self) -> None:
        """Ask nobody any more."""
        if self._sending is not None:
            self._sending.cut()
        if self._judging is not None:
            self._judging.cut()

    def failed(self, problem: Failure) -> None:
        """It has to end now, with this for its answer if none was made."""
        if self._sending is not None:
            self._sending.failed(problem)
        elif self._holding is not None and not self._holding.let_go:
            self._stands(self._holding, self._probe)
        else:
            self._errand.client.abort()
            self._finish()

    def end(self) -> None:
        """The call has ended: what was made for it is handed on."""
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.end()
        judging, self._judging = self._judging, None
        if judging is not None:
            judging.end()
            self._note_judge(judging)
        record, journal = self._errand.record, self._errand.wiring.journal
        for made in self._made:
            made.record.first_visible = None  # nobody but us has seen it
            journal.aside(made.record, made.ended)
        record.before = tuple([made.record for made in self._made])
        self._made = []

    def met(self, error: Exception) -> None:
        """As `Sender.met`."""
        self._sender.met(error)

    # --- a tier

    def _ask(self, now: float, *, logprobs: bool = True) -> None:
        """Have the tier asked whose turn it is."""
        errand, ladder, chain = self._errand, self._ladder, self._chain
        best = next((made for made in reversed(self._made) if made.holding is not None), None)
        self._holding = self._probe = self._standby = None
        if self._left:
            reader = self._holding = Holding(errand.client, errand.wiring.limits.response_bytes)
            willing = errand.record.model not in ladder.escalations.unwilling
            wanted = ladder.alias.doubts.mean_logprob is not None and logprobs and willing
            self._probe = Probe(logprobs=wanted)
        elif best is not None:
            reader = self._standby = Standby(errand.client)
        else:
            reader = errand.client
        sending = self._sending = Sending(structs.replace(errand, client=reader, chain=chain, probe=self._probe), self)
        sending.start(now)

    def done(self) -> None:
        """As `Sender.done`: the tier that was asked is through with it."""
        sending, self._sending = self._sending, None
        if sending is None:
            return
        sending.end()
        self._ended = self._errand.wiring.clock.now()
        record, holding = self._errand.record, self._holding
        if holding is None:
            if self._standby is not None and self._standby.spared:
                self._fall_back()
            else:
                self._finish()
        elif holding.let_go:
            self._note("It was too long to be held back, so it was passed on as it came and nobody looked at it.")
            self._finish()
        elif record.error is None and holding.status == _OK:
            self._consider(holding, self._probe or Probe(logprobs=False))
        elif self._minds_logprobs(holding):
            self._ask_without_logprobs()
        else:
            self._tier_failed(holding)

    def _minds_logprobs(self, holding: Holding) -> bool:
        """Whether the engine refused the request for what we had added to it."""
        asked = self._probe is not None and self._probe.asked
        return asked and self._errand.record.error in _REFUSED and b"logprobs" in holding.body

    def _ask_without_logprobs(self) -> None:
        record, now = self._errand.record, self._errand.wiring.clock.now()
        self._ladder.escalations.unwilling.add(record.model)
        refused = Setback(replica=record.replica or "", error=_NO_LOGPROBS, start=record.sent or now, end=now)
        attempts, setbacks, begun = record.attempts, (*record.setbacks, refused), record.begun
        self._forget()
        record.attempts, record.setbacks, record.begun = attempts, setbacks, begun
        if self._chain is not None:
            record.model = self._chain.model
        self._ask(now, logprobs=False)

    def _tier_failed(self, holding: Holding) -> None:
        """A tier that is not the last could not answer."""
        error = self._errand.record.error or ""
        if error in _UNSERVED or error.startswith(_BROKEN):
            self._climb(f"The tier {self._tier!r} could not answer ({error})", None)
        elif any(made.holding is not None for made in self._made):
            self._fall_back()
        else:
            self._stands(holding, None)

    # --- its answer

    def _consider(self, holding: Holding, probe: Probe) -> None:
        """Find out whether an answer stands; a judge is asked only where nothing else counts against it."""
        ladder, answer = self._ladder, self._errand.record.answer
        answered = self._examined(probe)
        verdict = escalate(answered, ladder.alias.doubts, ladder.alias, self._tier)
        if verdict.signals or ladder.judge is None or answer is None:
            self._decided(verdict, holding, probe)
            return

        def judged(score: float | None) -> None:
            self._judging = None
            self._note_judge(judging)
            if score is None:
                ladder.escalations.unjudged += 1
                self._note(f"The judge {judging.record.model} gave no score.")
            else:
                self._note(f"The judge {judging.record.model} gave it {score:.2f}.")
            found = structs.replace(answered, score=score)
            self._decided(escalate(found, ladder.alias.doubts, ladder.alias, self._tier), holding, probe)

        judging = self._judging = Judging(self._errand, ladder.judge, answer, judged, self.met)
        judging.start()

    def _examined(self, probe: Probe) -> Answered:
        errand, doubts = self._errand, self._ladder.alias.doubts
        heard, answer = probe.heard(), errand.record.answer
        speaks = answer is not None and not answer.tool_calls
        schema = form_of(errand.request.body) if doubts.schema and speaks else None
        text = "" if answer is None else answer.content
        return Answered(
            logprobs=heard.logprobs,
            keeps_schema=None if schema is None or heard.declined else keeps(schema, text),
            refused=heard.declined or (speaks and declines(text)),
        )

    def _decided(self, verdict: Escalation, holding: Holding, probe: Probe) -> None:
        if verdict.to is None:
            self._stands(holding, probe)
            return
        for signal in verdict.signals:
            self._ladder.escalations.counts[self._ladder.alias.name, self._tier, verdict.to, signal] += 1
        self._climb(f"The answer of the tier {self._tier!r} was not used: {verdict.reason}", holding)

    def _stands(self, holding: Holding, probe: Probe | None) -> None:
        """The client is to have this answer."""
        errand, record = self._errand, self._errand.record
        if holding.streamed and record.first_visible is not None:
            record.first_visible = errand.wiring.clock.now()  # it was held back until now
        holding.release(None if probe is None else lambda body: probe.rewritten(errand.dialect, body))
        self._finish()

    def _climb(self, why: str, holding: Holding | None) -> None:
        """Ask the next tier."""
        rung, chain, record = self._left.pop(0), self._chain, self._errand.record
        self._note(f"{why}.")
        self._put_aside(holding)
        self._forget()
        now = self._errand.wiring.clock.now()
        record.begun = now
        self._tier = rung.tier
        if chain is not None:
            self._chain = chain = chain.better(rung.models, f"{why}, so {rung.models[0]} of {rung.tier!r} is asked.")
            record.model = chain.model
        self._ask(now)

    def _fall_back(self) -> None:
        """The better tier has no answer: the best that was made before is the client's after all."""
        best = next(made for made in reversed(self._made) if made.holding is not None)
        error = self._errand.record.error
        self._put_aside(None)
        self._made.remove(best)
        for name in _OF_ONE_ANSWER:
            setattr(self._errand.record, name, getattr(best.record, name))
        self._errand.record.wanting = True
        self._note(f"It was used all the same: the tier {self._tier!r} could not answer ({error}).")
        self._ladder.escalations.counts[self._ladder.alias.name, best.tier, NOWHERE, "unanswered"] += 1
        if best.holding is not None:
            self._stands(best.holding, best.probe)

    # --- the record

    def _put_aside(self, holding: Holding | None) -> None:
        """What the record says of the answer made last goes into a record of its own."""
        record, journal = self._errand.record, self._errand.wiring.journal
        made = structs.replace(record, span=journal.new_span())
        self._made.append(_Made(made, self._ended, holding, self._probe, self._tier))

    def _forget(self) -> None:
        fresh = CallRecord(SpanId(""), 0.0)
        for name in _OF_ONE_ANSWER:
            setattr(self._errand.record, name, getattr(fresh, name))

    def _note(self, sentence: str) -> None:
        record = self._errand.record
        receipt = record.receipt or Receipt(policy="models", winner=record.model, reason="no replica was chosen")
        record.receipt = structs.replace(receipt, notes=(*receipt.notes, sentence))

    def _note_judge(self, judging: Judging) -> None:
        now = self._errand.wiring.clock.now()
        self._made.append(_Made(judging.record, now, None, None, self._tier))

    def _finish(self) -> None:
        self._over = True
        self._sender.done()


def sending_of(errand: Errand, sender: Sender) -> Sending | Escalating:
    """How a call gets its answer."""
    ladder = None if errand.chain is None else errand.chain.ladder
    return Sending(errand, sender) if ladder is None else Escalating(errand, ladder, sender)
