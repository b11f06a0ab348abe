"""A task that was played, as spans: the record that live traffic, the runtime and imports have too."""

from collections.abc import Sequence

from msgspec import Struct, structs

from headway.bench.graph import Call, needs
from headway.bench.heard import Heard, heard
from headway.bench.play import PlayedCall, PlayedTask
from headway.core.span import ErrorType, HumanWait, Span, Step, ToolUse
from headway.core.task import SessionId, SpanId, TaskId
from headway.trace.ids import Ids

_AGENT = "bench"


class HeardCall(Struct, frozen=True, kw_only=True):
    """A call that was made, and what it came to."""

    played: PlayedCall
    heard: Heard


class HeardTask(Struct, frozen=True, kw_only=True):
    """A task that was played, read after the run."""

    played: PlayedTask
    calls: tuple[HeardCall, ...]

    @property
    def error(self) -> ErrorType | None:
        """Of its first call that failed."""
        return next((one.heard.error for one in self.calls if one.heard.error is not None), None)

    @property
    def e2e(self) -> float | None:
        """Seconds from when it was to begin to its end; ``None``: it has none, or it failed."""
        ended = self.played.ended
        return None if ended is None or self.error is not None else ended - self.played.intended


def listen(task: PlayedTask, model: str, *, stream: bool) -> HeardTask:
    """Read all answers of ``task``, of which `model` was asked."""
    calls = sorted(task.calls, key=lambda one: one.intended)
    return HeardTask(
        played=task,
        calls=tuple(HeardCall(played=one, heard=heard(one.received, model, stream=stream)) for one in calls),
    )


def spans_of(tasks: Sequence[HeardTask], ids: Ids) -> list[list[Span]]:
    """The spans of each task. Tasks of one session have it in common, and the wait for the person between."""
    sessions: dict[int, tuple[SessionId, float | None]] = {}
    found: list[list[Span]] = []
    for task in tasks:
        played = task.played
        session, before = sessions.get(played.session, (SessionId(ids.task()), None))
        found.append(_spans(task, ids, session, before))
        sessions[played.session] = (session, played.ended)
    return found


def _spans(task: HeardTask, ids: Ids, session: SessionId, before: float | None) -> list[Span]:
    played, name = task.played, TaskId(ids.task())
    root = Span(
        task=name,
        session=session,
        id=SpanId(ids.span()),
        parent=None,
        name=f"invoke_agent {_AGENT}",
        start=played.intended,
        end=played.ended,
        work=Step(agent=_AGENT),
        error=task.error,
    )
    spans = [root]
    if before is not None:
        wait = structs.replace(root, id=SpanId(ids.span()), name="human", start=before, end=played.intended, error=None)
        spans.insert(0, structs.replace(wait, work=HumanWait()))
    calls: dict[str, SpanId] = {}
    for one in task.calls:
        span = structs.replace(
            root,
            id=SpanId(ids.span()),
            parent=root.id,
            name=f"chat {one.heard.call.model}",
            start=one.played.intended,
            end=one.played.received.ended,
            work=one.heard.call,
            error=one.heard.error,
        )
        calls[one.played.step.id] = span.id
        spans.append(span)
    spans += [
        structs.replace(
            root,
            id=SpanId(ids.span()),
            parent=root.id,
            name=f"execute_tool {tool.step.name}",
            start=tool.start,
            end=tool.end,
            work=ToolUse(name=tool.step.name, issued_by=_issuer(tool.step.after, task, calls)),
            error=None,
        )
        for tool in played.tools
    ]
    return spans


def _issuer(after: tuple[str, ...], task: HeardTask, calls: dict[str, SpanId]) -> SpanId | None:
    """The call that a tool goes back to, through other tools if need be."""
    steps = {step.id: step for step in task.played.graph.steps}
    looking, seen = list(after), set[str]()
    while looking:
        name = looking.pop()
        step = steps.get(name)
        if isinstance(step, Call):
            return calls.get(name)
        if step is not None and name not in seen:
            seen.add(name)
            looking += needs(step)
    return None
