"""Calls that other workers have seen: what is told of one, under which keys, and for which keys a request asks.

All of it is digests, ids and times. Digests are comparable between processes that were started with one hash seed and
the same Python: whoever shares them sees to that.

What is told is enough for a history that goes on, for a task or session that the caller names, and for a sub-agent
whose first message is a tool's argument, word for word. What a request quotes of earlier answers (a hand-over, a
condensed history) is recognised only by the worker that has seen the answer.
"""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from headway.core.task import Evidence, SessionId, SpanId, TaskId
from headway.policy.chain import History
from headway.policy.headers import Declared, scoped
from headway.policy.memory import Tenant
from headway.policy.messages import Utterance, text
from headway.policy.subagent import MIN_PROMPT
from headway.policy.turn import OpenTool, Turn

CALLS: Final = 8
"""Earlier calls of a history that are asked for, the latest."""


class Told(Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """A call that has ended; see `Turn`."""

    span: SpanId
    tenant: str
    task: TaskId
    session: SessionId
    opened: float
    closed: float | None
    state: Literal["in_flight", "answered", "failed"]
    raw: tuple[int, bytes] | None
    chain: int | None
    said: int
    root: int | None
    agent: int | None
    specific: int
    parent: SpanId | None
    evidence: Evidence
    descends: bool
    opener: str | None
    text: int | None
    """Digest of what was answered, and of the tools that were called; as they were, and as they may be copied."""
    calls: int | None
    canonical: int | None
    answered: bool
    tools: tuple[tuple[str, str, SpanId, tuple[int, ...]], ...]
    """Call id, name, span, and digests of the texts in its arguments."""


def told_of(turn: Turn) -> Told:
    """What others are told of ``turn``."""
    answer = turn.answer
    return Told(
        span=turn.span,
        tenant=turn.tenant,
        task=turn.task,
        session=turn.session,
        opened=turn.opened,
        closed=turn.closed,
        state=turn.state,
        raw=turn.raw,
        chain=turn.chain,
        said=turn.said,
        root=turn.root,
        agent=turn.agent,
        specific=turn.specific,
        parent=turn.parent,
        evidence=turn.evidence,
        descends=turn.descends,
        opener=turn.opener,
        text=None if answer is None else answer.text,
        calls=None if answer is None else answer.calls,
        canonical=turn.calls,
        answered=answer is not None,
        tools=tuple([(tool.call_id, tool.name, tool.span, tool.prompts) for tool in turn.tools]),
    )


def turn_of(told: Told) -> Turn:
    """The turn as it is remembered by one who was told of it."""
    return Turn(
        span=told.span,
        tenant=told.tenant,
        task=told.task,
        session=told.session,
        opened=told.opened,
        closed=told.closed,
        state=told.state,
        raw=told.raw,
        chain=told.chain,
        said=told.said,
        root=told.root,
        agent=told.agent,
        specific=told.specific,
        parent=told.parent,
        evidence=told.evidence,
        descends=told.descends,
        opener=told.opener,
        answer=Utterance(told.text, told.calls) if told.answered else None,
        calls=told.canonical,
        tools=tuple(
            [OpenTool(call_id=call, name=name, span=span, prompts=prompts) for call, name, span, prompts in told.tools]
        ),
    )


def keys_of(told: Told) -> tuple[str, ...]:
    """Under which others find it."""
    names = [f"t{told.task}"]
    if told.session != told.task:
        names.append(f"s{told.session}")
    if told.chain is not None:
        names.append(f"c{told.chain}")
    names += [f"p{digest}" for _, _, _, prompts in told.tools for digest in prompts]
    return tuple([scoped(told.tenant, name) for name in names])


def wanted(name: str, tenant: Tenant, said: Declared, history: History) -> tuple[str, ...]:
    """The keys under which others may know what this request continues; none: nothing more can be known of it.

    Args:
        name: the tenant's.
        tenant: what is known of it here.
        said: what the caller declares.
        history: the request's.
    """
    names: list[str] = []
    if said.task is not None and said.task not in tenant.by_task:
        names.append(f"t{said.task}")
    if said.session is not None and said.session not in tenant.by_session:
        names.append(f"s{said.session}")
    missing = [chain for chain in history.earlier or () if not tenant.chains.knows(chain)]
    if said.resent and not history.same and history.chain is not None:
        missing.append(history.chain)
    names += [f"c{chain}" for chain in missing[-CALLS:]]
    if not history.earlier and not history.same:
        first = next((text(one).strip() for one in history.news if one.role == "user"), "")
        if len(first) >= MIN_PROMPT:
            names.append(f"p{hash(first)}")
    return tuple([scoped(name, one) for one in names])


def unknown(found: Sequence[Told], tenant: str) -> list[Told]:
    """Those that concern ``tenant``, each once: where they are kept is no wall between tenants."""
    return list({one.span: one for one in found if one.tenant == tenant}.values())
