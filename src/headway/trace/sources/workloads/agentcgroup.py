"""The table of AgentCgroup's runs: Claude Code on software tasks in containers, as numbers without text."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from headway.core.span import ModelCall, ToolUse
from headway.core.task import SpanId
from headway.core.usage import Usage
from headway.trace.sources.claude.answer import is_partial
from headway.trace.sources.digests import span_id, task_id
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.session.draft import Draft, Entry
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Time = Annotated[float, Meta(ge=0, le=1e12)]
_SUMMED: Final = {"cache_read": "input", "cache_write": "input"}
_SPAWNING: Final = "Task"
_SYNTHETIC: Final = "<synthetic>"
"""Whom Claude Code names as the author of its own messages, as that it was interrupted."""
_OWN_WORDS: Final = "A message that Claude Code wrote itself is no call of a model; the time up to it is the agent's."
_CACHE: Final = "Cache reads and writes were added to the input tokens, which this source reports without them."
_UNTOLD: Final = (
    "Of some models every call says 0 for what the cache gave and took, which is what is written where the engine does"
    " not tell: what was cached is unknown."
)
_TTFT: Final = "When an answer's first token came is not recorded, so TTFT is unknown."
_PARTIAL: Final = "Some answers were written down before they had ended: their output tokens are unknown."


class _Call(Struct):
    start: _Time | None = None
    end: _Time | None = None
    model: str = "unknown"
    side: bool = False
    input: _Count | None = None
    cache_write: _Count | None = None
    cache_read: _Count | None = None
    output: _Count | None = None
    text_chars: _Count = 0


class _Tool(Struct):
    name: str = "unknown"
    call: int = -1
    start: _Time | None = None
    end: _Time | None = None
    err: bool | None = None


class _Run(Struct):
    group: str
    task: str
    attempt: str
    calls: list[_Call]
    tools: list[_Tool]


_RUN: Final = msgspec.json.Decoder(_Run)


class AgentCgroup:
    """Reads runs, one task each."""

    name = "agentcgroup"
    title = "AgentCgroup run"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By what a run is called, and its calls and tools."""
        return {"group", "task", "attempt", "calls", "tools"} <= sample.first().keys()

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each run."""
        for document in documents:
            for record in document.records(skips):
                run = decode(_RUN, record, skips, "a line that is not JSON, or not a run", spoils=_SUMMED)
                if run is None:
                    continue
                key = f"{run.group}/{run.task}/{run.attempt}"
                yield _draft(run, key).piece(task_id(self.name, key), None, "messages")


def _draft(run: _Run, key: str) -> Draft:
    draft = Draft(span_id("agentcgroup", key), "claude-code", 0.0)
    draft.title = run.task
    draft.remarks += [_CACHE, _TTFT]
    ids = [span_id(draft.root, "call", str(number)) for number in range(len(run.calls))]
    agents = _tools(draft, run, ids)
    telling = {call.model for call in run.calls if call.cache_read or call.cache_write}
    for span, call in zip(ids, run.calls, strict=True):
        if call.model == _SYNTHETIC:
            draft.until = max(draft.until, call.end or 0.0)
            draft.remarks.append(_OWN_WORDS)
            continue
        read, written = call.cache_read, call.cache_write
        partial = is_partial(call.output, call.text_chars)
        usage = Usage(
            input_tokens=None if call.input is None else call.input + (read or 0) + (written or 0),
            output_tokens=None if partial else call.output,
            cache_read=read if call.model in telling else None,
            cache_write=written if call.model in telling else None,
        )
        if call.model not in telling:
            draft.remarks.append(_UNTOLD)
        if partial:
            draft.remarks.append(_PARTIAL)
        entry = draft.call(span, _start(draft, call), call.end, ModelCall(model=call.model, usage=usage))
        if call.side:
            entry.parent = _around(agents, entry.start)
    return draft


def _start(draft: Draft, one: _Call | _Tool) -> float:
    """When it began; where that is damaged, with the last that was known before it."""
    if one.start is not None:
        return one.start
    return draft.end if one.end is None else min(draft.end, one.end)


def _around(agents: Sequence[tuple[SpanId, Entry]], when: float) -> SpanId | None:
    """The sub-agent that was at work then."""
    return next((agent for agent, tool in agents if tool.start <= when <= (tool.end or when)), None)


def _tools(draft: Draft, run: _Run, ids: Sequence[SpanId]) -> list[tuple[SpanId, Entry]]:
    """The tools, and a sub-agent in each that starts one."""
    agents: list[tuple[SpanId, Entry]] = []
    for number, tool in enumerate(run.tools):
        issuer = ids[tool.call] if 0 <= tool.call < len(ids) else None
        work = ToolUse(name=tool.name, issued_by=issuer, inferred=True, failed=tool.err)
        span = span_id(draft.root, "tool", str(number))
        error = "tool_error" if tool.err else None
        entry = draft.tool(span, _start(draft, tool), tool.end, work, error)
        if tool.name == _SPAWNING:
            inner = Draft(span_id(span, "agent"), "subagent", entry.start)
            inner.until = entry.start if tool.end is None else tool.end
            draft.adopt(inner, entry.id)
            agents.append((inner.root, entry))
        side = issuer is not None and run.calls[tool.call].side
        if side:
            entry.parent = _around(agents, entry.start)
    return agents
