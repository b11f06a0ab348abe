"""The gateway's door: who comes in, which models they may ask for, and how much they may use."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from math import inf
from typing import Final, Protocol

from msgspec import structs

from headway.core.access import Caller
from headway.core.clock import Clock
from headway.core.errors import StoreError
from headway.core.limits import shown
from headway.core.money import MicroUsd
from headway.core.task import TaskId
from headway.core.usage import Usage
from headway.gateway.access import Access
from headway.gateway.credentials import KEY_FIELDS
from headway.gateway.front import Request
from headway.gateway.journal import CallRecord
from headway.gateway.limiter import Limiter
from headway.gateway.naming import Chain
from headway.gateway.responses import Failure, failure
from headway.gateway.tariff import Tariff
from headway.policy.limits.counter import Warned
from headway.policy.limits.estimate import BYTES_PER_TOKEN, DEFAULT_OUTPUT_TOKENS
from headway.policy.limits.grant import Ask, Grant, Short
from headway.policy.limits.refused import Refused
from headway.policy.models.judge import FRAME_BYTES, OUTPUT_TOKENS
from headway.wire.dialect import Asked

_LOG: Final = logging.getLogger(__name__)
_REFUSED: Final = "http_"
"""How errors begin that are an engine's own refusals: it has not worked for them."""
_COUNTING: Final = "count_tokens"


class Visiting(Protocol):
    """A call, as its visit sees it."""

    @property
    def record(self) -> CallRecord:
        """What is known of it."""
        ...

    def admitted(self, now: float) -> None:
        """It may be made."""
        ...

    def cancel(self, problem: Failure) -> None:
        """It is over."""
        ...

    def met(self, error: Exception) -> None:
        """A fault of our own."""
        ...


class Door:
    """Keys, limits and prices; what all calls of a gateway pass that asks for keys."""

    def __init__(self, access: Access, limiter: Limiter, tariff: Tariff, clock: Clock) -> None:
        self.access = access
        self.limiter = limiter
        self.tariff = tariff
        self.clock = clock

    async def start(self) -> None:
        """Read the keys, and open this worker's account.

        Raises:
            StoreError: one of the two cannot be used.
        """
        await self.access.start()
        try:
            await self.limiter.start()
        except BaseException:
            await self.access.close()
            raise
        await asyncio.to_thread(self.tariff.warm)

    async def close(self) -> None:
        """Report what was used, and write what was refused."""
        await self.limiter.close()
        await self.access.close()

    def enter(self, request: Request, address: str) -> Caller | Failure:
        """Whose request it is. The key is taken off: it is nobody's business further in, least of all an engine's."""
        caller = self.access.recognise(request.fields, address)
        request.headers = [header for header in request.headers if header[0] not in KEY_FIELDS]
        request.fields = {name: value for name, value in request.fields.items() if name not in KEY_FIELDS}
        return caller


