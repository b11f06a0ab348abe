"""Claude Code sessions: the JSON lines that the program keeps, of sub-agents too, and the web version's export."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, cast

from headway.core.task import SessionId
from headway.trace.sources.claude.rows import Row, rows, spawned
from headway.trace.sources.claude.subagents import join
from headway.trace.sources.claude.thread import Thread
from headway.trace.sources.digests import task_id
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.session import separated
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_ROLES: Final = frozenset({"user", "assistant"})
_KEPT_WITH: Final = {"summary": "leafUuid", "file-history-snapshot": "messageId", "queue-operation": "operation"}
"""Rows that may stand at the head of a session, and what tells each from another program's."""
_TOLD: Final = frozenset({"system", "permission-mode"})
"""Rows without a message that a conversation must know of."""
_OF_IFLOW: Final = re.compile(r"session-[0-9a-f]{8}-")
"""iFlow writes rows of the same shape, which mean something else."""
_AGENT_FILE: Final = re.compile(r"agent-([^/\\]+?)\.meta\.json$")


class ClaudeCode:
    """Reads sessions, sub-agents' files and web exports; rows that several files repeat count once."""

    name = "claude-code"
    title = "Claude Code session"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """Whether a row of a session, or a web export's list of them, is among the first records."""
        return any(_is_row(found) for found in separated.objects(sample))

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each message of a user that was answered, with all that sub-agents did for it."""
        sessions = _Sessions(skips)
        for document in documents:
            before = sessions.rows
            for record in separated.records(document, skips):
                for row in rows(record, skips):
                    sessions.feed(row, document.name, record.where)
            if sessions.rows == before:
                skips.add("a session's file without any message", document.name)
        yield from sessions.pieces()


def _is_row(found: dict[str, object]) -> bool:
    if isinstance(found.get("loglines"), list):
        return True
    kind, message = found.get("type"), found.get("message")
    if isinstance(kind, str) and kind in _KEPT_WITH:
        return _KEPT_WITH[kind] in found
    if "agentType" in found and "toolUseId" in found:
        return True
    if not isinstance(message, dict) or _OF_IFLOW.match(str(found.get("sessionId"))):
        return False
    said = cast("dict[str, object]", message)
    if isinstance(kind, str) and kind in _ROLES:
        return "content" in said and ("timestamp" in found or "session_id" in found)
    return kind is None and said.get("role") == "assistant" and "usage" in said and "sessionId" in found


class _Sessions:
    """All conversations of an import, each row in its own."""

    def __init__(self, skips: Skips) -> None:
        self.rows = 0
        """Rows that said anything, or that say who started a sub-agent."""
        self._skips = skips
        self._threads: dict[str, Thread] = {}
        self._where: dict[str, str] = {}
        """Where each thread begins."""
        self._chains: dict[str, Thread] = {}
        """Sub-agents without an id, by the ids of their rows."""
        self._seen: set[tuple[str, float]] = set()
        self._answers: dict[tuple[str, str], Thread] = {}
        self._started: dict[str, str] = {}
        """By the agent, the tool call that started it, where other rows than the call's own tell."""

    def feed(self, row: Row, document: str, where: str) -> None:
        """Take a row of a document."""
        if row.message is None and row.type not in _TOLD:
            self._aside(row, document)
        elif self._repeats(row):
            self._skips.add("a row that another one repeats: counted once", where)
        else:
            self.rows += row.message is not None
            thread = self._thread(row, document)
            self._where.setdefault(thread.key, where)
            if self._is_elsewhere(row, thread):
                self._skips.add("an answer that another session holds too: counted once", where)
            elif why := thread.feed(row):
                self._skips.add(why, where)

    def pieces(self) -> Iterator[Piece]:
        """The tasks."""
        users: list[Thread] = []
        agents: list[Thread] = []
        for thread in self._threads.values():
            if thread.agent is not None:
                thread.caller = thread.caller or self._started.get(thread.agent)
            (users if thread.agent is None else agents).append(thread)
            for _ in range(thread.finish()):
                self._skips.add("a request that was never answered", self._where[thread.key])
        alone = set(join(users, agents))
        for thread in (*users, *agents):
            for turn in thread.turns:
                if thread.agent is None or turn in alone:
                    yield turn.draft.piece(
                        task_id("claude-code", turn.key),
                        SessionId(thread.session),
                        "messages" if turn.timed else "none",
                    )

    def _aside(self, row: Row, document: str) -> None:
        """Rows beside the conversation: some say which tool started which agent."""
        if row.started_by is not None:
            self.rows += 1
            if (agent := _AGENT_FILE.search(document)) is not None:
                self._started[agent[1]] = row.started_by
        elif row.type == "progress" and row.parent_tool_use is not None:
            agent = spawned(row.data)
            if agent is not None and agent.agent_id is not None:
                self._started[agent.agent_id] = row.parent_tool_use

    def _repeats(self, row: Row) -> bool:
        if row.uuid is None or row.at is None:
            return False
        key = (row.uuid, row.at)
        if key in self._seen:
            return True
        self._seen.add(key)
        return False

    def _is_elsewhere(self, row: Row, thread: Thread) -> bool:
        """A resumed session's file may hold the answers of the one before under new row ids."""
        message = row.message
        if message is None or message.id is None or row.request_id is None:
            return False
        return self._answers.setdefault((message.id, row.request_id), thread) is not thread

    def _thread(self, row: Row, document: str) -> Thread:
        session = row.session or document
        agent = row.agent_id or row.streamed_parent
        if agent is not None:
            thread = self._get(f"{session}/{agent}", session, agent)
            thread.caller = row.streamed_parent
        elif row.is_sidechain:
            thread = self._chains.get(row.parent_uuid or "")
            if thread is None:
                agent = row.uuid or f"{len(self._threads)}"
                thread = self._get(f"{session}/{agent}", session, agent)
            if row.uuid is not None:
                self._chains[row.uuid] = thread
        else:
            thread = self._get(session, session, None)
        return thread

    def _get(self, key: str, session: str, agent: str | None) -> Thread:
        thread = self._threads.get(key)
        if thread is None:
            thread = self._threads[key] = Thread(key, session, agent)
        return thread
