"""Sessions in WEKA's capture format, as kv-cache-tester publishes them: a proxy's view of requests, without text."""

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
from headway.trace.sources.session.draft import Draft, Entry
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Seconds = Annotated[float, Meta(ge=0, le=1e9)]
_AGENT: Final = "agent"
_STARTS: Final = "Most starts are rounded to whole seconds, so gaps between calls may be off by one."
_GAPS: Final = (
    "A gap between two calls of one task is counted as one tool: how many ran, and which, is not in the record."
)
_ENDLESS: Final = "How long some answers took is not recorded: E2E is too short by them."
_TEXT: Final = (
    "How the answer before ended is not recorded: what came then is taken to be the user's, since no tool's result is"
    " named."
)
_CACHE: Final = "What the engine took from its cache is not recorded, only which blocks of prompts are alike."


class _Request(Struct, rename={"read": "in"}):
    """A request to a model, or a sub-agent with its own requests. Seconds since the start of what holds it."""

    t: _Seconds
    type: str
    model: str = "unknown"
    read: _Count | None = None
    out: _Count | None = None
    input_types: list[str] = field(default_factory=list[str])
    output_types: list[str] = field(default_factory=list[str])
    stop: str | None = None
    api_time: _Seconds | None = None
    ttft: _Seconds | None = None
    subagent_type: str | None = None
    duration_ms: _Seconds | None = None
    requests: list["_Request"] = field(default_factory=list["_Request"])

    @property
    def end(self) -> float | None:
        """When the answer was whole."""
        return None if self.api_time is None else self.t + self.api_time


class _Session(Struct):
    id: str
    requests: list[_Request]


_SESSION: Final = msgspec.json.Decoder(_Session)


class KvCacheTester:
    """Reads whole sessions, with all their block hashes or with what was added to them only."""

    name = "kv-cache-tester"
    title = "kv-cache-tester session"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By the requests and the size of the blocks that their prompts are hashed in."""
        head = sample.first()
        return "block_size" in head and "hash_id_scope" in head and isinstance(head.get("requests"), list)

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each message of the user's: a request whose input is no tool's result."""
        seen: set[str] = set()
        for document in documents:
            for record in document.records(skips):
                session = decode(_SESSION, record, skips, "a session that is not JSON, or not in this format")
                if session is None:
                    continue
                if session.id in seen:
                    skips.add("a session that another file holds too: counted once", record.where)
                    continue
                seen.add(session.id)
                for number, draft in enumerate(_turns(session)):
                    task = task_id(self.name, session.id, str(number))
                    yield draft.piece(task, SessionId(session.id), "spans")


def _turns(session: _Session) -> list[Draft]:
    turns: list[Draft] = []
    before: _Request | None = None
    turn: _Turn | None = None
    for request in session.requests:
        spawns = request.type == "subagent"
        if turn is None or (not spawns and _asks(request, before)):
            draft = Draft(span_id("kv-cache-tester", session.id, str(len(turns))), _AGENT, request.t)
            if turns:
                draft.waited_before(span_id(draft.root, "wait"), turns[-1].end)
            turns.append(draft)
            if before is not None and not before.stop:
                draft.remarks.append(_TEXT)
            turn = _Turn(draft, 0.0)
        if spawns:
            turn.spawn(request)
        else:
            turn.call(request)
            before = request
    return turns


def _asks(request: _Request, before: _Request | None) -> bool:
    """Whether the user asked for it: its input is no tool's result, or nothing waited for a tool."""
    return "tool_result" not in request.input_types or before is None or before.stop != "tool_use"


class _Turn:
    """The spans of one task, or of one sub-agent, whose clock starts at ``origin``."""

    def __init__(self, draft: Draft, origin: float) -> None:
        self._draft = draft
        self._origin = origin
        self._last: Entry | None = None
        self._spawned = False

    def call(self, request: _Request) -> None:
        """A request, and the gap before it, in which tools ran."""
        draft, origin = self._draft, self._origin
        start = origin + request.t
        if self._last is not None and self._last.end is not None and not self._spawned and start > self._last.end:
            work = ToolUse(name="unknown", issued_by=self._last.id, inferred=True)
            draft.tool(span_id(draft.root, "tool", str(len(draft.entries))), self._last.end, start, work)
            draft.remarks.append(_GAPS)
        end = None if request.end is None else origin + request.end
        first = None if request.ttft is None else start + request.ttft
        work = ModelCall(
            model=request.model,
            stream=request.type == "s",
            first_token=None if first is None or end is None or first > end else first,
            shown="text" in request.output_types,
            usage=Usage(input_tokens=request.read, output_tokens=request.out),
            finish_reason=request.stop or None,
        )
        self._last = draft.call(span_id(draft.root, "call", str(len(draft.entries))), start, end, work)
        self._spawned = False
        draft.remarks += [_STARTS, _CACHE] if end is not None else [_STARTS, _CACHE, _ENDLESS]

    def spawn(self, request: _Request) -> None:
        """A sub-agent: written down when it ended, or when it was sent to work in the background."""
        draft, now = self._draft, self._origin + request.t
        seconds = None if request.duration_ms is None else request.duration_ms / 1000
        start = now if seconds is None else now - seconds
        number = str(len(draft.entries))
        issuer = None if self._last is None else self._last.id
        work = ToolUse(name="Task", issued_by=issuer, failed=None)
        tool = draft.tool(span_id(draft.root, "tool", number), start, now, work)
        inner = Draft(span_id(draft.root, "agent", number), request.subagent_type or "subagent", start)
        inner.until = now
        requests = _Turn(inner, start)
        for one in request.requests:
            if one.type != "subagent":
                requests.call(one)
        draft.adopt(inner, None if seconds is None else tool.id)
        self._spawned = True
