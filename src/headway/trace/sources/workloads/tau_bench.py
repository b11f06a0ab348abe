"""tau-bench trajectories: whole conversations of an agent with a simulated user, without times or tokens."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Final, cast

import msgspec
from msgspec import Struct, field, structs

from headway.core.span import ModelCall, ToolCallRef, ToolUse
from headway.trace.sources.digests import arguments_digest
from headway.trace.sources.document import Document, Record, Sample
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.session.dialogue import Dialogue, spoken
from headway.trace.sources.session.draft import Entry
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_NOTHING: Final = "Messages have neither times nor token counts: only the order and the number of calls are known."


class _Function(Struct):
    name: str
    arguments: str = ""


class _Asked(Struct):
    function: _Function
    id: str | None = None


class _Message(Struct):
    role: str
    content: str | None = None
    tool_calls: list[_Asked] | None = None
    tool_call_id: str | None = None


class _Trajectory(Struct):
    task_id: int | str
    traj: list[_Message] = field(default_factory=list[_Message])
    trial: int = 0


_ALL: Final = msgspec.json.Decoder(list[msgspec.Raw])
_ONE: Final = msgspec.json.Decoder(_Trajectory)


class TauBench:
    """Reads trajectories; each message of the user's opens a task."""

    name = "tau-bench"
    title = "tau-bench trajectory"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By a trajectory's task and messages."""
        head = sample.first()
        said = head.get("traj")
        return (
            {"task_id", "reward"} <= head.keys()
            and isinstance(said, list)
            and _are_messages(cast("list[object]", said))
        )

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each message of the user's that was answered."""
        for document in documents:
            for record in document.records(skips):
                several = record.data.lstrip()[:1] == b"["
                rows = decode(_ALL, record, skips, "a file that is not JSON") if several else [record.data]
                for number, row in enumerate(rows or (), 1):
                    where = f"{record.where}, trajectory {number}" if several else record.where
                    found = decode(_ONE, Record(bytes(row), where), skips, "a trajectory of another shape")
                    if found is not None:
                        yield from _pieces(found, document, skips)


def _are_messages(said: list[object]) -> bool:
    return bool(said) and all(isinstance(one, dict) and "role" in one for one in said)


def _pieces(found: _Trajectory, document: Document, skips: Skips) -> Iterator[Piece]:
    session = f"{PurePath(document.name).stem}, task {found.task_id}, trial {found.trial}"
    dialogue = Dialogue("tau-bench", session, "agent")
    tools: dict[str, Entry] = {}
    for message in found.traj:
        text = message.content or ""
        if message.role == "user":
            dialogue.user(text, None)
        elif message.role == "assistant":
            _answer(dialogue, message, text, tools)
        elif message.role == "tool":
            entry = tools.get(message.tool_call_id or "")
            result = dialogue.hear("tool", text)
            if entry is not None and isinstance(entry.work, ToolUse):
                failed = text.startswith("Error")
                entry.work = structs.replace(entry.work, result=result, failed=failed)
                entry.error = "tool_error" if failed else None
        else:
            dialogue.hear(message.role, text)
    for _ in range(dialogue.unanswered):
        skips.add("a request that was never answered", document.name)
    yield from dialogue.pieces()


def _answer(dialogue: Dialogue, message: _Message, text: str, tools: dict[str, Entry]) -> None:
    asked = message.tool_calls or []
    calls = tuple([ToolCallRef(one.id or "", one.function.name) for one in asked])
    said = spoken(text, [(one.function.name, one.function.arguments) for one in asked])
    call = dialogue.call(ModelCall(model="unknown", tool_calls=calls), said, None)
    dialogue.turn.draft.remarks.append(_NOTHING)
    for one in asked:
        digest = arguments_digest(one.function.arguments)
        work = ToolUse(name=one.function.name, call_id=one.id, issued_by=call.id, inferred=True, arguments=digest)
        tools[one.id or ""] = dialogue.tool(work, None, None, None)
