"""One line of conversation in a Claude Code session, the user's own or a sub-agent's: from its rows to its turns."""

from typing import Final

from msgspec import Struct

from headway.core.prompt import Part
from headway.core.span import ModelCall, ToolUse
from headway.trace.sources.claude.answer import Answer
from headway.trace.sources.claude.rows import (
    Block,
    Message,
    Row,
    compacted_by_itself,
    result_text,
    spawned,
    text_of,
)
from headway.trace.sources.claude.subagents import Spawn, Turn, spawn_of
from headway.trace.sources.digests import arguments_digest, digest, part, span_id
from headway.trace.sources.session.draft import Draft, Entry, first_words

LONGEST: Final = 2000
"""Messages of the longest history that is told call by call; no model's window holds as many."""
_SPAWNING: Final = frozenset({"Task", "Agent"})
_ASKING: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Tools that do nothing but wait for a person."""
_INTERRUPTED: Final = "[Request interrupted by user"
_REJECTED: Final = "The user doesn't want to"
_NOT_ASKED: Final = ("<local-command-", "<bash-", "<task-notification>", "<system-reminder>")
"""How rows begin that are the user's by their role only: what local commands print, what the program reports."""
_COMMAND: Final = "<command-"
_SYNTHETIC: Final = "<synthetic>"

_CACHE: Final = "Cache reads and writes were added to the input tokens, which this source reports without them."
_TTFT: Final = (
    "The first visible text is not recorded, so TTFT is unknown; the time from the input to the first block of an"
    " answer is no more than an upper bound."
)
_APPROVAL: Final = (
    "If a person was asked to approve a tool, that wait is in the tool's time: the record does not tell them apart."
)
_PARTIAL: Final = "Some answers were written down before they had ended: their output tokens are unknown."
_COMPACTED: Final = (
    "The history was compacted. The call that did so is not in the record: it is taken to have run since the message"
    " before, and its tokens are unknown."
)
_UNASKED: Final = "What the first call was asked is not in the record, so only the time between its blocks is known."
_LONG: Final = f"Prompts of more than {LONGEST:,} messages were left out."


class _Tool(Struct):
    turn: Turn
    entry: Entry
    work: ToolUse
    spawn: Spawn | None


