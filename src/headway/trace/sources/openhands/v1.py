"""A conversation of OpenHands' software agent SDK, event by event, into tasks."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct, structs

from headway.core.prompt import Part
from headway.core.span import ModelCall, ToolCallRef, ToolUse
from headway.core.task import SessionId, SpanId
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest, span_id, task_id
from headway.trace.sources.fields.decoding import WRONG
from headway.trace.sources.fields.failures import failure
from headway.trace.sources.fields.instants import instant
from headway.trace.sources.fields.messages import Message, Parts, messages
from headway.trace.sources.openhands.meter import Account, Meter, Metered
from headway.trace.sources.openhands.rows import PASSED_OVER, STATE, Event, Stats
from headway.trace.sources.session.draft import Draft, Entry, first_words
from headway.trace.sources.source import Piece
from headway.wire.salvage import salvage

_AGENT: Final = "OpenHands"
_CONDENSER: Final = "condenser"
"""What a model is used for that shortens the history: no event tells of its answers."""
_MANY: Final = (
    "Token counts grew by more than one call at once: calls are missing, and their tokens are counted with others."
)
_STATS: Final = msgspec.json.Decoder(Stats)


class _Action(Struct, frozen=True):
    name: str
    since: float
    by: SpanId | None
    arguments: object


class Conversation:
    """One conversation while its events are heard.

    Args:
        key: what ids are made of.
        accounts: calls by the ids of their responses, where the state was kept.
    """

    def __init__(self, key: str, session: SessionId | None, accounts: Mapping[str, Account]) -> None:
        self._key = key
        self._session = session
        self._accounts = accounts
        self._parts = Parts()
        self._meter = Meter()
        self._drafts: list[Draft] = []
        self._heard: list[Part] | None = None
        """The prompt so far; unknown until the system's part of it was heard."""
        self._metered: list[tuple[Metered, float]] = []
        self._answers: dict[str, Entry] = {}
        self._actions: dict[str, _Action] = {}
        self._asked: float | None = None
        """When the model was last given something to answer."""
        self._now = 0.0
        self.unused: list[str] = []
        """Why events were not used."""

    def hear(self, event: Event) -> bool:
        """The next event; whether it has a time."""
        when = instant(event.timestamp)
        if when is None:
            return False
        self._now = max(when, self._now)
        if event.kind == "SystemPromptEvent":
            self._heard = []
            self._listen("system", event.system_prompt)
        elif event.kind == "MessageEvent" and event.source == "user":
            self._user(event)
        elif event.llm_response_id is not None:
            self._answer(event, event.llm_response_id)
        elif event.tool_call_id is not None:
            self._result(event)
        elif event.kind == "ConversationErrorEvent":
            self._draft().error = failure(event.code)
        elif event.kind == "Condensation":
            self._heard = None
        elif event.kind == "ConversationStateUpdateEvent":
            self._state(event)
        elif event.kind not in PASSED_OVER:
            self.unused.append(f"an event of unknown kind: {event.kind[:40]}")
        return True

    def pieces(self) -> Iterator[Piece]:
        """Its tasks."""
        self._settle()
        for draft in self._drafts:
            if draft.entries:
                yield draft.piece(task_id("openhands", draft.root), self._session, "messages")

    def _draft(self) -> Draft:
        if not self._drafts:
            start = self._now if self._asked is None else self._asked
            self._drafts.append(Draft(span_id(self._key, "task", "0"), _AGENT, start))
        return self._drafts[-1]

    def _user(self, event: Event) -> None:
        self._settle()
        text = "\n".join(one.text for one in messages(event.llm_message and event.llm_message.content, "user"))
        last = self._drafts[-1] if self._drafts else None
        if last is None or last.entries:
            draft = Draft(span_id(self._key, "task", event.id), _AGENT, self._now)
            if last is not None:
                draft.waited_before(span_id(self._key, "wait", event.id), last.end)
            self._drafts.append(draft)
        self._draft().title = self._draft().title or first_words(text)
        self._asked = self._now
        self._listen("user", event.llm_message and event.llm_message.content)

    def _state(self, event: Event) -> None:
        try:
            if event.key == "stats":
                stats, left_out = salvage(_STATS, event.value)
            elif event.key == "full_state":
                state, left_out = salvage(STATE, event.value)
                stats = state.stats
            else:
                self._asked = self._now if self._asked is None else self._asked
                return
        except msgspec.DecodeError:
            self.unused.append("sums of tokens in no known shape")
            return
        self.unused += [WRONG.format(field) for field in left_out]
        for metered in self._meter.read(stats):
            if not metered.alone:
                self._draft().remarks.append(_MANY)
            if metered.use == _CONDENSER:
                self._call(f"condenser-{self._now}", metered, self._now)
                continue
            self._settle()
            self._metered.append((metered, self._now))

    def _settle(self) -> Entry | None:
        """Calls that were metered, and of which no event tells; the last of them."""
        entry = None
        for metered, when in self._metered:
            entry = self._call(f"metered-{when}", metered, when)
        self._metered = []
        return entry

    def _answer(self, event: Event, response: str) -> None:
        """An action or a message out of an answer, which may hold several."""
        entry = self._answers.get(response)
        if entry is None:
            metered, when = self._metered.pop() if self._metered else (None, self._now)
            self._settle()
            entry = self._answers[response] = self._call(response, metered, when)
        name = event.tool_name or (event.tool_call.name if event.tool_call else None)
        text = "\n".join(
            one.text
            for one in messages(event.thought or (event.llm_message and event.llm_message.content), "assistant")
        )
        given = event.tool_call.arguments if event.tool_call else None
        if event.tool_call_id and name:
            self._actions[event.tool_call_id] = _Action(name, self._now, entry.id, given)
            text = f"{text}\n{name}({given})" if text else f"{name}({given})"
        self._say(entry, text, ToolCallRef(event.tool_call_id, name) if event.tool_call_id and name else None)
        self._asked = self._now

    def _say(self, entry: Entry, text: str, call: ToolCallRef | None) -> None:
        if isinstance(entry.work, ModelCall):
            said = self._parts.of(Message("assistant", text)) if text else None
            calls = entry.work.tool_calls if call is None else (*entry.work.tool_calls, call)
            entry.work = structs.replace(entry.work, answer=entry.work.answer or said, tool_calls=calls)
            if said is not None and self._heard is not None:
                self._heard.append(said)

    def _call(self, response: str, metered: Metered | None, end: float) -> Entry:
        draft = self._draft()
        account = self._accounts.get(response)
        start = self._asked if self._asked is not None else end
        if account is not None and account.seconds is not None:
            start = max(start, end - account.seconds)
        told = account or metered
        work = ModelCall(
            model=told.model if told is not None else "unknown",
            usage=told.usage if told is not None else Usage(),
            cost=told.cost if told is not None else None,
            prompt=None if self._heard is None else tuple(self._heard),
        )
        self._asked = end
        return draft.call(span_id(self._key, "call", response), min(start, end), end, work)

    def _result(self, event: Event) -> None:
        call = event.tool_call_id or ""
        action = self._actions.pop(call, None)
        if action is None:
            action = self._missed(call, event.tool_name or "unknown")
        outcome = event.observation
        rejected = event.kind == "UserRejectObservation"
        code = outcome.exit_code if outcome is not None else None
        broken = outcome is not None and (outcome.is_error or code not in {None, 0, -1})
        failed = rejected or broken or event.error is not None
        word = "rejected" if rejected else failure(event.error) if event.error else "exit_code" if code else "error"
        work = ToolUse(
            name=event.tool_name or action.name,
            call_id=call,
            issued_by=action.by,
            inferred=True,
            failed=failed,
            arguments=None if action.arguments is None else arguments_digest(action.arguments),
            result=self._listen("tool", event.error or (outcome and outcome.content)),
        )
        entry = self._draft().tool(
            span_id(self._key, "tool", event.id), action.since, self._now, work, word if failed else None
        )
        if rejected and event.rejection_source != "hook":
            self._draft().asked_a_person(span_id(self._key, "asked", event.id), entry)
        self._asked = self._now

    def _missed(self, call: str, name: str) -> _Action:
        """A tool call that no event tells of: the last answer to have been metered asked for it."""
        entry = self._settle()
        if entry is not None:
            self._say(entry, "", ToolCallRef(call, name))
        since = self._now if self._asked is None else self._asked
        return _Action(name, since, None if entry is None else entry.id, None)

    def _listen(self, role: str, content: object) -> Part | None:
        part = self._part(role, content)
        if part is not None and self._heard is not None:
            self._heard.append(part)
        return part

    def _part(self, role: str, content: object) -> Part | None:
        text = "\n".join(one.text for one in messages(content, role) if one.text)
        return self._parts.of(Message(role, text)) if text else None
