"""Whose answer asked for each tool, where spans say it only by their order."""

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from msgspec.structs import force_setattr

from headway.core.span import ModelCall, Span, Step, ToolCallRef, ToolUse
from headway.core.task import SpanId

_EPSILON: Final = 0.001
"""Seconds by which a tool may seem to start before the answer that asked for it has ended: times are rounded."""
_END: Final = itemgetter(0)
_HIGHEST: Final = 64
"""Levels that are climbed: no framework wraps deeper, and parents may form a circle."""
_BY_ORDER: Final = "Which call asked for a tool was taken from their order where the answers were not kept."


def find_issuers(spans: list[Span]) -> Sequence[str]:
    """Note at each tool the call that asked for it, and at calls whose answers were not kept what they asked for.

    A tool call's id tells it. Without one it is the last call to end before the tool started under the same agent, or
    the call that holds the tool. The spans are written to, as `whole` says. Returns what is to be said of it.
    """
    tools = [(span, span.work) for span in spans if type(span.work) is ToolUse]
    calls = [span for span in spans if type(span.work) is ModelCall]
    if not tools or not calls:
        return ()
    issuers = _Issuers(spans, calls)
    asked: dict[SpanId, list[ToolCallRef]] = {}
    by_order = False
    for span, work in tools:
        if work.issued_by is None and work.call_id in issuers.by_call:
            force_setattr(work, "issued_by", issuers.by_call[work.call_id])
        elif work.issued_by is None and (issuer := issuers.before(span)) is not None:
            force_setattr(work, "issued_by", issuer)
            by_order = True
        if work.issued_by is not None and work.call_id is not None:
            asked.setdefault(work.issued_by, []).append(ToolCallRef(work.call_id, work.name))
    for span in calls:
        if span.id in asked and type(span.work) is ModelCall and not span.work.tool_calls:
            force_setattr(span.work, "tool_calls", tuple(asked[span.id]))
    return (_BY_ORDER,) if by_order else ()


class _Issuers:
    """The calls of a trace, by what they asked for and by when they ended under each span."""

    def __init__(self, spans: list[Span], calls: list[Span]) -> None:
        self._spans: dict[SpanId | None, Span] = {span.id: span for span in spans}
        self.by_call: dict[str | None, SpanId] = {
            ref.id: span.id for span in calls if type(span.work) is ModelCall for ref in span.work.tool_calls
        }
        self._holders: dict[SpanId | None, list[SpanId | None]] = {}
        self._calls = {own for own, span in self._spans.items() if type(span.work) is ModelCall}
        above = [(span, self._above(span)) for span in calls]
        wrappers = {one for ones in self._holders.values() for one in ones if one in self._calls}
        finished = [
            (span.end, span.id, ones) for span, ones in above if span.id not in wrappers and span.end is not None
        ]
        self._ends: dict[SpanId | None, list[float]] = {}
        self._ended: dict[SpanId | None, list[SpanId]] = {}
        for end, own, ones in sorted(finished, key=_END):
            for one in ones:
                self._ends.setdefault(one, []).append(end)
                self._ended.setdefault(one, []).append(own)

    def before(self, tool: Span) -> SpanId | None:
        """The last call under the tool's agent to end before it, or the innermost that holds it."""
        for above in self._above(tool):
            if above in self._ends:
                ended = bisect_right(self._ends[above], tool.start + _EPSILON)
                if ended:
                    return self._ended[above][ended - 1]
            if above in self._calls:
                return above
        return None

    def _above(self, span: Span) -> list[SpanId | None]:
        """Ids of the spans above one, up to the agent that it works for, the tool that it is part of, or the trace."""
        known = self._holders.get(span.parent)
        if known is None:
            known = self._holders[span.parent] = self._climbed(span)
        return known

    def _climbed(self, span: Span) -> list[SpanId | None]:
        above: list[SpanId | None] = []
        while len(above) < _HIGHEST:
            above.append(span.parent)
            holder = self._spans.get(span.parent)
            if holder is None:
                break
            work = holder.work
            if type(work) is ToolUse or (type(work) is Step and work.agent is not None):
                break
            span = holder
        return above
