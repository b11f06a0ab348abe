"""LMCache's agent traces: a line for each request, with its whole prompt and answer as two texts and one time."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from headway.core.prompt import Part
from headway.core.span import ModelCall
from headway.core.task import SessionId
from headway.trace.sources.digests import digest, span_id, task_id
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.session.draft import Draft, first_words
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_TIMES: Final = (
    "Requests have one time each: how long an answer took, and what its tools, cannot be told apart, so nothing is said"
    " about seconds."
)
LOOKED_BACK: Final = 8
"""Earlier prompts that a prompt may go on from: agents of one session that take turns are seldom more."""
_SESSION: Final = "A session is taken to be one task: which of its texts are the user's is not in the record."
_OTHERS: Final = "Prompts are recorded without what the model itself had said, so they were longer than is shown."


class _Row(Struct):
    session_id: str
    input: str = ""
    timestamp: float | None = None


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
            sessions: dict[str, list[_Row]] = {}
            for record in document.records(skips):
                row = decode(_ROW, record, skips, "a line that is not JSON, or not a request of a trace")
                if row is None:
                    continue
                sessions.setdefault(row.session_id, []).append(row)
            for session, rows in sessions.items():
                if None not in [row.timestamp for row in rows]:
                    rows.sort(key=lambda row: row.timestamp or 0.0)
                draft = Draft(span_id(self.name, session), "agent", 0.0)
                draft.title = first_words(rows[0].input)
                draft.remarks += [_TIMES, _SESSION, _OTHERS]
                before: list[_Prompt] = []
                for number, row in enumerate(rows):
                    prompt = _prompt(row.input, before)
                    before = [prompt, *before[: LOOKED_BACK - 1]]
                    # The answer is left out: the prompts keep none of the model's own texts, so that each would look
                    # as if nobody had read it.
                    call = ModelCall(model="unknown", prompt=prompt.parts)
                    draft.call(span_id(draft.root, str(number)), 0.0, 0.0, call)
                yield draft.piece(task_id(self.name, session), SessionId(session), "none")


class _Prompt(Struct):
    text: str
    parts: tuple[Part, ...]


def _prompt(text: str, before: Sequence[_Prompt]) -> _Prompt:
    """A prompt that begins with an earlier one, as a history sent again does, is that one's parts and a rest."""
    known = max((one for one in before if one.text and text.startswith(one.text)), key=_length, default=_Prompt("", ()))
    rest = text[len(known.text) :]
    return _Prompt(text, (*known.parts, _whole(rest)) if rest or not known.parts else known.parts)


def _length(prompt: _Prompt) -> int:
    return len(prompt.text)


def _whole(prompt: str) -> Part:
    """Messages in one text: what in it is a time or an id says nothing of any one message."""
    exact = digest("user", prompt)
    return Part(role="user", chars=len(prompt), digest=exact, shape=exact)
