"""Several turns of a conversation in one trace: the time between them is a person's."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from headway.core.span import HumanWait, ModelCall, Span, Step
from headway.core.task import SpanId
from headway.trace.sources.digests import span_id

_TURNS: Final = (
    "This trace holds several turns of a conversation: the time between them, in which a person was waited for, is left"
    " out."
)


def waits_between(spans: Sequence[Span]) -> tuple[list[Span], list[str]]:
    """A wait for a person between two runs of one agent, where the later is told what the earlier had answered.

    Runs stand at the top of the trace, or below what covers it and is no agent itself, one after another. A run that
    is told nothing of the one before may be another step of the same task, with no person between.
    """
    agents = [span for span in spans if type(span.work) is Step and span.work.agent is not None]
    if len(agents) < 2:  # noqa: PLR2004 - one run has nothing between
        return [], []
    index = {span.id: span for span in spans}
    runs: dict[tuple[SpanId | None, str], list[Span]] = {}
    for span in agents:
        if type(span.work) is Step and span.work.agent is not None and span.end is not None:
            above = None if span.parent is None else index.get(span.parent)
            if above is None or (above.parent is None and type(above.work) is Step and above.work.agent is None):
                runs.setdefault((None if above is None else above.id, span.work.agent), []).append(span)
    waits = [
        wait
        for (above, _), turns in runs.items()
        if len(turns) > 1
        for wait in _waits(sorted(turns, key=_start), above, _calls(spans, index))
    ]
    return waits, [_TURNS] if waits else []


def _waits(turns: Sequence[Span], above: SpanId | None, calls: dict[SpanId, list[Span]]) -> list[Span]:
    waits: list[Span] = []
    said: set[str] = set()
    for before, after in pairwise(turns):
        made = [call.work for call in calls.get(before.id, ()) if type(call.work) is ModelCall]
        said.update(call.answer.digest for call in made if call.answer is not None and call.answer.chars)
        first = next((call.work for call in calls.get(after.id, ())), None)
        told = {part.digest for part in first.prompt or ()} if type(first) is ModelCall else set[str]()
        if before.end is not None and before.end < after.start and told & said:
            waits.append(
                Span(
                    task=after.task,
                    id=span_id(after.task, "wait", after.id),
                    parent=above,
                    name="human_wait",
                    start=before.end,
                    end=after.start,
                    work=HumanWait(),
                    session=after.session,
                )
            )
    return waits


def _calls(spans: Sequence[Span], index: dict[SpanId, Span]) -> dict[SpanId, list[Span]]:
    """The model calls at any depth below each agent's run, in order of start."""
    below: dict[SpanId, list[Span]] = {}
    for span in sorted((span for span in spans if type(span.work) is ModelCall), key=_start):
        seen: set[SpanId] = set()
        above = span.parent
        while above is not None and above not in seen:
            seen.add(above)
            below.setdefault(above, []).append(span)
            above = index[above].parent if above in index else None
    return below


def _start(span: Span) -> float:
    return span.start
