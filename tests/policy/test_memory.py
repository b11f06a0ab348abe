"""The identifier's memory: bounded, honestly accounted, and never a reason to mix tasks."""

# pyright: reportPrivateUsage=false
# The indexes have to be seen to be empty.

import gc
import itertools
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.task import SpanId
from headway.policy.headers import RETRY_HEADER
from headway.policy.identify import CallAnswered, CallFailed, CallOpening, Identifier
from headway.policy.messages import IssuedCall

SYSTEM = {"role": "system", "content": "You are an agent that is careful with whatever it is given to do."}


class Conversation:
    """An agent's conversation whose every text is its own."""

    def __init__(self, identifier: Identifier, name: str, tenant: str = "") -> None:
        self._identifier = identifier
        self._name = name
        self._tenant = tenant
        self._chat: list[dict[str, Any]] = [
            SYSTEM,
            {"role": "user", "content": f"Please do for me the work called {name}."},
        ]
        self._step = 0
        self._retries = 0

    def step(self, kind: str, now: float) -> str:
        """One call and its end; the session that it was put into."""
        self._step += 1
        span = SpanId(f"{self._name}-{self._step}")
        raw = json.dumps(self._chat).encode()
        opening = CallOpening(
            span=span, tenant=self._tenant, model="m", messages=raw, headers={RETRY_HEADER: str(self._retries)}
        )
        identity = self._identifier.decide(opening, now)
        self._retries = self._retries + 1 if kind == "fail" else 0
        text = f"This is the long answer number {self._step} to the work called {self._name}."
        match kind:
            case "text":
                self._answered(span, now, text)
                self._chat += [
                    {"role": "assistant", "content": text},
                    {"role": "user", "content": f"Go on {self._step}."},
                ]
            case "tool":
                call = IssuedCall("call_0", "run", json.dumps({"prompt": f"{text} Then do the rest."}))
                self._answered(span, now, "", call)
                issued = {"id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
                self._chat += [
                    {"role": "assistant", "content": None, "tool_calls": [issued]},
                    {"role": "tool", "tool_call_id": "call_0", "content": f"ok {self._step}"},
                ]
            case _:
                self._identifier.observe(CallFailed(span=span, ended_at=now + 0.5), now + 0.5)
        return identity.session

    def _answered(self, span: SpanId, now: float, content: str, *calls: IssuedCall) -> None:
        self._identifier.observe(
            CallAnswered(span=span, content=content, tool_calls=calls, ended_at=now + 0.5), now + 0.5
        )


def identifier(max_bytes: int) -> Identifier:
    ids = itertools.count(1)
    return Identifier(lambda: f"{next(ids):032x}", max_bytes)


@given(
    max_bytes=st.integers(0, 60_000),
    steps=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["text", "tool", "fail"])), max_size=40),
)
@settings(deadline=None, max_examples=60)
def test_the_bound_is_never_exceeded_and_eviction_never_mixes(max_bytes: int, steps: list[tuple[int, str]]) -> None:
    subject = identifier(max_bytes)
    talks = [Conversation(subject, f"work-{n}", tenant="ab"[n % 2]) for n in range(6)]
    owner: dict[str, int] = {}
    for now, (who, kind) in enumerate(steps):
        session = talks[who].step(kind, now * 5.0)
        assert owner.setdefault(session, who) == who
        assert subject.bytes <= max_bytes


@given(steps=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["text", "tool", "fail"])), max_size=40))
@settings(deadline=None, max_examples=40)
def test_with_room_enough_every_conversation_stays_one_session(steps: list[tuple[int, str]]) -> None:
    subject = identifier(10_000_000)
    talks = [Conversation(subject, f"work-{n}") for n in range(6)]
    found: dict[int, set[str]] = {}
    for now, (who, kind) in enumerate(steps):
        found.setdefault(who, set()).add(talks[who].step(kind, now * 5.0))
    assert all(len(sessions) == 1 for sessions in found.values())


@given(steps=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["text", "tool", "fail"])), max_size=30))
@settings(deadline=None, max_examples=40)
def test_what_is_forgotten_leaves_nothing_behind(steps: list[tuple[int, str]]) -> None:
    subject = identifier(10_000_000)
    talks = [Conversation(subject, f"work-{n}", tenant=str(n)) for n in range(6)]
    for now, (who, kind) in enumerate(steps):
        talks[who].step(kind, now * 5.0)
    tenants = list(subject._memory._tenants.values())
    subject._memory._max = 0
    subject._memory._fit()
    assert (subject.bytes, subject.calls, subject._memory._tenants) == (0, 0, {})
    for tenant in tenants:
        chains = tenant.chains
        left = [
            chains._raw,
            chains._chains,
            chains._lengths,
            tenant.passages._texts,
            tenant.prompts._open,
            tenant.prompts._unread,
        ]
        assert [*left, tenant.by_session, tenant.by_task] == [{}] * 8


@pytest.mark.parametrize("kind", ["text", "tool"])
def test_accounted_bytes_cover_what_is_really_used(kind: str) -> None:
    subject = identifier(1_500_000)
    talks = [Conversation(subject, f"work-{n}", tenant=str(n % 100)) for n in range(300)]
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for now in range(600):
            talks[now % 300].step(kind, float(now))
        talks.clear()
        gc.collect()
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert subject.calls > 200
    assert used <= subject.bytes
    assert used >= 0.5 * subject.bytes


def test_a_forgotten_session_that_goes_on_is_a_new_one() -> None:
    subject = identifier(12_000)
    talk = Conversation(subject, "first")
    session = talk.step("text", 0.0)
    for n in range(20):
        Conversation(subject, f"other-{n}").step("text", 1.0 + n)
    assert talk.step("text", 30.0) != session


def test_a_call_that_ends_twice_or_after_it_was_forgotten_changes_nothing() -> None:
    subject = identifier(1_000_000)
    Conversation(subject, "first").step("text", 0.0)
    before = subject.bytes
    again = CallAnswered(
        span=SpanId("first-1"), content="Quite another answer of more than forty characters.", ended_at=9.0
    )
    subject.observe(again, 9.0)
    subject.observe(CallFailed(span=SpanId("never seen"), ended_at=9.0), 9.0)
    assert subject.bytes == before
