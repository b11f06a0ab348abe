"""Which task does a call belong to? Told by its headers where they say so, else by the messages themselves."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from headway.core.task import Evidence, Identity, PendingTool, SessionId, SpanId, TaskId
from headway.policy.elsewhere import Told, told_of, turn_of, unknown, wanted
from headway.policy.headers import IDENTITY_HEADERS, Declared, declared
from headway.policy.lengths import Lengths, Prefix, corrected
from headway.policy.memory import Memory, Tenant
from headway.policy.messages import IssuedCall, canonical, utterance, visible
from headway.policy.recognise import Link, Request, agent_of, by_content, by_history, by_session
from headway.policy.subagent import Prompts
from headway.policy.turn import OpenTool, Turn

MAX_BYTES = 64 * 1024 * 1024
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class CallOpening(Struct, frozen=True, kw_only=True, gc=False):
    """A call as it arrives."""

    span: SpanId
    tenant: str
    """Who is served; no evidence crosses tenants. Empty where there is only one."""
    model: str
    messages: bytes
    """The body's ``messages``: a raw JSON array."""
    tools: bytes | None = None
    headers: Mapping[str, str] = _NO_HEADERS
    """Lower-case names; only `IDENTITY_HEADERS` are read."""
    body_session: str | None = None
    """The session that the body names, where a client sends one (``prompt_cache_key``, metadata)."""


class CallAnswered(Struct, frozen=True, kw_only=True, gc=False):
    """A call's answer came to its end."""

    span: SpanId
    content: str
    tool_calls: tuple[IssuedCall, ...] = ()
    ended_at: float
    finish_reason: str | None = None
    input_tokens: int | None = None
    """Of the whole prompt, as the engine has counted them."""


class CallFailed(Struct, frozen=True, kw_only=True, gc=False):
    """A call ended without a whole answer: refused, broken off, or its client left."""

    span: SpanId
    ended_at: float


