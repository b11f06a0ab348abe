"""The last of a trace that is read span by span: who asked for each tool, and whether its times mean anything."""

from collections.abc import Iterable, Sequence

from msgspec import structs

from headway.core.span import Span
from headway.core.task import SessionId, TaskId
from headway.trace.sources.fields.flush import flushed, without_times
from headway.trace.sources.otel.issuers import find_issuers
from headway.trace.sources.source import Piece


def finished(
    task: TaskId, spans: Iterable[Span], title: str | None, session: str | None, remarks: Sequence[str]
) -> Piece:
    """The trace as a task, whose spans all belong to the session where there is one."""
    whole = [structs.replace(span, session=SessionId(session)) if session else span for span in spans]
    if flushed(whole):
        bare, remark, extent = without_times(whole)
        return Piece(task=task, spans=bare, timing="none", extent=extent, title=title, remarks=(remark, *remarks))
    told = find_issuers(whole)
    return Piece(task=task, spans=tuple(whole), timing="spans", title=title, remarks=(*remarks, *told))
