"""All levers of a task, the best first."""

from collections.abc import Callable, Iterable

from headway.trace.levers.calls import fewer_iterations, one_call
from headway.trace.levers.case import Case, case_of
from headway.trace.levers.lever import Lever
from headway.trace.levers.tokens import cached_prefixes, shorter_output
from headway.trace.levers.tools import faster_tools, parallel_tools
from headway.trace.levers.waits import no_failures, no_hop, no_queue
from headway.trace.prices import PriceOf, price_for
from headway.trace.study import Task

NOTICEABLE = 0.0005
"""Seconds; a saving below this is nobody's concern."""


LEVERS: tuple[Callable[[Case], Iterable[Lever]], ...] = (
    fewer_iterations,
    one_call,
    cached_prefixes,
    parallel_tools,
    shorter_output,
    no_hop,
    no_queue,
    faster_tools,
    no_failures,
)


def rank(task: Task, *, prices: PriceOf = price_for) -> tuple[Lever, ...]:
    """The levers that apply to a task and save time on it, the largest saving first.

    Each is predicted alone: savings of two levers do not add up. Dependencies stay as recorded: a span starts when
    those that it waited for have ended, plus the gap there was.

    Args:
        task: all spans of one task, in any order and any state, or its study.
        prices: what tokens cost, for the money saved.
    """
    case = case_of(task, prices)
    levers = [lever for predict in LEVERS for lever in predict(case) if lever.seconds > NOTICEABLE]
    return tuple(sorted(levers, key=lambda lever: (-lever.seconds, lever.name)))
