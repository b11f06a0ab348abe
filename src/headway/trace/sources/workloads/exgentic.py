"""Exgentic's recordings: what an agent did and observed, step by step, with the money spent until then but no times."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct, structs

from headway.core.span import ModelCall, ToolCallRef, ToolUse
from headway.trace.sources.digests import arguments_digest
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.fields.completions import micro_usd
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.session.dialogue import Dialogue, spoken
from headway.trace.sources.session.draft import Entry
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_NEVER: Final = (msgspec.MsgspecError, RecursionError)
_MESSAGE: Final = "message"
"""The action that says something to the user."""
_STEPS: Final = (
    "Each action is taken to have cost one call: how many there were is not in the record, nor their tokens."
)
_COST: Final = "The cost of a call is what the agent's total had grown by."


class _Action(Struct):
    name: str
    id: str | None = None
    arguments: Raw = Raw()


class _Message(Struct):
    content: str | None = None


class _Said(Struct):
    sender: str
    message: str


class _Observation(Struct):
    result: Raw = Raw()


class _Event(Struct):
    event: str
    session_id: str
    action: _Action | None = None
    observation: _Observation | None = None
    agent_cost: float | None = None


_EVENT: Final = msgspec.json.Decoder(_Event)
_SAID: Final = msgspec.json.Decoder(_Said)
_SPOKEN: Final = msgspec.json.Decoder(_Message)


class Exgentic:
    """Reads trajectories; each message of a user's opens a task."""

    name = "exgentic"
    title = "Exgentic trajectory"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By events that are actions or observations of a run."""
        head = sample.first()
        return str(head.get("event")) in {"action", "observation"} and {"run_id", "session_id", "step"} <= head.keys()

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each task of each session."""
        for document in documents:
            sessions: dict[str, _Session] = {}
            for record in document.records(skips):
                event = decode(_EVENT, record, skips, "a line that is not JSON, or not an event of a trajectory")
                if event is None:
                    continue
                sessions.setdefault(event.session_id, _Session(event.session_id)).feed(event)
            for session in sessions.values():
                yield from session.pieces()


class _Session:
    """Events in order."""

    def __init__(self, name: str) -> None:
        self._dialogue = Dialogue("exgentic", name, "agent")
        self._spent = 0.0
        self._call: Entry | None = None
        self._tool: Entry | None = None

    def feed(self, event: _Event) -> None:
        """Take the next event."""
        if event.action is not None:
            self._act(event.action, event.agent_cost)
        elif event.event == "action" and event.agent_cost is not None and event.agent_cost > self._spent:
            self._call_model(event.agent_cost, None)  # the one after which the agent had nothing more to do
        elif event.observation is not None:
            self._observe(event.observation)

    def pieces(self) -> Iterator[Piece]:
        """The tasks."""
        yield from self._dialogue.pieces()

    def _act(self, action: _Action, spent: float | None) -> None:
        arguments = bytes(action.arguments).decode()
        talks = action.name == _MESSAGE
        asked = ToolCallRef(action.id or "", action.name)
        if self._call is not None and not talks and spent is not None and spent == self._spent:
            call = self._call  # one answer asked for several tools
            if isinstance(call.work, ModelCall):
                call.work = structs.replace(call.work, tool_calls=(*call.work.tool_calls, asked))
        else:
            said = spoken(_content(action)) if talks else spoken("", [(action.name, arguments)])
            call = self._call_model(spent, said, () if talks else (asked,))
        self._tool = None
        if not talks:
            digest = arguments_digest(arguments) if arguments else None
            use = ToolUse(name=action.name, call_id=action.id, issued_by=call.id, inferred=True, arguments=digest)
            self._tool = self._dialogue.tool(use, None, None, None)

    def _call_model(self, spent: float | None, said: str | None, asked: tuple[ToolCallRef, ...] = ()) -> Entry:
        cost = None if spent is None else micro_usd(spent - self._spent)
        call = self._dialogue.call(ModelCall(model="unknown", cost=cost, tool_calls=asked), said, None)
        self._dialogue.turn.draft.remarks.append(_STEPS)
        self._spent = self._spent if spent is None else spent
        self._call = call
        return call

    def _observe(self, observation: _Observation) -> None:
        raw = bytes(observation.result)
        try:
            said = _SAID.decode(raw)
        except _NEVER:
            said = None
        if said is not None and said.sender == "user":
            self._dialogue.user(said.message, None)
            self._call = None
        elif self._tool is not None and isinstance(self._tool.work, ToolUse):
            result = self._dialogue.hear("tool", raw.decode())
            self._tool.work = structs.replace(self._tool.work, result=result)


def _content(action: _Action) -> str:
    try:
        return _SPOKEN.decode(action.arguments).content or ""
    except _NEVER:
        return bytes(action.arguments).decode()
