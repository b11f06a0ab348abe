"""The evidence that ties a request to an earlier call, from the strongest to the weakest."""

from collections.abc import Sequence

from msgspec import Struct
from xxhash import xxh3_64_intdigest

from headway.core.task import Evidence, SessionId, SpanId, TaskId
from headway.policy.chain import History
from headway.policy.continuation import author
from headway.policy.memory import Tenant
from headway.policy.messages import Message, Utterance, calls, canonical, decode, results, text
from headway.policy.phrases import MIN_TEXT
from headway.policy.turn import OpenTool, Turn

RETRY_SECONDS = 300.0
"""A failed call that is sent again within this time is the same call, where it is known to be the same caller's."""
ADJACENT_SECONDS = 60.0
"""A rewritten history follows the one that it replaces within this time."""
QUIET_SECONDS = 600.0
"""A task that no call touched for this long is over, whatever quotes it."""

EXACT = 1.0
UNVERIFIED = 0.9
"""The history is known, but the answer to it is missing or altered."""
PERSON = 0.95
"""The session is exact; that a person opens a new task here is judged by `continuation`."""
MACHINE = 0.8
"""The session is exact; that the user message is a machine's is judged by `continuation`."""
SUB_AGENT = 0.9
COMPACTION = 0.8
HAND_OVER = 0.7
SAME_SESSION = 0.7


class Link(Struct, kw_only=True, gc=False):
    """What ties a request to ``turn``."""

    turn: Turn
    evidence: Evidence
    confidence: float
    rivals: int = 0
    """Other sessions that this fits as well."""
    opens_task: bool = False
    """The next task of the same session, not the turn's own."""
    human_wait: float | None = None
    parent: SpanId | None = None
    tools: tuple[OpenTool, ...] = ()
    """Whose results the request brings."""
    opener: str | None = None
    by_history: bool = False
    """The request's history is the turn's own, extended or repeated."""
    descends: bool = False
    """Nobody else is likely to have this history."""


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """A request as the evidence needs it."""

    messages: bytes
    tools: bytes | None
    history: History
    session: SessionId | None
    """As declared; evidence from another session does not count then."""
    resent: bool
    """As declared: this call was sent before, and failed."""
    now: float


def by_history(tenant: Tenant, request: Request) -> Link | None:
    """The call whose history this is, repeated or extended.

    A call that failed and is sent again comes first, where the caller says so or nobody else is likely to have its
    history: equal questions alone may be two callers'. Then an answered call that nobody has continued yet, so that
    two users who said the same each get their own; then repetitions; then forks of what was continued before.
    """
    history = request.history
    same, known = history.same, history.known
    if request.session is not None:
        same, known = _own(same, request.session), _own(known, request.session)
    failed = [turn for turn in same if turn.state == "failed" and not turn.continued] if same else ()
    if failed and _is_retry(request, failed[-1]):
        return _repeats(failed[-1])
    candidates, certainty = _candidates(history, known)
    fresh = [turn for turn in candidates if not turn.continued]
    if fresh:
        sessions = _sessions(fresh)
        link = _extends(request, fresh[-1], certainty / sessions)
        link.rivals = sessions - 1
        return link
    again = [turn for turn in same if turn.descends and turn.state != "failed"] if same else ()
    if again:
        return _repeats(again[-1])
    if _sessions(candidates) != 1:
        return None
    if certainty == UNVERIFIED and history.reply is not None:
        return _rewrites(tenant, request, candidates[-1])
    return _extends(request, candidates[-1], certainty)


def _is_retry(request: Request, failed: Turn) -> bool:
    same_caller = request.resent or request.session is not None or failed.descends
    return same_caller and request.now - (failed.closed or failed.opened) <= RETRY_SECONDS


def by_content(tenant: Tenant, request: Request, agent: int | None) -> Link | None:
    """The call that a new history comes from, by what it says: a sub-agent, a compaction, a hand-over."""
    history = request.history
    nobodys = bool(history.same) and all(turn.evidence == "new" for turn in history.same)
    if nobodys and not tenant.prompts:
        return None  # byte for byte what was nobody's continuation before: the same question, asked again
    messages = (decode(request.messages) or []) if history.known or history.same else history.news
    if tenant.prompts and not _answered(messages):
        first = next((text(message) for message in messages if message.role == "user"), "")
        found = tenant.prompts.find(first, history.root)
        if found is not None and _is_own(found[1], request):
            return Link(turn=found[1], evidence="sub_agent", confidence=SUB_AGENT, parent=found[0].span)
    if nobodys:
        return None
    return _carries(tenant, request, messages, agent)


def by_session(tenant: Tenant, request: Request) -> Link | None:
    """The latest call of the declared session, when nothing in the content says more."""
    turn = tenant.by_session.get(request.session) if request.session is not None else None
    if turn is None:
        return None
    gap = request.now - (turn.closed or request.now)
    said = next((text(m) for m in reversed(request.history.news) if m.role == "user"), "")
    running = turn.closed is None or any(not tool.delivered for tool in turn.tools)
    if running or author(said, gap, None).machine:
        return Link(turn=turn, evidence="session", confidence=SAME_SESSION, parent=turn.parent)
    return Link(turn=turn, evidence="session", confidence=SAME_SESSION, opens_task=True, human_wait=gap)


