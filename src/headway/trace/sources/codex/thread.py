"""One Codex rollout: from its lines to its turns, each from `task_started` to `task_complete` where it has these."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, structs

from headway.core.prompt import Part
from headway.core.span import ModelCall
from headway.core.task import SessionId, SpanId
from headway.core.usage import Usage
from headway.trace.sources.codex.call import Call
from headway.trace.sources.codex.lasted import lay, took_no_time
from headway.trace.sources.codex.rows import Counts, Info, Line, Payload, asks, history, spawned_by, text_of, word
from headway.trace.sources.codex.tools import INSIDE, MEASURED, RESULTS, USES, Tools
from headway.trace.sources.digests import digest, part, span_id, task_id
from headway.trace.sources.session.draft import Draft, first_words
from headway.trace.sources.source import Piece, Timing

LONGEST: Final = 2000
"""Messages of the longest history that is told call by call; no model's window holds as many."""
_CONTEXT: Final = ("<", "# AGENTS.md")
"""How messages begin that the program puts before the user's."""
# fmt: off
_SILENT: Final = frozenset({
    "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "agent_reasoning_section_break",
    "background_event", "collab_agent_interaction_end", "collab_agent_spawn_end", "collab_close_end",
    "collab_waiting_end", "compaction", "context_compacted", "context_compaction", "deprecation_notice",
    "dynamic_tool_call_request", "entered_review_mode", "exec_command_begin", "exited_review_mode",
    "ghost_snapshot", "guardian_assessment", "image_generation_end", "inter_agent_communication_metadata",
    "item_started", "mcp_tool_call_begin", "patch_apply_begin", "plan_update", "session_configured", "state",
    "sub_agent_activity", "thread_goal_updated", "thread_name_updated", "thread_rolled_back",
    "thread_settings_applied", "turn_diff", "undo_completed", "undo_started", "view_image_tool_call", "warning",
    "web_search_begin", "web_search_end", "world_state",
})
# fmt: on
"""Kinds of lines, events and items that say nothing of calls, tools or people."""

_VISIBLE: Final = (
    "First visible text is when a whole message was there: a user who watches it come sees it begin earlier. First"
    " tokens are not recorded, but for that of a turn in newer versions."
)
_APPROVAL: Final = (
    "If a person was asked to approve a tool, that wait is in the tool's time: the record does not tell them apart."
)
_COMPACTED: Final = (
    "The history was compacted. The call that did so is not in the record: it is taken to have run since the message"
    " before, and its tokens are unknown."
)
_UNASKED: Final = "When the calls were asked is not in the record, so nothing is said about their time."
_WHOLE: Final = "This version counts tokens by turns, not by calls: one call stands for all of a turn's."
_LONG: Final = f"Prompts of more than {LONGEST:,} messages were left out."


class Turn(Struct, eq=False):
    """What came of one message of the user's."""

    draft: Draft
    key: str
    ask: str | None = None
    """Digest of what was asked."""
    said: bool = False
    """Whether it is certain that the user wrote that."""
    framed: bool = False
    """Whether the record says where it begins and ends."""
    timed: bool = False
    first: Call | None = None
    whole: float | None = None
    """Seconds that it says it took, whatever the times of its lines; so the next, from its start."""
    first_token: float | None = None

    def piece(self, session: str, tools: Mapping[SpanId, float]) -> Piece:
        """The task; where its lines' times tell nothing, with the durations that it tells itself.

        Args:
            session: what it belongs to.
            tools: seconds that tools were measured to take, by their spans.
        """
        told = self.whole is not None or any(entry.id in tools for entry in self.draft.entries)
        timing: Timing = "messages" if self.timed else "none"
        if told and took_no_time(self.draft):
            timing = "durations"
            self.draft.remarks = [remark for remark in self.draft.remarks if remark != _UNASKED]
            lay(self.draft, self.whole, self.first_token, tools)
        piece = self.draft.piece(task_id("codex", self.key), SessionId(session), timing)
        return structs.replace(piece, extent=self.whole) if timing == "durations" else piece