class Visit:
    """One call's way through the door: what is reserved for it, from asking until it is settled."""

    __slots__ = ("_asking", "_door", "_grant", "_timer", "_waiting", "caller")

    def __init__(self, door: Door, caller: Caller) -> None:
        self.caller = caller
        self._door = door
        self._grant: Grant | None = None
        self._waiting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._asking: Callable[[str], Ask] | None = None
        """What one call of a model may use, where several may be made for this one."""

    def again(self) -> "Visit":
        """Another call's of the same caller."""
        return Visit(self._door, self.caller)

    def begin(self, call: Visiting, asks: Asked, body: bytes, chain: Chain | None, *, fresh: bool = False) -> None:
        """Reserve what the call may use; it is told, now or later, whether it may be made.

        Args:
            call: which one.
            asks: what it asks for.
            body: the request's.
            chain: the models that may answer, of which what the dearest costs is reserved, for each tier at which the
                call may be repeated and for each judgement; ``None``: the one asked for.
            fresh: its task began with it, and no other worker can know of that task before it has ended.
        """
        door, record = self._door, call.record
        problem = door.access.forbidden_model(self.caller, asks.model)
        if problem is not None:
            call.cancel(problem)
            return
        ask = self._reserved(record, asks, body, chain, fresh=fresh)
        try:
            outcome = door.limiter.reserve(ask)
        except StoreError as error:
            call.cancel(_unkept(error))
            return
        if isinstance(outcome, Short):
            self._waiting = asyncio.get_running_loop().create_task(self._wait(call, ask, outcome))
        else:
            self._decided(call, outcome)

    def _reserved(self, record: CallRecord, asks: Asked, body: bytes, chain: Chain | None, *, fresh: bool) -> Ask:
        """What the call may use, with all that may be made for it."""
        tariff, caller, task = self._door.tariff, self.caller, record.task or TaskId(record.span)
        bound = 1 if record.operation == _COUNTING else asks.output_limit

        def asking(model: str) -> Ask:
            return tariff.ask(caller, task, model, body, max_output=bound, choices=asks.choices, fresh=fresh)

        if chain is None:
            return asking(asks.model)
        first, ladder = _dearest(map(asking, chain.models)), chain.ladder
        if ladder is None:
            return first
        self._asking = asking
        legs = [first, *[_dearest(map(asking, rung.models)) for rung in ladder.above]]
        if ladder.judge is not None:
            shown = DEFAULT_OUTPUT_TOKENS if bound is None else bound
            added = FRAME_BYTES // BYTES_PER_TOKEN + 1 + shown
            judged = tariff.ask(caller, task, ladder.judge, body, max_output=OUTPUT_TOKENS, fresh=fresh, added=added)
            legs += [judged] * len(ladder.above)
        money = [leg.money for leg in legs if leg.money is not None]
        return structs.replace(
            first,
            tokens=sum(leg.tokens for leg in legs),
            money=MicroUsd(sum(money)) if len(money) == len(legs) else None,
        )

    def end(self, record: CallRecord) -> None:
        """The call has ended, however it did: what it has used is settled."""
        if self._waiting is not None:
            self._waiting.cancel()
        if self._timer is not None:
            self._timer.cancel()
        grant, limiter = self._grant, self._door.limiter
        if grant is None:
            return
        if record.given_again is not None:
            limiter.settle(grant, 0, 0)
            return
        if self._asking is not None:
            self._settle_all(grant, record)
        elif record.sent is None:
            limiter.release(grant)
        else:
            limiter.settle(grant, *self._took(record))

    def _settle_all(self, grant: Grant, record: CallRecord) -> None:
        """Of a call for which several may have been made."""
        took = [self._took(one) for one in (*record.before, record) if one.sent is not None]
        if not took:
            self._door.limiter.release(grant)
            return
        tokens, money = [each[0] or 0 for each in took], [each[1] for each in took if each[1] is not None]
        self._door.limiter.settle(grant, sum(tokens), sum(money) if len(money) == len(took) else None)

    def _took(self, record: CallRecord) -> tuple[int | None, int | None]:
        """Tokens and money of one call that was made; where others were made beside it, of an unknown use the most."""
        usage = Usage() if record.answer is None else record.answer.usage
        tokens, money = self._used(record, usage)
        nothing = record.operation == _COUNTING or (record.error or "").startswith(_REFUSED)
        if tokens is None and nothing:
            return 0, 0
        if tokens is None and self._asking is not None:
            most = self._asking(record.model)
            return most.tokens, most.money
        return tokens, money

    def _used(self, record: CallRecord, usage: Usage) -> tuple[int | None, int | None]:
        """Tokens and money; of replicas that were cut off before they said a word, the most that it can have been."""
        tariff = self._door.tariff
        tokens, money = tariff.used(record.model, usage)
        if record.unheard and tokens is not None:
            reading = Usage(input_tokens=usage.input_tokens, output_tokens=0)
            more_tokens, more_money = tariff.used(record.model, reading)
            tokens += record.unheard * (more_tokens or 0)
            money = None if money is None or more_money is None else money + record.unheard * more_money
        return tokens, money

    async def _wait(self, call: Visiting, ask: Ask, short: Short) -> None:
        try:
            outcome = await self._door.limiter.wait(ask, short)
        except StoreError as error:
            self._waiting = None
            call.cancel(_unkept(error))
            return
        self._waiting = None
        try:
            self._decided(call, outcome)
        except Exception as error:  # noqa: BLE001 - a task's exception is nobody's, and the client would wait
            call.met(error)

    def _decided(self, call: Visiting, outcome: Grant | Refused) -> None:
        door = self._door
        if isinstance(outcome, Refused):
            call.cancel(door.access.limited(self.caller, outcome))
            return
        self._grant = outcome
        now = door.clock.now()
        if outcome.deadline is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(outcome.deadline - now, 0.0), call.cancel, _OVERTIME)
        call.admitted(now)


def _dearest(asking: Iterable[Ask]) -> Ask:
    return max(asking, key=lambda one: inf if one.money is None else one.money)


_OVERTIME: Final = failure(
    "seconds_limit",
    429,
    "The task has used all the seconds that its limit allows, so this call was ended. Begin a new task, or have the"
    " limit raised.",
    (b"x-should-retry", b"false"),
)


def warn(warned: Warned) -> None:
    """A level that warns was reached: for the log."""
    _LOG.warning(
        "limits: %s has used %s of its %s",
        warned.owner,
        shown(warned.used, warned.measure),
        shown(warned.stop, warned.measure),
    )


def _unkept(error: StoreError) -> Failure:
    return failure("limits_unavailable", 503, error, (b"retry-after", b"5"))
