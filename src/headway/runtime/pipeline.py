"""Stages in a row, each with its workers and a bounded queue before it: the slowest stage slows the source down.

A worker whose item finds no room in the next queue waits with it. An item that a later stage sends back waits beside
the queue and goes first, because two full stages would else wait for each other for ever; nothing is taken from the
source while the stages hold as much as their queues and workers are for, so those sent back are bounded too.
"""

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from typing import Any, Generic, TypeVar

from msgspec import Struct, structs

from headway.core.errors import BadInputError
from headway.runtime.flow import Flow, Plan
from headway.runtime.functions import check, name_of
from headway.runtime.run import Run
from headway.runtime.scatter import Options

In = TypeVar("In")
Out = TypeVar("Out")
New = TypeVar("New")


class BackTo(Struct, frozen=True):
    """Where an item goes that a stage failed at."""

    stage: Callable[..., Any]
    times: int


def back_to(stage: Callable[..., Any], times: int = 1) -> BackTo:
    """Send an item that fails back to the earlier stage that runs ``stage``, so many times; then it has failed.

    That stage gets what it got before, and finds in ``run.sent_back`` what the later one failed of.

    Raises:
        BadInputError: ``times`` is below 1.
    """
    if times < 1:
        raise BadInputError(f"times={times} sends nothing back.", fix="Send it back 1 time or more.")
    return BackTo(stage, times)


class Pipeline(Generic[In, Out]):
    """What is done to each item, stage by stage; frozen, so a pipeline may be run often and go on from a shared start.

    ``Pipeline[Bug, Bug]()`` takes bugs; each `stage` tells the type of what comes out.
    """

    def __init__(self, plans: tuple[Plan, ...] = ()) -> None:
        self._plans = plans

    def stage(
        self,
        f: Callable[[Run, Out], Awaitable[New]],
        *,
        workers: int = 8,
        queue: int = 16,
        timeout: float | None = None,
        retries: int = 0,
        on_fail: BackTo | None = None,
        priority: Callable[[Out], float] | None = None,
    ) -> "Pipeline[In, New]":
        """Go on with ``f`` on what comes out of the stage before.

        Args:
            f: an async function of a run of its own and an item.
            workers: items under way at once.
            queue: items that may wait before it.
            timeout: seconds that one attempt has.
            retries: further attempts at an item that failed. Paid calls that an attempt finished are not made again.
            on_fail: where an item goes that failed at all attempts: `back_to` an earlier stage.
            priority: of those that wait, the highest goes first; among equals the one that came first.

        Raises:
            BadInputError: an option makes no sense, or ``on_fail`` names no stage up to this one.
        """
        check(f)
        if queue < 1:
            raise BadInputError(f"queue={queue} lets nothing through.", fix="Let 1 or more wait.")
        here = Plan(
            name=self._name(f),
            f=f,
            queue=queue,
            options=Options(limit=workers, timeout=timeout, retries=retries),
            priority=priority,
        )
        plans = (*self._plans, here)
        if on_fail is not None:
            at = next((i for i, plan in enumerate(plans) if plan.f is on_fail.stage), None)
            if at is None:
                raise BadInputError(
                    f"{here.name} sends back to {name_of(on_fail.stage)}, which is no stage up to it.",
                    fix="Name an earlier stage's function.",
                )
            plans = (*self._plans, structs.replace(here, back=at, times=on_fail.times))
        return Pipeline(plans)

    def run(self, run: Run, items: Iterable[In] | AsyncIterable[In], *, tolerate: float = 0.0) -> Flow[Out]:
        """Let items through; read what comes out with ``async for``, in the order of its coming.

        Args:
            run: whose budget, time and spans they are.
            items: taken as there is room; may be without end.
            tolerate: share of the items that may fail, from 0 to 1.

        Raises:
            BadInputError: there are no stages, or ``tolerate`` makes no sense.
        """
        if not self._plans:
            raise BadInputError("The pipeline has no stages.", fix="Give it one: Pipeline().stage(f).")
        return Flow(run, self._plans, items, Options(tolerate=tolerate).tolerate)

    def _name(self, f: Callable[..., Any]) -> str:
        name = name_of(f)
        same = sum(plan.name.partition("#")[0] == name for plan in self._plans)
        return f"{name}#{same + 1}" if same else name