class Thread:
    """Takes lines in order; `finish` when there are no more.

    Args:
        name: of the document, for where it names no session.
    """

    def __init__(self, name: str) -> None:
        self.session = name
        self.parent: tuple[str, str | None] | None = None
        """The session that started this one as a sub-agent, and the agent's name."""
        self.turns: list[Turn] = []
        self._named = False
        self._turn: Turn | None = None
        self._call: Call | None = None
        self._last: Call | None = None
        """The call before, whose tokens may yet come."""
        self.tools = Tools()
        self._history: list[Part] = []
        self._heard: list[Part] = []
        """What came since the last answer began."""
        self._answered = False
        """Whether that has a tool's result in it, which only a new call can answer."""
        self._model = "unknown"
        self._provider: str | None = None
        self._approves = True
        self._total: Counts | None = None
        self._asked: float | None = None
        """When the last came that a call may answer: a message, a result, the end of the call before."""
        self._latest = 0.0
        self._quiet: float | None = None
        """When the last turn ended."""
        self._failures = 0
        self._lines = 0

    def feed(self, line: Line, payload: Payload) -> str | None:
        """Take a line; says why where it cannot be used."""
        self._lines += 1
        at, kind, why = line.at, line.type, None
        if kind == "session_meta":
            self._meta(payload)
        elif kind == "turn_context":
            self._model = payload.model or self._model
            self._approves = asks(payload)
        elif kind == "compacted":
            self._compact(payload, at)
        elif kind == "event_msg":
            why = self._event(payload, at)
        elif kind == "response_item" or line.payload is None:
            why = self._item(payload, at)
        elif kind not in _SILENT:
            why = f"a line of unknown type: {kind}"
        if at is not None:
            self._latest = at
        return why

    def finish(self) -> int:
        """The turns are whole; says how many were never answered, which are left out."""
        self._end(None)
        self.tools.settle()
        asked = len(self.turns)
        self.turns = [turn for turn in self.turns if turn.draft.entries]
        return asked - len(self.turns)

    def _meta(self, payload: Payload) -> None:
        if not self._named and payload.id is not None:  # a fork repeats those of its parents after its own
            self._named = True
            self.session = payload.id
            self.parent = spawned_by(payload)
        self._provider = payload.model_provider or self._provider

    def _event(self, payload: Payload, at: float | None) -> str | None:
        kind = payload.type
        if kind == "token_count":
            self._count(payload.info, at)
        elif kind == "agent_message":
            call = self._answering(at)
            call.first_visible = at if call.first_visible is None else call.first_visible
        elif kind == "user_message":
            self._hear(text_of(payload.message), at, said=True)
        elif kind == "task_started":
            self._start(payload, at)
        elif kind in {"task_complete", "turn_aborted"}:
            self._complete(payload, at)
        elif kind == "turn.completed":
            self._whole(payload, at)
        elif kind in MEASURED or kind == "item_completed":
            self.tools.clock(self._working(at).draft, payload, self._latest if at is None else at)
        elif kind in {"error", "stream_error"}:
            self._fail(payload)
        elif kind not in _SILENT:
            return f"an event of unknown type: {kind}"
        return None

    def _item(self, payload: Payload, at: float | None) -> str | None:
        kind = payload.type or ("message" if payload.role else None)
        when = self._latest if at is None else at
        if kind == "message":
            self._say(payload, at)
        elif kind == "reasoning":
            self._answering(at)
        elif kind in USES:
            call = self._answering(at)
            self.tools.use(self._working(at).draft, call, payload, when)
            if self._approves:
                self._working(at).draft.remarks.append(_APPROVAL)
        elif kind in INSIDE:
            call = self._answering(at)
            self.tools.inside(
                self._working(at).draft, call, payload, max(call.entry.start, min(self._latest, when)), when
            )
        elif kind in RESULTS:
            result, why = self.tools.answer(payload, at)
            self._heard.append(result)
            self._answered = True
            self._asked = at if at is not None else self._asked
            return why
        elif kind is None and payload.id is not None:
            self._meta(payload)  # the head of the oldest format
        elif kind is not None and kind not in _SILENT:
            return f"an item of unknown type: {kind}"
        return None

    def _say(self, payload: Payload, at: float | None) -> None:
        text = text_of(payload.content if bytes(payload.content) else payload.message)
        if payload.role == "assistant":
            self._answering(at).said.append(text)
        elif payload.role == "user":
            self._heard.append(part("user", text))
            self._hear(text, at, said=False)
        else:
            self._heard.append(part("system", text))

    def _hear(self, text: str, at: float | None, *, said: bool) -> None:
        """A message in the user's role; ``said`` where it is certain that the user wrote it."""
        turn, asked = self._turn, digest(text)
        if turn is not None and turn.ask == asked and not turn.draft.entries:
            turn.said = turn.said or said  # the same message once more
            return
        if said or not text.startswith(_CONTEXT):
            if turn is None or (not turn.framed and turn.draft.entries and turn.ask != asked):
                turn = self._open(at, str(self._lines))
            if turn.ask is None or (said and not turn.said):
                turn.ask, turn.draft.title, turn.said = asked, first_words(text), said
        if at is not None and self._turn is not None:
            self._asked = at

    def _start(self, payload: Payload, at: float | None) -> None:
        before = self._turn
        turn = self._open(at, payload.turn_id or str(self._lines))
        turn.framed = True
        if before is not None and not before.framed and not before.draft.entries:  # its message came before its frame
            self.turns.remove(before)
            turn.ask, turn.draft.title, turn.said = before.ask, before.draft.title, before.said
        self._asked = at

    def _open(self, at: float | None, name: str) -> Turn:
        self._end(None)
        key = f"{self.session}/{name}"
        draft = Draft(span_id(key, "turn"), "codex", self._latest if at is None else at)
        if self._quiet is not None and at is not None and self.parent is None:
            draft.waited_before(span_id(key, "wait"), self._quiet)
        turn = self._turn = Turn(draft, key)
        self.turns.append(turn)
        return turn

    def _complete(self, payload: Payload, at: float | None) -> None:
        turn = self._turn
        if turn is None:
            return
        if payload.type == "turn_aborted":
            turn.draft.error = "interrupted"
            self.tools.interrupt(at)
        self._close()
        turn.whole = None if not payload.duration_ms else payload.duration_ms / 1000
        if payload.time_to_first_token_ms is not None and turn.first is not None:
            turn.first_token = payload.time_to_first_token_ms / 1000
            turn.first.began(turn.draft.start + turn.first_token)
            turn.first.settle()
        self._end(at)

    def _whole(self, payload: Payload, at: float | None) -> None:
        """A turn of version 0.50 or 0.51, of which only the sum of the session's tokens until then may be known."""
        if self._turn is None or not self._turn.draft.entries:
            turn = self._open(at, str(self._lines))
            turn.draft.remarks.append(_WHOLE)
            call = self._ask(turn, at)
            if payload.usage is not None:
                call.usage = payload.usage.since(self._total).usage()
                self._total = payload.usage
        self._end(at)

    def _end(self, at: float | None) -> None:
        self._close()
        turn = self._turn
        if turn is not None:
            if at is not None:
                turn.draft.until = max(at, turn.draft.until)
            if turn.draft.entries and turn.timed:
                self._quiet = turn.draft.end
            elif turn.draft.entries:
                turn.draft.remarks.append(_UNASKED)
        self._turn = self._asked = None

    def _working(self, at: float | None) -> Turn:
        return self._turn if self._turn is not None else self._open(at, str(self._lines))

    def _fail(self, payload: Payload) -> None:
        if payload.type == "stream_error":
            self._failures += 1
        elif self._turn is not None:
            self._turn.draft.error = word(payload)

    def _answering(self, at: float | None) -> Call:
        """The call that an item or event belongs to."""
        if self._call is None or self._answered:
            self._close()
            self._call = self._ask(self._working(at), at)
        self._call.reach(at)
        return self._call

    def _ask(self, turn: Turn, at: float | None) -> Call:
        """A new call."""
        when = self._latest if at is None else at
        if self._asked is not None and at is not None:
            turn.timed = True
        start = when if self._asked is None else min(self._asked, when)
        self._flush()
        known = self._history
        if len(known) > LONGEST:
            turn.draft.remarks.append(_LONG)
        prompt = tuple(known) if 0 < len(known) <= LONGEST else None
        number = str(len(turn.draft.entries))
        entry = turn.draft.call(span_id(turn.key, "call", number), start, at, ModelCall(model=self._model))
        call = Call(entry, self._model, self._provider, prompt, self._failures + 1 if self._failures else None)
        self._failures = 0
        turn.first = turn.first or call
        self._call = call
        return call

    def _close(self) -> None:
        """Nothing more of the call will come, but maybe its tokens."""
        call = self._call
        if call is not None:
            answer = call.settle()
            if answer is not None:
                self._history.append(answer)
            if call.first_visible is not None and self._turn is not None and self._turn.timed:
                self._turn.draft.remarks.append(_VISIBLE)
            end = call.entry.end
            if self._asked is not None and end is not None:
                self._asked = max(self._asked, end)
            self._last, self._call = call, None

    def _flush(self) -> None:
        self._history += self._heard
        self._heard.clear()
        self._answered = False

    def _count(self, info: Info | None, at: float | None) -> None:
        """The tokens of the call that has just ended, or once more those of the call before."""
        if info is None:
            return
        total, usage = info.total_token_usage, None
        if total is not None and not total.repeats(self._total):
            usage = (info.last_token_usage or total.since(self._total)).usage()
            self._total = total
        elif info.prompt is not None or info.completion is not None:
            usage = Usage(input_tokens=info.prompt, output_tokens=info.completion)
        if usage is None:
            return
        call = self._call
        if call is None and self._last is not None and self._last.usage is None:
            self._last.usage = usage
            self._last.settle()
            return
        call = self._answering(at) if call is None else call
        call.usage, call.model = usage, info.model or call.model
        if not self._answered:
            call.reach(at)
        self._close()

    def _compact(self, payload: Payload, at: float | None) -> None:
        self._close()
        turn = self._turn
        if turn is not None and at is not None and self._asked is not None:
            draft = turn.draft
            draft.call(span_id(turn.key, "compaction", str(self._lines)), self._asked, at, ModelCall(model=self._model))
            draft.remarks.append(_COMPACTED)
            self._asked = at
        self._flush()
        self._history = [part("system" if role == "developer" else role, text) for role, text in history(payload)]
