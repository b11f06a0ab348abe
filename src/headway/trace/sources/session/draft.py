"""A task while it is being read out of a session: spans under one root, whose end is not known before the last."""

from typing import Final

from msgspec import Struct

from headway.core.money import MicroUsd
from headway.core.span import ErrorType, HumanWait, ModelCall, Retrieval, Span, Step, ToolUse, Work
from headway.core.task import SessionId, SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.sources.secrets import masked
from headway.trace.sources.source import Piece, Timing

_TITLE: Final = 80
_MOMENT: Final = 0.002
"""Seconds that two lines may be apart and still be about one moment."""
_NOTABLE: Final = 0.1
"""Seconds; less is the time that it takes to write things down."""
_EARLY: Final = (
    "Some tools were asked for while the rest of the answer still came: their time counts from the end of the answer."
)


class Entry(Struct):
    """A span to be. Times are epoch seconds; it hangs from the root where no parent is said."""

    id: SpanId
    name: str
    start: float
    end: float | None
    work: Work
    parent: SpanId | None = None
    error: str | None = None


class Draft:
    """One task; or one turn of a sub-agent, which is adopted by the task that it works for.

    Args:
        root: id of the span that is to cover it.
        agent: who is at work.
        start: when it was asked.
    """

    def __init__(self, root: SpanId, agent: str, start: float) -> None:
        self.root = root
        self.agent = agent
        self.start = start
        self.until = start
        """When it was over at the earliest, whatever its spans say."""
        self.title: str | None = None
        self.error: str | None = None
        self.used: Usage | None = None
        """What all its calls used together, where the source says that and not what each of them did; so ``cost``."""
        self.cost: MicroUsd | None = None
        self.entries: list[Entry] = []
        self.remarks: list[str] = []
        self._waits: list[Entry] = []

    @property
    def end(self) -> float:
        """The last that is known of it."""
        ends = (entry.start if entry.end is None else entry.end for entry in self.entries)
        return max(self.until, max(ends, default=self.until))

    def call(self, span: SpanId, start: float, end: float | None, work: ModelCall, error: str | None = None) -> Entry:
        """A request to a model."""
        return self._add(Entry(span, f"chat {work.model}", start, end, work, error=error))

    def tool(self, span: SpanId, start: float, end: float | None, work: ToolUse, error: str | None = None) -> Entry:
        """A tool at work."""
        return self._add(Entry(span, f"execute_tool {work.name}", start, end, work, error=error))

    def retrieval(self, span: SpanId, start: float, end: float | None, work: Retrieval) -> Entry:
        """A look-up in a corpus."""
        return self._add(Entry(span, f"retrieval {work.source or 'unknown'}", start, end, work))

    def asked_a_person(self, span: SpanId, inside: Entry) -> None:
        """A person was waited for as long as the tool ``inside`` took."""
        self._add(Entry(span, "human_wait", inside.start, inside.end, HumanWait(), parent=inside.id))

    def waited(self, span: SpanId, start: float, end: float) -> None:
        """A person was waited for in the midst of it."""
        if start < end:
            self._add(Entry(span, "human_wait", start, end, HumanWait()))

    def waited_before(self, span: SpanId, since: float) -> None:
        """A person was waited for between the task before, which ended at ``since``, and this one."""
        if since < self.start:
            self._waits.append(Entry(span, "human_wait", since, self.start, HumanWait()))

    def adopt(self, other: "Draft", under: SpanId | None) -> None:
        """Take in what a sub-agent did; ``under`` is the tool that waited for it, or no one."""
        step = Step(agent=other.agent)
        name = f"invoke_agent {other.agent}"
        self._add(Entry(other.root, name, other.start, other.end, step, parent=under, error=other.error))
        for entry in other.entries:
            entry.parent = entry.parent or other.root
            self._add(entry)
        self.remarks += other.remarks

    def piece(self, task: TaskId, session: SessionId | None, timing: Timing) -> Piece:
        """The task as it is now known; with no times where there are none."""
        self._order_tools()
        step = Step(agent=self.agent, used=self.used, cost=self.cost)
        root = Entry(self.root, f"invoke_agent {self.agent}", self.start, self.end, step, error=self.error)
        timed = timing != "none"
        spans = [_span(root, None, task, session, timed=timed)]
        spans += [_span(entry, entry.parent or self.root, task, session, timed=timed) for entry in self.entries]
        if timing != "durations" and timed:
            spans += [_span(entry, None, task, session, timed=True) for entry in self._waits]
        remarks = tuple(dict.fromkeys(self.remarks))
        return Piece(task=task, spans=tuple(spans), timing=timing, title=self.title, remarks=remarks)

    def _order_tools(self) -> None:
        """A tool that was at work while the answer which asked for it still came is waited for from its end only."""
        asked = {entry.id: entry for entry in self.entries if isinstance(entry.work, ModelCall)}
        for entry in self.entries:
            if isinstance(entry.work, ToolUse) and entry.work.inferred:
                call = asked.get(entry.work.issued_by or entry.id)
                answered = None if call is None else call.end
                end = answered if entry.end is None else entry.end
                if answered is not None and end is not None and entry.start < answered <= end + _MOMENT:
                    if answered - entry.start > _NOTABLE:
                        self.remarks.append(_EARLY)
                    entry.start = min(answered, end)

    def _add(self, entry: Entry) -> Entry:
        self.entries.append(entry)
        return entry


def first_words(text: str) -> str | None:
    """The beginning of what a user asked, on one line, keys and passwords masked; nothing where there is no text."""
    words = " ".join(text[: 8 * _TITLE].split())
    told = masked(words[: 2 * _TITLE])
    if len(told) <= _TITLE and len(words) <= 2 * _TITLE:
        return told or None
    return told[: _TITLE - 1].rstrip() + "…"


def _span(entry: Entry, parent: SpanId | None, task: TaskId, session: SessionId | None, *, timed: bool) -> Span:
    end = entry.end
    return Span(
        task=task,
        id=entry.id,
        parent=parent,
        name=entry.name,
        start=entry.start if timed else 0.0,
        end=(end if end is None or end >= entry.start else entry.start) if timed else 0.0,
        work=entry.work,
        session=session,
        error=None if entry.error is None else ErrorType(entry.error),
    )
