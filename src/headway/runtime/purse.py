"""Money first: what work may cost at most is taken from a purse before it starts, and what it did not use is put back.

All counts are integers, so sums and limits are exact.
"""

import asyncio
from collections import deque
from math import isfinite
from types import TracebackType
from typing import Final, Self

from msgspec import Struct

from headway.core.budget import money
from headway.core.errors import BadInputError, OverBudgetError
from headway.core.money import MicroUsd


class Amount(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What some work takes: money in micro-USD, input and output tokens, paid calls."""

    money: MicroUsd = MicroUsd(0)
    tokens: int = 0
    calls: int = 0
    unpriced: int = 0
    """Of the calls, those whose price nobody knows; ``money`` is what the others cost."""

    def __add__(self, other: "Amount") -> "Amount":
        if other is NOTHING:  # which is most of what is added: each call adds up several times
            return self
        if self is NOTHING:
            return other
        return Amount(
            money=MicroUsd(self.money + other.money),
            tokens=self.tokens + other.tokens,
            calls=self.calls + other.calls,
            unpriced=self.unpriced + other.unpriced,
        )

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(
            money=MicroUsd(self.money - other.money),
            tokens=self.tokens - other.tokens,
            calls=self.calls - other.calls,
            unpriced=self.unpriced - other.unpriced,
        )


NOTHING: Final = Amount()


class Budget(Struct, frozen=True, kw_only=True):
    """What a task, or a part of one, may take; ``None``: not limited.

    Raises:
        BadInputError: a limit is negative or no number.
    """

    usd: float | str | None = None
    """US dollars: ``2``, ``0.05``, ``"0.02 USD"``; rounded to whole micro-USD."""
    tokens: int | None = None
    """Input and output tokens of all calls together."""
    calls: int | None = None
    """Paid calls: of models, and of tools that say what they cost."""
    seconds: float | None = None
    """From its start to its end."""

    def __post_init__(self) -> None:
        """Refuse what is no limit."""
        _ = self.money
        for name, count in (("tokens", self.tokens), ("calls", self.calls), ("seconds", self.seconds)):
            if count is not None and not (isfinite(count) and count >= 0):
                raise BadInputError(f"Budget.{name} is {count}, which is no limit.", fix="Give a number from 0 up.")

    @property
    def money(self) -> MicroUsd | None:
        """``usd`` in micro-USD."""
        return None if self.usd is None else money(self.usd, "Budget.usd")


class Hold(Struct, eq=False, gc=False):
    """A reservation; it has to be settled once, or left as a context manager, which puts back what was not settled."""

    purse: "Purse"
    most: Amount
    settled: bool = False

    def settle(self, used: Amount) -> None:
        """The work is done and took ``used``; the rest of the reservation is free for others. Only the first counts."""
        if not self.settled:
            self.settled = True
            self.purse.put_back(self.most, used)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.settle(NOTHING)


class Purse:
    """What a run has spent, holds reserved, and may still take. A child's takings are its parent's too.

    Of one event loop; used from several threads at once it would miscount.

    Args:
        budget: its own limits.
        parent: the purse that this one's spending comes out of as well.
        spent: what had been spent before, when a task is taken up again.
        name: whose it is, for errors.
    """

    def __init__(
        self, budget: Budget | None = None, parent: "Purse | None" = None, spent: Amount = NOTHING, name: str = "task"
    ) -> None:
        budget = budget or Budget()
        self._limits = (budget.money, budget.tokens, budget.calls)
        self._limited = any(limit is not None for limit in self._limits)
        self._name = name
        self.line: tuple[Purse, ...] = (self,) if parent is None else (self, *parent.line)
        """This purse and all that it comes out of."""
        self.waiting: _Queue = deque() if parent is None else parent.waiting
        """Who waits for what others hold, in this purse or another of its family."""
        self.spent = spent
        """What was used, all in all."""
        self.held = NOTHING
        """What is reserved by work that is under way."""

    @property
    def limits_money(self) -> bool:
        """Whether this purse, or one that it comes out of, has a limit in USD."""
        return self.left[0] is not None

    @property
    def left(self) -> tuple[MicroUsd | None, int | None, int | None]:
        """Money, tokens and calls that could be reserved now, by the tightest limit; ``None``: not limited."""
        money, tokens, calls = (
            min((limit for limit in limits if limit is not None), default=None)
            for limits in zip(*(purse.own_left() for purse in self.line), strict=True)
        )
        return None if money is None else MicroUsd(money), tokens, calls

    def own_left(self) -> tuple[int | None, ...]:
        """As `left`, by its own limits alone."""
        taken = self.spent + self.held
        return tuple(
            None if limit is None else max(0, limit - used)
            for limit, used in zip(self._limits, (taken.money, taken.tokens, taken.calls), strict=True)
        )

    def take(self, most: Amount) -> Hold | None:
        """Reserve ``most`` if it is there now; ``None``: others hold it, and may put some of it back.

        Raises:
            OverBudgetError: it is more than is left even when nobody holds anything.
            BadInputError: a part of it is negative.
        """
        if min(most.money, most.tokens, most.calls) < 0:
            raise BadInputError(f"A reservation of {most} is negative.", fix="Reserve the most that the work can take.")
        if not all(purse.holds(most) for purse in self.line):
            return None
        for purse in self.line:
            purse.held += most
        return Hold(self, most)

    async def reserve(self, most: Amount) -> Hold:
        """Reserve ``most``, waiting while what is missing is held by others; first come, first served.

        `NOTHING` is there at once.

        Raises:
            OverBudgetError: it is more than is left even when nobody holds anything.
            BadInputError: a part of it is negative.
        """
        if (not self.waiting or most == NOTHING) and (hold := self.take(most)) is not None:
            return hold
        turn: asyncio.Future[Hold] = asyncio.get_running_loop().create_future()
        self.waiting.append((turn, self, most))
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                turn.result().settle(NOTHING)
            self._serve()
            raise

    def put_back(self, most: Amount, used: Amount) -> None:
        """End a reservation of ``most`` of which ``used`` was used: `Hold.settle` calls it."""
        for purse in self.line:
            purse.held -= most
            purse.spent += used
        self._serve()

    def _serve(self) -> None:
        """Give those who wait what there is now, in the order of their coming."""
        while self.waiting:
            turn, purse, most = self.waiting[0]
            if not turn.done():
                try:
                    hold = purse.take(most)
                except OverBudgetError as error:
                    turn.set_exception(error)
                else:
                    if hold is None:
                        return
                    turn.set_result(hold)
            self.waiting.popleft()

    def holds(self, most: Amount) -> bool:
        """Whether ``most`` is within its own limits now.

        Raises:
            OverBudgetError: it never will be, whatever is put back.
        """
        if not self._limited:
            return True
        there = True
        for what, limit, want, held, spent in (
            ("micro-USD", self._limits[0], most.money, self.held.money, self.spent.money),
            ("tokens", self._limits[1], most.tokens, self.held.tokens, self.spent.tokens),
            ("calls", self._limits[2], most.calls, self.held.calls, self.spent.calls),
        ):
            if limit is None or want + held + spent <= limit or not want:
                continue
            if want + spent > limit:
                raise OverBudgetError(
                    f"{self._name}: of its budget of {limit} {what}, {max(0, limit - spent)} are left and {want} may"
                    " be needed.",
                    fix="Raise the Budget, ask for less (max_tokens), or use a cheaper model.",
                )
            there = False
        return there


_Queue = deque[tuple["asyncio.Future[Hold]", Purse, Amount]]