def agent_of(request: Request) -> int | None:
    """Which agent sends this: a digest of its system messages and its tools; ``None`` if it has neither."""
    if not request.history.system and request.tools is None:
        return None
    return hash((request.history.system, 0 if request.tools is None else xxh3_64_intdigest(request.tools)))


def _candidates(history: History, known: Sequence[Turn]) -> tuple[Sequence[Turn], float]:
    """Those of ``known`` that this history can be a continuation of, and how certain that is."""
    reply = history.reply
    if reply is not None:
        verified = [turn for turn in known if _agrees(reply, history.news[0], turn)]
        if verified:
            return verified, EXACT
    if not known or known[-1].specific < MIN_TEXT:
        return (), 0.0
    if reply is None:
        return [turn for turn in known if turn.state == "answered"] or known, UNVERIFIED
    return (known, UNVERIFIED) if _sessions(known) == 1 else ((), 0.0)


def _agrees(reply: Utterance, message: Message, turn: Turn) -> bool:
    """Whether a history's reply is what ``turn`` was answered; beside tool calls, a client may drop the text."""
    answer = turn.answer
    if answer is None:
        return False
    if answer.calls is not None:
        return reply.calls == answer.calls or (reply.calls is not None and canonical(calls(message)) == turn.calls)
    return reply.calls is None and reply.text is not None and reply.text == answer.text


def _repeats(turn: Turn) -> Link:
    return Link(
        turn=turn,
        evidence="extends",
        confidence=EXACT,
        parent=turn.parent,
        opener=turn.opener,
        by_history=True,
        descends=turn.descends,
    )


def _extends(request: Request, turn: Turn, confidence: float) -> Link:
    """Same task, if results are brought or a machine speaks on; else a person opens the session's next task."""
    link = Link(
        turn=turn,
        evidence="extends",
        confidence=confidence,
        parent=turn.parent,
        tools=_delivered(turn, request.history.news),
        opener=turn.opener,
        by_history=True,
        descends=True,
    )
    if link.tools:
        link.evidence = "tool_result"
        return link
    last = request.history.news[-1]
    if last.role != "user" or results(request.history.news):
        return link
    gap = request.now - turn.closed if turn.closed is not None else 0.0
    by = author(text(last), gap, turn.opener)
    link.opener = by.opener
    if by.machine or turn.parent is not None:  # no person talks to a sub-agent
        link.confidence = min(confidence, MACHINE)
        return link
    link.confidence = min(confidence, PERSON)
    link.opens_task, link.human_wait, link.parent = True, gap, None
    return link


def _rewrites(tenant: Tenant, request: Request, begins: Turn) -> Link:
    """A history that begins as the session did and then differs from all that we know: it was condensed."""
    latest = tenant.by_session.get(begins.session, begins)
    if _quiet(tenant, latest.task, request.now) > ADJACENT_SECONDS:
        return _extends(request, begins, UNVERIFIED)
    return Link(turn=latest, evidence="compaction", confidence=COMPACTION, parent=latest.parent)


def _delivered(turn: Turn, news: Sequence[Message]) -> tuple[OpenTool, ...]:
    """The turn's tool calls that ``news`` brings the results of, each once however often it is sent."""
    waiting = [tool for tool in turn.tools if not tool.delivered]
    if not waiting:
        return ()
    found: list[OpenTool] = []
    for result in results(news):
        for tool in waiting:
            if tool.call_id == result.call_id:
                waiting.remove(tool)
                tool.failed = result.failed
                found.append(tool)
                break
    return tuple(found)


def _carries(tenant: Tenant, request: Request, messages: Sequence[Message], agent: int | None) -> Link | None:
    """An earlier answer is part of this request."""
    carried = tenant.passages.find(messages)
    if carried is None or not _is_own(carried.turn, request):
        return None
    turn = carried.turn
    if request.history.chain == turn.root and not _answered(messages):
        return None  # asks what the turn was asked, in the same words: somebody else
    quiet = _quiet(tenant, turn.task, request.now)
    if quiet > QUIET_SECONDS:
        return Link(turn=turn, evidence="hand_over", confidence=HAND_OVER, opens_task=True, human_wait=quiet)
    if agent is not None and agent == turn.agent and quiet <= ADJACENT_SECONDS:
        return Link(turn=turn, evidence="compaction", confidence=COMPACTION, parent=turn.parent)
    return Link(turn=turn, evidence="hand_over", confidence=HAND_OVER, parent=turn.parent)


def _quiet(tenant: Tenant, task: TaskId, now: float) -> float:
    """Seconds since a call of ``task`` was last in flight."""
    latest = tenant.by_task.get(task)
    return now - latest.closed if latest is not None and latest.closed is not None else 0.0


def _answered(messages: Sequence[Message]) -> bool:
    return any(message.role == "assistant" for message in messages)


def _own(turns: Sequence[Turn], session: SessionId) -> list[Turn]:
    return [turn for turn in turns if turn.session == session]


def _sessions(turns: Sequence[Turn]) -> int:
    return len({turn.session for turn in turns}) if turns[1:] else len(turns)


def _is_own(turn: Turn, request: Request) -> bool:
    return request.session is None or turn.session == request.session
