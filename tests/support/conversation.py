"""Conversations as a gateway sees them: requests and answers, on a clock that the tests move by hand."""

import itertools
import json
from typing import Any

from headway.core.task import Identity, SpanId
from headway.policy.identify import CallAnswered, CallFailed, CallOpening, Identifier
from headway.policy.messages import IssuedCall

Chat = list[dict[str, Any]]
SYSTEM = {"role": "system", "content": "You are a careful assistant of an airline. " * 20}
QUESTION = "I am looking for a flight from Rome to Oslo in the last week of May."
SUMMARY = "The user wants to fly from Rome to Oslo; two flights were found and neither was booked so far."


class World:
    """An identifier and a clock that the tests move by hand."""

    def __init__(self) -> None:
        ids = itertools.count(1)
        self.identifier = Identifier(lambda: f"{next(ids):032x}")
        self._spans = itertools.count(1)
        self.now = 1000.0
        self.span = SpanId("")

    def ask(
        self,
        messages: Chat,
        *,
        after: float = 0.5,
        tenant: str = "",
        spaced: bool = False,
        **rest: Any,  # noqa: ANN401 - whatever else a CallOpening takes
    ) -> Identity:
        self.now += after
        self.span = SpanId(f"{next(self._spans):016x}")
        raw = json.dumps(messages, separators=None if spaced else (",", ":")).encode()
        opening = CallOpening(span=self.span, tenant=tenant, model="m", messages=raw, **rest)
        return self.identifier.decide(opening, self.now)

    def answer(self, content: str = "", *calls: IssuedCall, span: SpanId | None = None, took: float = 1.0) -> None:
        self.now += took
        event = CallAnswered(span=span or self.span, content=content, tool_calls=calls, ended_at=self.now)
        self.identifier.observe(event, self.now)

    def fail(self) -> None:
        self.now += 1.0
        self.identifier.observe(CallFailed(span=self.span, ended_at=self.now), self.now)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str | None, *calls: IssuedCall) -> dict[str, Any]:
    if not calls:
        return {"role": "assistant", "content": text}
    return {"role": "assistant", "content": text, "tool_calls": [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls
    ]}  # fmt: skip


def result(call_id: str, text: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def search(call_id: str = "call_0", query: str = "FCO OSL") -> IssuedCall:
    return IssuedCall(call_id, "search", json.dumps({"q": query}))
