"""A turn whose lines all carry one time: what it says itself of how long things took, laid one after the other."""

from collections.abc import Mapping
from typing import Final

from msgspec import structs

from headway.core.span import HumanWait, ModelCall
from headway.core.task import SpanId
from headway.trace.sources.session.draft import Draft

_LAID: Final = (
    "All lines of the turn carry one time, so only what it tells of durations itself is known: those things are laid"
    " one after the other."
)


def took_no_time(draft: Draft) -> bool:
    """Whether no call took any time by the times of its lines, which then are not those of the work."""
    calls = [entry for entry in draft.entries if isinstance(entry.work, ModelCall)]
    return all(entry.end is None or entry.end <= entry.start for entry in calls)


def lay(draft: Draft, whole: float | None, first_token: float | None, tools: Mapping[SpanId, float]) -> None:
    """Give each thing the time that it is told to have taken, from 0 on; the end of all else is unknown.

    Args:
        draft: the turn.
        whole: seconds that all of it took.
        first_token: seconds from its beginning to the first token of its first call.
        tools: seconds that tools took, by their spans.
    """
    draft.entries = [entry for entry in draft.entries if not isinstance(entry.work, HumanWait)]
    now, first = 0.0, first_token
    for entry in draft.entries:
        seconds = tools.get(entry.id)
        entry.start, entry.end = now, None if seconds is None else now + seconds
        now = now if entry.end is None else entry.end
        if isinstance(entry.work, ModelCall):
            entry.work = structs.replace(entry.work, first_token=first, first_visible=None)
            first = None
    draft.start, draft.until = 0.0, now if whole is None else whole
    draft.remarks.append(_LAID)
    told = [] if whole is None else [f"took {whole:,.3f} s"]
    told += [] if first_token is None else [f"had its first token after {first_token:,.3f} s"]
    draft.remarks += [f"The turn says that it {' and '.join(told)}."] if told else []