class Identifier:
    """Assigns calls to tasks and sessions; remembers digests of what it saw, in at most ``max_bytes``.

    It forgets the least recently used calls first: a session that is forgotten and goes on is a new session.

    Args:
        new_id: gives 32 lower-case hex digits that were never given before; span ids are their first 16.
        max_bytes: bound of everything remembered, all tenants together.
        measure: whether prompts are measured, for those who decide where calls go.
        shared: whether other workers tell of calls, and are told.
    """

    def __init__(
        self, new_id: Callable[[], str], max_bytes: int = MAX_BYTES, *, measure: bool = False, shared: bool = False
    ) -> None:
        self._new_id = new_id
        self._memory = Memory(max_bytes, shared=shared)
        self._shared = shared
        self._lengths = Lengths() if measure else None

    @property
    def bytes(self) -> int:
        """Memory accounted for at present; never more than ``max_bytes``."""
        return self._memory.bytes

    @property
    def calls(self) -> int:
        """Calls remembered at present."""
        return len(self._memory)

    def wanted(self, opening: CallOpening) -> tuple[str, ...]:
        """The keys under which others may know what a call continues that is about to be decided on; often none."""
        said = declared(opening.headers, opening.tenant, opening.body_session)
        tenant = self._memory.tenant(opening.tenant)
        return wanted(opening.tenant, tenant, said, tenant.chains.read(opening.messages))

    def learn(self, found: Sequence[Told], tenant: str) -> None:
        """Remember what others have told of calls of ``tenant``."""
        for told in unknown(found, tenant):
            self._memory.told(turn_of(told))

    def told(self, span: SpanId) -> Told | None:
        """What others are to be told of a call that has ended; ``None``: it is not remembered."""
        turn = self._memory.turn(span)
        return None if turn is None or turn.state == "in_flight" else told_of(turn)

    def prompt(self, span: SpanId) -> tuple[Prefix, ...]:
        """The prompt of a call that was decided on just now; empty where prompts are not measured or it was not read.

        Its digests begin with the tenant, the model as it was asked for and the tools.
        """
        turn = self._memory.turn(span)
        return () if turn is None else turn.prompt

    def decide(self, opening: CallOpening, now: float) -> Identity:
        """The task of a call that arrives at ``now``. Never fails: what cannot be read is a new task."""
        said = declared(opening.headers, opening.tenant, opening.body_session)
        tenant = self._memory.tenant(opening.tenant)
        lengths = self._lengths
        beginning = None if lengths is None else lengths.beginning(opening.tenant, opening.model, opening.tools)
        history = tenant.chains.read(opening.messages, beginning)
        request = Request(
            messages=opening.messages,
            tools=opening.tools,
            history=history,
            session=said.session,
            resent=said.resent,
            now=now,
        )
        link = by_history(tenant, request) if history.known or history.same else None
        if link is None:
            seen = history.known or history.same
            agent = seen[-1].agent if seen else agent_of(request)
            link = by_content(tenant, request, agent)
            if link is None and said.session is not None:
                link = by_session(tenant, request)
        else:
            agent = link.turn.agent
        identity = self._identity(said, tenant, link)
        turn = Turn(
            span=opening.span,
            tenant=opening.tenant,
            task=identity.task,
            session=identity.session,
            opened=now,
            raw=history.raw,
            chain=history.chain,
            said=history.said,
            root=history.root,
            agent=agent,
            specific=history.specific,
        )
        if beginning is not None:
            turn.prompt, turn.size, turn.seed, turn.model = history.prompt, history.size, beginning.seed, opening.model
            if history.lent is not None:
                self._memory.lent(history.lent)
        if link is not None:
            turn.evidence, turn.descends, turn.opener = link.evidence, link.descends, link.opener
            if link.turn.task == turn.task:
                turn.parent = link.parent
            if link.by_history:
                link.turn.continued = True
            self._memory.used(link.turn, tenant, link.tools)
        self._memory.add(turn, tenant)
        return identity

    def observe(self, event: CallAnswered | CallFailed, now: float) -> None:
        """Learn how a call ended. A call that was forgotten meanwhile, or ended before, is passed over."""
        turn = self._memory.turn(event.span)
        if turn is None or turn.state != "in_flight":
            return
        turn.closed = min(event.ended_at, now)
        if isinstance(event, CallFailed):
            turn.state = "failed"
            return
        turn.state = "answered"
        if self._lengths is not None and event.input_tokens is not None and turn.size:
            self._lengths.counted(turn.model, turn.size, event.input_tokens)
            turn.prompt = corrected(turn.prompt, event.input_tokens)
        said, issued = visible(event.content), event.tool_calls
        turn.answer = utterance(said, issued)
        if issued:
            turn.calls = canonical(issued)
            turn.tools = tuple([self._tool(call) for call in issued])
        self._memory.answered(turn, said, issued)

    def _tool(self, call: IssuedCall) -> OpenTool:
        prompts = Prompts.digests(call.arguments) if self._shared else ()
        return OpenTool(call_id=call.id, name=call.name, span=SpanId(self._new_id()[:16]), prompts=prompts)

    def _identity(self, said: Declared, tenant: Tenant, link: Link | None) -> Identity:
        if link is None:
            task = TaskId(self._new_id()) if said.task is None else said.task
            known = None if said.task is None else tenant.by_task.get(task)
            session = said.session or (SessionId(task) if known is None else known.session)
            evidence: Evidence = "new" if said.task is None else "explicit"
            return Identity(
                task=task,
                session=session,
                evidence=evidence,
                confidence=1.0,
                parent=said.parent,
                opens_task=known is None,
            )
        if said.task is not None:
            task, opens, evidence, confidence = said.task, said.task not in tenant.by_task, "explicit", 1.0
        else:
            task = TaskId(self._new_id()) if link.opens_task else link.turn.task
            opens, evidence, confidence = link.opens_task, link.evidence, link.confidence
        return Identity(
            task=task,
            session=said.session or link.turn.session,
            evidence=evidence,
            confidence=confidence,
            rivals=0 if evidence == "explicit" else link.rivals,
            parent=said.parent or link.parent,
            opens_task=opens,
            human_wait=link.human_wait,
            tools=tuple([_pending(tool, link.turn) for tool in link.tools]) if link.tools else (),
        )


def _pending(tool: OpenTool, turn: Turn) -> PendingTool:
    return PendingTool(
        call_id=tool.call_id,
        name=tool.name,
        span_id=tool.span,
        issued_by=turn.span,
        issued_at=turn.closed or turn.opened,
        failed=tool.failed,
    )


__all__ = ["IDENTITY_HEADERS", "CallAnswered", "CallFailed", "CallOpening", "Identifier"]
