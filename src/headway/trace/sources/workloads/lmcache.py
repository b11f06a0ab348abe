"""LMCache's agent traces: a line for each request, with its whole prompt and answer as two texts and one time."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from headway.core.prompt import Part
from headway.core.span import ModelCall
from headway.core.task import SessionId
from headway.trace.sources.digests import digest, part, span_id, task_id
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.session.draft import Draft, first_words
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_NEVER: Final = (msgspec.MsgspecError, RecursionError)
_TIMES: Final = (
    "Requests have one time each: how long an answer took, and what its tools, cannot be told apart, so nothing is said"
    " about seconds."
)
_SESSION: Final = "A session is taken to be one task: which of its texts are the user's is not in the record."


class _Row(Struct):
    timestamp: float
    input: str
    output: str
    session_id: str


_ROW: Final = msgspec.json.Decoder(_Row)


class LMCache:
    """Reads the traces that LMCache publishes of agents."""

    name = "lmcache"
    title = "LMCache agent trace"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By all that a line has."""
        return sample.first().keys() == {"timestamp", "input", "output", "session_id"}

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each session, its calls in the order in which they were sent."""
        for document in documents:
            sessions: dict[str, list[tuple[float, ModelCall, str | None]]] = {}
            for record in document.records(skips):
                try:
                    row = _ROW.decode(record.data)
                except _NEVER:
                    skips.add("a line that is not JSON, or not a request of a trace", record.where)
                    continue
                call = ModelCall(model="unknown", prompt=(_whole(row.input),), answer=part("assistant", row.output))
                sessions.setdefault(row.session_id, []).append((row.timestamp, call, first_words(row.input)))
            for session, calls in sessions.items():
                calls.sort(key=lambda one: one[0])
                draft = Draft(span_id(self.name, session), "agent", 0.0)
                draft.title = calls[0][2]
                draft.remarks += [_TIMES, _SESSION]
                for number, (_, call, _) in enumerate(calls):
                    draft.call(span_id(draft.root, str(number)), 0.0, 0.0, call)
                yield draft.piece(task_id(self.name, session), SessionId(session), "none")


def _whole(prompt: str) -> Part:
    """All messages of a prompt in one text: what in it is a time or an id says nothing of any one message."""
    exact = digest("user", prompt)
    return Part(role="user", chars=len(prompt), digest=exact, shape=exact)