class Thread:
    """Takes rows in the order of the file; `finish` when there are no more.

    Args:
        key: names it apart from all others, and in every import alike.
        session: the session that it belongs to.
        agent: the sub-agent's id; none for the user's own conversation.
    """

    def __init__(self, key: str, session: str, agent: str | None = None) -> None:
        self.key = key
        self.session = session
        self.agent = agent
        self.kind: str | None = None
        """What sort of agent it is, where its rows say so."""
        self.caller: str | None = None
        """Id of the tool call that started it, where that is known."""
        self.turns: list[Turn] = []
        self.spawns: dict[str, Spawn] = {}
        """By the id of the tool's call."""
        self._turn: Turn | None = None
        self._answer: Answer | None = None
        self._answers: set[str] = set()
        self._open: dict[str, _Tool] = {}
        self._tools: set[str] = set()
        self._history: list[Part] = []
        self._heard: list[Part] = []
        """What came while the answer before it was not yet whole."""
        self._model = "unknown"
        self._asked: float | None = None
        """When the last message came that a call may answer."""
        self._answered = 0.0
        """When the last answer ended."""
        self._latest = 0.0
        self._failures = 0
        self._rows = 0
        self._approves = True

    def feed(self, row: Row) -> str | None:
        """Take a row; says why where it cannot be used."""
        self._rows += 1
        at, message, why = row.at, row.message, None
        if row.permission_mode is not None:
            self._approves = row.permission_mode != "bypassPermissions"
        if row.type == "system":
            self._system(row, at)
        elif message is not None:
            role = row.type or message.role
            if role == "assistant":
                why = self._say(row, message, at)
            elif role == "user":
                why = self._hear(row, message, at)
            self._latest = self._latest if at is None else at
        return why

    def finish(self) -> int:
        """The turns are whole; says how many were never answered, which are left out."""
        self._close()
        asked = sum(not turn.local for turn in self.turns)
        self.turns = [turn for turn in self.turns if turn.draft.entries]
        return asked - sum(not turn.local for turn in self.turns)

    def _hear(self, row: Row, message: Message, at: float | None) -> str | None:
        content, why = message.content, None
        results = [block for block in content if block.type == "tool_result"] if isinstance(content, list) else []
        for block in results:
            why = self._result(block, row, at) or why
        text = text_of(content)
        if text.startswith(_INTERRUPTED):
            self._interrupt(at)
        elif row.is_compact_summary:
            self._close()
            self._history.clear()
        elif not (results or row.is_meta or text.startswith(_NOT_ASKED)):
            self._open_turn(row, text, at)
        if text:
            self._heard.append(part("user", text))
        if at is not None:
            self._asked = at
        return why

    def _open_turn(self, row: Row, text: str, at: float | None) -> None:
        self._close()
        before = next((turn for turn in reversed(self.turns) if turn.draft.entries), None)
        key = f"{self.key}/{row.uuid or len(self.turns)}"
        draft = Draft(span_id(key, "turn"), self.kind or "claude-code", self._latest if at is None else at)
        draft.title = first_words(text)
        if before is not None and before.timed and at is not None and self.agent is None:
            draft.waited_before(span_id(key, "wait"), before.draft.end)
        self._turn = Turn(draft, key, digest(text), local=text.startswith(_COMMAND))
        self.turns.append(self._turn)

    def _interrupt(self, at: float | None) -> None:
        if self._turn is not None:
            self._turn.draft.error = "interrupted"
            for tool in self._open.values():
                tool.entry.end, tool.entry.error = at, "interrupted"
        self._open.clear()

    def _system(self, row: Row, at: float | None) -> None:
        if row.subtype == "api_error":
            self._failures += 1
        elif row.subtype == "compact_boundary":
            self._close()
            if self._turn is not None and at is not None and compacted_by_itself(row):
                draft = self._turn.draft
                draft.call(
                    span_id(self._turn.key, "compaction", str(self._rows)),
                    self._latest,
                    at,
                    ModelCall(model=self._model),
                )
                draft.remarks.append(_COMPACTED)

    def _say(self, row: Row, message: Message, at: float | None) -> str | None:
        if message.model == _SYNTHETIC and not row.is_api_error_message:
            return None  # the program's own words
        key = message.id or row.request_id or row.uuid or str(self._rows)
        answer = self._answer
        if answer is None or answer.key != key:
            self._close()
            if key in self._answers:
                return "a part of an answer that came after the next answer"
            answer = self._answer = self._ask(key, row, at)
        answer.take(row, message, at)
        self._model = answer.model
        for block in message.content if isinstance(message.content, list) else ():
            if block.type == "tool_use":
                self._use(answer, block, at)
            else:
                answer.say(block, at)
        return None

    def _ask(self, key: str, row: Row, at: float | None) -> Answer:
        when = self._latest if at is None else at
        self.kind = self.kind or row.agent
        turn = self._turn
        if turn is None:
            unasked = f"{self.key}/{len(self.turns)}"
            turn = self._turn = Turn(Draft(span_id(unasked, "turn"), self.kind or "claude-code", when), unasked, None)
            self.turns.append(turn)
        start = when
        if self._asked is not None and at is not None:
            turn.timed = True
            start = min(max(self._asked, self._answered), when)
        elif not turn.draft.entries:
            turn.draft.remarks.append(_UNASKED)
        history = self._history
        if len(history) > LONGEST:
            turn.draft.remarks.append(_LONG)
        prompt = tuple(history) if 0 < len(history) <= LONGEST else None
        attempts = self._failures + 1 if self._failures else None
        self._failures = 0
        self._answers.add(key)
        entry = turn.draft.call(span_id(turn.key, key), start, at, ModelCall(model=self._model))
        return Answer(entry, key, self._model, prompt, attempts)

    def _close(self) -> None:
        """No more rows of the answer will come."""
        answer, turn = self._answer, self._turn
        if answer is not None and turn is not None:
            said, remarks = answer.finish(), turn.draft.remarks
            if turn.timed:
                remarks.append(_TTFT)
            if answer.excludes_cache:
                remarks.append(_CACHE)
            if answer.partial:
                remarks.append(_PARTIAL)
            self._answered = answer.entry.end or 0.0
            if said is not None:
                self._history.append(said)
        self._history += self._heard
        self._heard.clear()
        self._answer = None

    def _use(self, answer: Answer, block: Block, at: float | None) -> None:
        turn = self._turn
        call_id = block.id or f"{answer.key}/{len(answer.tools)}"
        if turn is None or call_id in self._tools:
            return  # rows of some versions repeat the blocks of those before
        self._tools.add(call_id)
        name, arguments = block.name or "unknown", bytes(block.input)
        work = ToolUse(
            name=name,
            call_id=block.id,
            issued_by=answer.entry.id,
            inferred=True,
            arguments=arguments_digest(arguments.decode()) if arguments else None,
        )
        answer.use(name, block.id, arguments)
        entry = turn.draft.tool(
            span_id(turn.key, "tool", call_id), answer.entry.start if at is None else at, None, work
        )
        spawn = spawn_of(turn, entry, arguments) if name in _SPAWNING else None
        if spawn is not None:
            self.spawns[call_id] = spawn
        elif self._approves:
            turn.draft.remarks.append(_APPROVAL)
        self._open[call_id] = _Tool(turn, entry, work, spawn)

    def _result(self, block: Block, row: Row, at: float | None) -> str | None:
        text = result_text(block.content)
        result = part("tool", text)
        self._heard.append(result)
        call_id = block.tool_use_id or row.source_tool_use
        if call_id is None:  # it answers the oldest that was not named either
            call_id = next((key for key, tool in self._open.items() if tool.work.call_id is None), "")
        tool = self._open.pop(call_id, None)
        if tool is None:
            return "a tool's result whose call is not in the record"
        entry, work = tool.entry, tool.work
        failed = block.is_error is True
        rejected = failed and text.startswith(_REJECTED)
        entry.end = at
        entry.error = "rejected" if rejected else "tool_error" if failed else None
        entry.work = ToolUse(
            name=work.name,
            call_id=work.call_id,
            issued_by=work.issued_by,
            inferred=True,
            failed=failed,
            arguments=work.arguments,
            result=result,
        )
        if rejected or work.name in _ASKING:
            tool.turn.draft.asked_a_person(span_id(entry.id, "human"), entry)
        if tool.spawn is not None and (agent := spawned(row.tool_use_result)) is not None:
            tool.spawn.agent = agent.agent_id
            tool.spawn.background = agent.is_async is True or agent.status == "async_launched"
        return None
