"""Agentic Mooncake workloads: requests that wait for one another, by length and by block hash, made to be replayed."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct, field

from headway.core.span import ModelCall, ToolUse
from headway.core.task import SessionId
from headway.core.usage import Usage
from headway.trace.sources.digests import span_id, task_id
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.session.draft import Draft
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_Count = Annotated[int, Meta(ge=0, le=2**53)]
_TIMES: Final = "A workload says when requests may be sent, not how long they took, so nothing is said about seconds."
_PARTS: Final = "Requests that share a session, or of which one waits for the other, are taken to be one task."


class _Row(Struct):
    input_length: _Count | None = None
    output_length: _Count | None = None
    request_id: str | None = None
    session_id: str | None = None
    model: str | None = None
    wait_for: list[str] = field(default_factory=list[str])
    tool_wait_ms: float | None = None


_ROW: Final = msgspec.json.Decoder(_Row)


class Mooncake:
    """Reads workloads whose requests belong together; single requests hold no task."""

    name = "mooncake"
    title = "agentic Mooncake workload"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By lengths without any text, and something that says which requests belong together."""
        head = sample.first()
        return {"input_length", "output_length"} <= head.keys() and bool(head.keys() & {"session_id", "wait_for"})

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each set of requests that belong together."""
        for document in documents:
            tasks = _Tasks()
            for record in document.records(skips):
                row = decode(_ROW, record, skips, "a line that is not JSON, or not a request of a workload")
                if row is not None:
                    tasks.add(row, record.where)
            for key, rows in tasks.all():
                yield _piece(f"{document.name}/{key}", rows)


class _Tasks:
    """Rows by what ties them together: sets that are joined as ties turn up."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}
        self._rows: list[tuple[str, _Row]] = []

    def add(self, row: _Row, where: str) -> None:
        """Another request; where it came from names it where nothing else does."""
        own = f"request {row.request_id or where}"
        self._rows.append((own, row))
        self._top(own)
        ties = [f"request {name}" for name in row.wait_for]
        for tie in [*ties, *([] if row.session_id is None else [f"session {row.session_id}"])]:
            self._above[self._top(own)] = self._top(tie)

    def all(self) -> Iterator[tuple[str, list[_Row]]]:
        """Each set under a name."""
        sets: dict[str, list[_Row]] = {}
        for own, row in self._rows:
            sets.setdefault(self._top(own), []).append(row)
        yield from sets.items()

    def _top(self, name: str) -> str:
        while (above := self._above.setdefault(name, name)) != name:
            self._above[name] = self._above[above]  # halves the way of the next
            name = above
        return name


def _piece(key: str, rows: list[_Row]) -> Piece:
    draft = Draft(span_id("mooncake", key), "agent", 0.0)
    draft.remarks += [_TIMES, _PARTS]
    for number, row in enumerate(rows):
        if row.tool_wait_ms:
            work = ToolUse(name="unknown", inferred=True)
            draft.tool(span_id(draft.root, "tool", str(number)), 0.0, 0.0, work)
        usage = Usage(input_tokens=row.input_length, output_tokens=row.output_length)
        draft.call(
            span_id(draft.root, "call", str(number)), 0.0, 0.0, ModelCall(model=row.model or "unknown", usage=usage)
        )
    session = next((row.session_id for row in rows if row.session_id is not None), None)
    return draft.piece(task_id("mooncake", key), None if session is None else SessionId(session), "none")
