"""OpenHands' logs of completions: a folder with one file for each call, whose prompts hold all that went before."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Final, cast

import msgspec
from msgspec import Struct

from headway.core.money import MicroUsd
from headway.core.span import ModelCall, ToolUse
from headway.core.task import SessionId
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest, digest, span_id, task_id
from headway.trace.sources.document import Document, Record, Sample
from headway.trace.sources.fields.completions import Response, answer, micro_usd, tool_calls
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.fields.instants import instant
from headway.trace.sources.fields.messages import Parts, messages, one
from headway.trace.sources.openhands.chains import Logged, Turn, conversations
from headway.trace.sources.session.draft import Draft, first_words
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_FILE: Final = re.compile(r"(?P<model>.+?)-(?P<time>\d{9,10}\.\d+)(?:-[0-9a-f]+)?(?:-error)?\.json\Z")
"""``litellm_proxy__anthropic__claude-sonnet-4-20250514-1757015025.972.json``"""
_TOOLS: Final = (
    "Only calls were logged: a tool's time is the gap between the answer that asked for it and the next call."
)


class _Error(Struct):
    type: str | None = None


class _Log(Struct):
    latency_sec: float | None = None
    timestamp: float | None = None
    messages: list[object] | None = None
    input: object = None
    response: Response | None = None
    cost: float | None = None
    error: _Error | None = None


_LOG: Final = msgspec.json.Decoder(_Log)


class OpenHandsLlm:
    """Importer of ``logs/completions``."""

    name = "openhands-llm"
    title = "OpenHands completion logs"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By what is logged beside the request."""
        found = sample.first()
        return (
            len(sample.values) == 1
            and {"timestamp", "latency_sec", "cost"} <= found.keys()
            and bool(found.keys() & {"response", "error"})
        )

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One task for each message of a user, in each conversation whose calls lie in one folder."""
        folders: dict[str, list[Logged]] = {}
        parts = Parts()
        for document in documents:
            for record in document.records(skips):
                log = decode(_LOG, record, skips, "a log that is broken or in no known shape")
                if log is None:
                    continue
                logged = _logged(log, record, PurePath(document.name).name, parts)
                if logged is None:
                    skips.add("a log without the time of its call", record.where)
                else:
                    folders.setdefault(str(PurePath(document.name).parent), []).append(logged)
        for logs in folders.values():
            for turns in conversations(logs):
                yield from _tasks(turns, parts)


def _logged(log: _Log, record: Record, name: str, parts: Parts) -> Logged | None:
    named = _FILE.match(name)
    end = instant(log.timestamp) or (instant(float(named["time"])) if named else None)
    if end is None:
        return None
    response, lasted = log.response, log.latency_sec
    asked = messages(log.messages if log.messages is not None else log.input, "user")
    raw = [cast("dict[str, object]", held) for held in log.messages or () if isinstance(held, dict)]
    results = {str(held["tool_call_id"]): parts.of(one(held, "tool")) for held in raw if held.get("tool_call_id")}
    users = [message.text for message in asked if message.role == "user" and message.text]
    model = response.model if response is not None else None
    return Logged(
        start=end if lasted is None else end - min(max(lasted, 0.0), end),
        end=end,
        timed=lasted is not None,
        id=(response.id if response is not None else None) or digest(record.data.decode(errors="replace")),
        model=model or (named["model"].replace("__", "/") if named else "unknown"),
        prompt=tuple([parts.of(message) for message in asked]),
        results=results,
        asked=users[-1] if users else None,
        said=[] if response is None else response.said(),
        arguments={} if response is None else response.arguments(),
        usage=Usage() if response is None or response.usage is None else response.usage.usage(),
        cost=micro_usd(log.cost or None),
        error=None if log.error is None else log.error.type or "error",
    )


def _tasks(turns: list[Turn], parts: Parts) -> Iterator[Piece]:
    """The tasks of one conversation."""
    session = SessionId(digest("openhands", turns[0].calls[0].id))
    ended: float | None = None
    for number, turn in enumerate(turns):
        first = turn.calls[0]
        draft = Draft(span_id(first.id, "turn"), "OpenHands", first.start)
        draft.title = first_words(first.asked or "")
        if ended is not None:
            draft.waited_before(span_id(first.id, "wait"), ended)
        following = turns[number + 1].calls[0] if number + 1 < len(turns) else None
        for call, after in zip(turn.calls, [*turn.calls[1:], following], strict=True):
            _call(draft, call, parts)
            if after is not None and after is not following:
                _tools(draft, call, after)
        for call in turn.beside:
            _call(draft, call, parts)
        ended = draft.end
        draft.remarks += [_TOOLS] if any(call.said for call in turn.calls) else []
        yield draft.piece(task_id("openhands", first.id), session, "spans")


def _call(draft: Draft, call: Logged, parts: Parts) -> None:
    work = ModelCall(
        model=call.model,
        usage=call.usage,
        finish_reason=next((message.finish for message in call.said if message.finish), None),
        tool_calls=tool_calls(call.said),
        cost=None if call.cost is None else MicroUsd(call.cost),
        prompt=call.prompt,
        answer=answer(call.said, parts),
    )
    draft.call(span_id(call.id, "call"), call.start, call.end if call.timed else None, work, call.error)


def _tools(draft: Draft, call: Logged, after: Logged) -> None:
    """The tools that an answer asked for and the next call brings the results of."""
    for ref in tool_calls(call.said):
        result = after.results.get(ref.id)
        if result is not None:
            arguments = call.arguments.get(ref.id)
            work = ToolUse(
                name=ref.name,
                call_id=ref.id,
                issued_by=span_id(call.id, "call"),
                inferred=True,
                arguments=None if arguments is None else arguments_digest(arguments),
                result=result,
            )
            draft.tool(span_id(call.id, "tool", ref.id), call.end, max(after.start, call.end), work)
