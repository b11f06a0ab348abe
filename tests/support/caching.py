"""Calls as a cache sees them: who asks, what a client is sent, what an engine answers."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from headway.core.clock import VirtualClock
from headway.core.money import MicroUsd
from headway.gateway.caches.copying import Nobody
from headway.gateway.caches.meanings import Meanings
from headway.gateway.caches.outcomes import Given, Ticket, Wait
from headway.gateway.caches.sharing import Sharing
from headway.gateway.caches.station import ResponseCache
from headway.gateway.deadlines import Deadlines
from headway.gateway.front import Request
from headway.gateway.responses import JSON, Failure, Headers
from headway.gateway.unforeseen import Unforeseen
from headway.policy.cache.rules import CacheRule, CacheRules
from headway.wire.dialect import Dialect
from headway.wire.dialects import CHAT

START = 1000.0
EVENTS: Headers = [(b"content-type", b"text/event-stream")]


class Reader(Nobody):
    """A client that remembers what it was sent."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self.streamed = False
        self.ended = 0
        self.problem: Failure | None = None

    def respond(self, status: int, body: bytes, headers: Headers = JSON) -> None:
        self.status, self.body, self.headers = status, body, dict(headers)
        self.ended += 1

    def begin(self, status: int, headers: Headers) -> None:
        self.status, self.headers, self.streamed = status, dict(headers), True

    def send(self, data: bytes) -> None:
        self.body += data

    def end(self, *, close: bool = False) -> None:
        del close
        self.ended += 1

    def fail(self, problem: Failure) -> None:
        self.problem = problem


class Caller:
    """A call that asks, and may wait."""

    def __init__(self, on_told: Callable[["Caller"], None] = lambda _: None) -> None:
        self.outcome: Given | Wait | Ticket | None = None
        """What it was told when it asked."""
        self.told: list[Given | Ticket] = []
        """What it was told later."""
        self.has_been_told = asyncio.Event()
        self._on_told = on_told

    def cached(self, given: Given) -> None:
        self._tell(given)

    def uncached(self, ticket: Ticket) -> None:
        self._tell(ticket)

    def _tell(self, outcome: Given | Ticket) -> None:
        self.told.append(outcome)
        self.has_been_told.set()
        self._on_told(self)

    @property
    def given(self) -> Given:
        """The answer that it has."""
        outcome = self.told[-1] if self.told else self.outcome
        assert isinstance(outcome, Given)
        return outcome

    @property
    def ticket(self) -> Ticket:
        """With which it makes its call."""
        outcome = self.told[-1] if self.told else self.outcome
        assert isinstance(outcome, Ticket)
        return outcome

    @property
    def wait(self) -> Wait:
        """Its place among those who wait."""
        assert isinstance(self.outcome, Wait)
        return self.outcome


class Rig:
    """A cache on a clock that is moved by hand."""

    def __init__(
        self,
        *rules: CacheRule,
        limit: int = 1 << 20,
        meanings: Meanings | None = None,
        sharing: Callable[[VirtualClock], Sharing] | None = None,
        patience: float = 30.0,
    ) -> None:
        self.clock = VirtualClock(START)
        self.deadlines = Deadlines(self.clock, 1.0)
        self.cache = ResponseCache(
            CacheRules(rules or (CacheRule(name="all"),)),
            limit,
            clock=self.clock,
            deadlines=self.deadlines,
            unforeseen=Unforeseen(),
            meanings=meanings,
            sharing=None if sharing is None else sharing(self.clock),
            patience=patience,
        )

    def ask(
        self,
        text: str = "why",
        *,
        tenant: str | None = "acme",
        dialect: Dialect = CHAT,
        fields: dict[bytes, bytes] | None = None,
        caller: Caller | None = None,
        more: Mapping[str, object] | None = None,
    ) -> Caller:
        """Ask, as a caller does; ``more``: fields of the request's body."""
        caller = caller or Caller()
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **(more or {})}
        request = Request(
            headers=[],
            received=self.clock.now(),
            method=b"POST",
            path=b"/v1" + dialect.path,
            fields=fields or {},
            body=json.dumps(body).encode(),
        )
        caller.outcome = self.cache.ask(request, dialect, "m", tenant=tenant, waiter=caller)
        return caller

    def answer(self, ticket: Ticket, text: str = "because", *, finish: str = "stop", seconds: float = 2.0) -> Reader:
        """The engine's answer is relayed, and the cache told."""
        reader = Reader()
        ticket.copying(reader).respond(200, completion(text, finish))
        self.cache.answered(ticket, answer=None, seconds=seconds, cost=MicroUsd(500))
        return reader

    def asked_and_answered(self, text: str = "why", answer: str = "because", **more: Any) -> None:  # noqa: ANN401 - as above
        """One call from beginning to end."""
        self.answer(self.ask(text, **more).ticket, answer)


def completion(text: str, finish: str = "stop") -> bytes:
    """A whole answer of chat completions."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return json.dumps({"object": "chat.completion", "choices": [choice]}).encode()


def said(given: Given) -> str:
    """The words of an answer that was given."""
    reader = Reader()
    given.deliver(reader)
    return json.loads(reader.body)["choices"][0]["message"]["content"]
