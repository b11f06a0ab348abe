"""A judge asked: another model's opinion of an answer, before the client has it."""

from collections.abc import Callable
from typing import Final

import msgspec

from headway.core.errors import UpstreamError
from headway.core.span import ErrorType
from headway.gateway.caches.copying import Nobody
from headway.gateway.credentials import secret_of
from headway.gateway.errand import Errand
from headway.gateway.front import Request
from headway.gateway.holding import Holding
from headway.gateway.responses import Headers
from headway.gateway.sending import Sending
from headway.policy.models.judge import OUTPUT_TOKENS, question, score_of
from headway.wire.dialects import CHAT
from headway.wire.openai import Answer

_OK: Final = 200
_LEFT: Final = ErrorType("client_gone")


class Judging:
    """One call of a judge, on behalf of the call whose answer it is shown; a `Sender`.

    Args:
        errand: that call.
        model: the judge, as replicas serve it.
        answer: what it is shown.
        told: is given the score, 0 to 1; ``None``: the judge gave none, or could not be asked.
        fault: is given a fault of our own that nobody foresaw.
    """

    def __init__(
        self,
        errand: Errand,
        model: str,
        answer: Answer,
        told: Callable[[float | None], None],
        fault: Callable[[Exception], None],
    ) -> None:
        wiring, asking = errand.wiring, errand.record
        now = wiring.clock.now()
        record = self.record = wiring.journal.open(now, CHAT)
        record.task, record.tenant, record.model, record.stream = asking.task, asking.tenant, model, False
        record.lane, record.priority, record.deadline = asking.lane, asking.priority, asking.deadline
        body = _asked(model, bytes(errand.asks.messages), answer)
        secret = secret_of(errand.request.fields)
        headers: Headers = [(b"content-type", b"application/json")]
        headers += [] if secret is None else CHAT.key_header(secret)
        self._verdict = Holding(Nobody(), wiring.limits.response_bytes)
        self._sending = Sending(
            Errand(
                wiring=wiring,
                request=Request(headers=headers, received=now, fields=dict(headers), body=body),
                client=self._verdict,
                dialect=CHAT,
                asks=CHAT.read(body),
                record=record,
                chain=None,
            ),
            self,
        )
        self._identity = asking.identity
        self._told = told
        self._fault = fault

    def start(self) -> None:
        """Ask."""
        self._sending.start(self.record.received)

    def done(self) -> None:
        """As `Sender.done`."""
        self.end()
        self._told(self._score())

    def met(self, error: Exception) -> None:
        """As `Sender.met`."""
        self._fault(error)

    def cut(self) -> None:
        """Ask no more: nobody waits for its word any longer."""
        self.record.error = _LEFT
        self._sending.cut()

    def end(self) -> None:
        """It is over: write down what was learnt, and give back what it held."""
        self._sending.end()
        self.record.identity = self._identity  # of whose step it is, and not before: turns take it for a task's own

    def _score(self) -> float | None:
        if self._verdict.status != _OK:
            return None
        try:
            return score_of(CHAT.answer(self._verdict.body).content)
        except UpstreamError:
            return None


def _asked(model: str, conversation: bytes, answer: Answer) -> bytes:
    called = [f"[calls {call.name} with {call.arguments}]" for call in answer.tool_calls]
    shown = "\n".join([*([answer.content] if answer.content else []), *called])
    messages = question(conversation.decode(), shown)
    return msgspec.json.encode({"model": model, "messages": messages, "max_completion_tokens": OUTPUT_TOKENS})
