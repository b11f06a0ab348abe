"""Levers: what each change would save on this task, predicted by replaying its graph with the change."""

from headway.trace.levers.lever import Lever
from headway.trace.levers.ranking import rank

__all__ = ["Lever", "rank"]
