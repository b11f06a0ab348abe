"""Which tool of a Claude Code session started which sub-agent: by ids where there are any, else by prompt or time."""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from headway.trace.sources.claude.rows import NEVER
from headway.trace.sources.digests import digest
from headway.trace.sources.session.draft import Draft, Entry

_BY_TIME: Final = "A sub-agent names no caller: it was given to the one tool that was starting an agent at that moment."
_ALONE: Final = "This is a sub-agent's work; the session that it worked for is not among the files."
_MISSING: Final = (
    "What a sub-agent did is not among the files, so its calls and tokens are missing here; their time is that of the"
    " tool that started it."
)


class Turn(Struct, eq=False):
    """What came of one message of the user's, or of a sub-agent's caller."""

    draft: Draft
    key: str
    ask: str | None
    """Digest of what was asked; unknown where the record begins later."""
    timed: bool = False
    local: bool = False
    """A command to the program itself, which need not ask a model anything."""


class Spawn(Struct, eq=False):
    """A tool that starts a sub-agent."""

    turn: Turn
    entry: Entry
    kind: str | None
    """What sort of agent was asked for."""
    ask: str | None
    """Digest of what it was asked."""
    agent: str | None = None
    """Its id, once known."""
    background: bool = False
    """The tool ended as soon as the agent had started."""


class Conversation(Protocol):
    """A thread whose turns are whole."""

    session: str
    agent: str | None
    caller: str | None
    turns: list[Turn]
    spawns: dict[str, Spawn]


class _Input(Struct):
    prompt: str | None = None
    subagent_type: str | None = None


_INPUT: Final = msgspec.json.Decoder(_Input)


def spawn_of(turn: Turn, entry: Entry, arguments: bytes) -> Spawn:
    """What a tool that starts agents was called with."""
    try:
        asked = _INPUT.decode(arguments)
    except NEVER:
        asked = _Input()
    return Spawn(turn, entry, asked.subagent_type, None if asked.prompt is None else digest(asked.prompt))


def join(users: Sequence[Conversation], agents: Sequence[Conversation]) -> list[Turn]:
    """Put what sub-agents did under the tools that started them; returns the turns that no tool is known of.

    Args:
        users: the conversations that users had.
        agents: those of the sub-agents.
    """
    free = _Spawns(users, agents)
    callers: dict[Turn, Spawn] = {}
    alone: list[Turn] = []
    for thread in agents:
        for number, turn in enumerate(thread.turns):
            spawn = free.take(thread, turn, number)
            if spawn is None or _above(spawn.turn, turn, callers):
                turn.draft.remarks.append(_ALONE)
                alone.append(turn)
            else:
                callers[turn] = spawn
    for turn in sorted(callers, key=lambda turn: -_depth(turn, callers)):  # what is adopted must itself be whole
        spawn = callers[turn]
        turn.draft.agent = spawn.kind or turn.draft.agent
        spawn.turn.draft.adopt(turn.draft, None if spawn.background else spawn.entry.id)
    for spawn in free.left():
        spawn.turn.draft.remarks.append(_MISSING)
    return alone


class _Spawns:
    """Tools that start sub-agents, each good for one turn of one agent."""

    def __init__(self, users: Iterable[Conversation], agents: Iterable[Conversation]) -> None:
        self._all: list[Spawn] = []
        self._by_call: dict[str, Spawn] = {}
        self._by_agent: dict[str | None, list[Spawn]] = {}
        self._by_ask: dict[tuple[str, str | None], list[Spawn]] = {}
        self._by_session: dict[str, list[Spawn]] = {}
        for thread in (*users, *agents):
            for call, spawn in thread.spawns.items():
                self._all.append(spawn)
                self._by_call[call] = spawn
                self._by_agent.setdefault(spawn.agent, []).append(spawn)
                self._by_session.setdefault(thread.session, []).append(spawn)
                if spawn.agent is None and spawn.ask is not None:
                    self._by_ask.setdefault((thread.session, spawn.ask), []).append(spawn)
        self._sessions = {thread.session for thread in users}
        self._taken: set[Spawn] = set()

    def take(self, thread: Conversation, turn: Turn, number: int) -> Spawn | None:
        """The tool that a turn answers, by the best evidence that there is."""
        named: list[Spawn] = []
        if thread.caller in self._by_call and number == 0:
            named.append(self._by_call[thread.caller])
        if thread.agent is not None:
            named += self._by_agent.get(thread.agent, ())
        named += self._by_ask.get((thread.session, turn.ask), ())
        found = next((spawn for spawn in named if spawn not in self._taken), None)
        if found is None:
            unnamed = self._by_agent.get(None, ())
            near = self._by_session.get(thread.session, ()) if thread.session in self._sessions else unnamed
            running = [spawn for spawn in near if spawn.agent is None and self._runs(spawn, turn)]
            if len(running) == 1:
                found = running[0]
                found.turn.draft.remarks.append(_BY_TIME)
        if found is not None:
            self._taken.add(found)
        return found

    def left(self) -> list[Spawn]:
        """Those whose agents ran and are nowhere."""
        return [spawn for spawn in self._all if spawn not in self._taken and spawn.entry.error != "rejected"]

    def _runs(self, spawn: Spawn, turn: Turn) -> bool:
        """Whether it is free, somebody else's, and at work when the turn begins."""
        at, entry = turn.draft.start, spawn.entry
        return (
            spawn not in self._taken
            and spawn.turn is not turn
            and entry.start <= at
            and (entry.end is None or at <= entry.end)
        )


def _above(turn: Turn, below: Turn, callers: dict[Turn, Spawn]) -> bool:
    """Whether ``turn`` was started by ``below``, or by what that started: ids of damaged files may go round."""
    while turn is not below:
        spawn = callers.get(turn)
        if spawn is None:
            return False
        turn = spawn.turn
    return True


def _depth(turn: Turn, callers: dict[Turn, Spawn]) -> int:
    depth = 0
    while turn in callers:
        turn, depth = callers[turn].turn, depth + 1
    return depth
