"""Accounts in tests of the faces."""

from collections.abc import Sequence

from headway.trace.account import TaskAccount
from headway.trace.anatomy import Anatomy
from headway.trace.levers import Lever
from headway.trace.sources.verdict import judge


def accounted(anatomy: Anatomy, levers: Sequence[Lever] = ()) -> TaskAccount:
    """The account of a task that Headway recorded and in which nothing is found."""
    verdict = judge([bar.span for bar in anatomy.bars], "Headway's gateway", "spans")
    return TaskAccount(title=None, anatomy=anatomy, levers=tuple(levers), findings=(), verdict=verdict)
