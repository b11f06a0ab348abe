"""A trajectory of OpenHands' first generation, action by observation, into tasks."""

from collections.abc import Iterator
from typing import Final, cast

from msgspec import Struct

from headway.core.span import ModelCall, ToolUse
from headway.core.task import SessionId, SpanId
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest, span_id, task_id
from headway.trace.sources.fields.completions import answer, tool_calls
from headway.trace.sources.fields.instants import instant
from headway.trace.sources.fields.messages import Message, Parts, plain
from headway.trace.sources.openhands.rows import OldEvent
from headway.trace.sources.session.draft import Draft, first_words
from headway.trace.sources.source import Piece

_AGENT: Final = "OpenHands"
_ACTIONS: Final = frozenset(
    {"message", "run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive", "delegate", "finish",
     "think", "reject", "call_tool_mcp", "task_tracking"}
)  # fmt: skip
"""Actions that a model's answer is turned into."""
_DONE: Final = frozenset({"message", "finish", "reject", "think"})
"""Actions that nothing is run for."""


class _Pending(Struct, frozen=True):
    draft: Draft
    name: str
    call: str | None
    by: SpanId | None
    since: float
    arguments: object


class Trajectory:
    """One trajectory while its events are heard.

    Args:
        key: what ids are made of.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._parts = Parts()
        self._drafts: list[Draft] = []
        self._answers: dict[str, SpanId] = {}
        self._pending: dict[int, _Pending] = {}
        self._asked: float | None = None
        self._now = 0.0

    def hear(self, event: OldEvent) -> bool:
        """The next event; whether it has a time."""
        when = instant(event.timestamp)
        if when is None:
            return False
        self._now = max(when, self._now)
        if event.action == "message" and event.source == "user":
            self._user(event)
        elif event.action in _ACTIONS and event.source == "agent":
            self._act(event, event.action or "")
        elif event.observation is not None and event.cause in self._pending:
            self._observe(event, self._pending.pop(event.cause or 0))
        return True

    def pieces(self) -> Iterator[Piece]:
        """Its tasks."""
        session = SessionId(self._key)
        for number, pending in self._pending.items():
            work = ToolUse(name=pending.name, call_id=pending.call, issued_by=pending.by, inferred=True)
            pending.draft.tool(span_id(self._key, "tool", f"of {number}"), pending.since, None, work)
        for draft in self._drafts:
            if draft.entries:
                yield draft.piece(task_id("openhands", draft.root), session, "messages")

    def _draft(self) -> Draft:
        if not self._drafts:
            self._drafts.append(Draft(span_id(self._key, "task", "0"), _AGENT, self._now))
        return self._drafts[-1]

    def _user(self, event: OldEvent) -> None:
        last = self._drafts[-1] if self._drafts else None
        if last is None or last.entries:
            draft = Draft(span_id(self._key, "task", str(event.id)), _AGENT, self._now)
            if last is not None:
                draft.waited_before(span_id(self._key, "wait", str(event.id)), last.end)
            self._drafts.append(draft)
        self._draft().title = self._draft().title or first_words(
            plain(_fields(event.args).get("content") or event.message)
        )
        self._asked = self._now

    def _act(self, event: OldEvent, action: str) -> None:
        metadata = event.tool_call_metadata
        response = None if metadata is None else metadata.model_response
        key = response.id if response is not None and response.id else str(event.id)
        by = self._answers.get(key)
        if by is None:
            by = self._answers[key] = span_id(self._key, "call", key)
            said = [] if response is None else response.said()
            work = ModelCall(
                model=response.model or "unknown" if response is not None else "unknown",
                usage=Usage() if response is None or response.usage is None else response.usage.usage(),
                finish_reason=next((one.finish for one in said if one.finish), None),
                tool_calls=tool_calls(said),
                answer=answer(said, self._parts) or self._parts.of(Message("assistant", plain(event.message))),
            )
            start = self._now if self._asked is None else self._asked
            self._draft().call(by, start, self._now, work)
        call = None if metadata is None else metadata.tool_call_id
        given = {} if response is None else response.arguments()
        if action not in _DONE:
            name = (metadata.function_name if metadata is not None else None) or action
            self._pending[event.id] = _Pending(
                self._draft(), name, call, by, self._now, given.get(call or "", event.args)
            )
        self._asked = self._now

    def _observe(self, event: OldEvent, pending: _Pending) -> None:
        code = _fields(_fields(event.extras).get("metadata")).get("exit_code")
        broken = event.observation == "error" or (isinstance(code, int) and code > 0)
        work = ToolUse(
            name=pending.name,
            call_id=pending.call,
            issued_by=pending.by,
            inferred=True,
            failed=broken,
            arguments=arguments_digest(pending.arguments),
            result=self._parts.of(Message("tool", plain(event.content))),
        )
        word = None if not broken else "error" if event.observation == "error" else "exit_code"
        self._draft().tool(span_id(self._key, "tool", str(event.id)), pending.since, self._now, work, word)
        self._asked = self._now


def _fields(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
