"""A conversation whose messages come whole and in order: each of the user's opens a task, each answer is one call."""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, structs

from headway.core.prompt import Part
from headway.core.span import ModelCall, ToolUse
from headway.core.task import SessionId
from headway.trace.sources.digests import part, span_id, task_id
from headway.trace.sources.session.draft import Draft, Entry, first_words
from headway.trace.sources.source import Piece, Timing

LONGEST: Final = 2000
"""Messages of the longest history that is told call by call; no model's window holds as many."""
_LONG: Final = f"Prompts of more than {LONGEST:,} messages were left out."


class Turn(Struct, eq=False):
    """What came of one message of the user's."""

    draft: Draft
    key: str
    timed: bool = False


class Dialogue:
    """Turns in the making. Times are epoch seconds; ``None`` where the source keeps none.

    Args:
        source: name of the format.
        session: what the conversation is called there.
        agent: who answers.
    """

    def __init__(self, source: str, session: str, agent: str) -> None:
        self.session = session
        self.turns: list[Turn] = []
        self.asked: float | None = None
        """When the last came that a call may answer: a message, a result, the end of the call before."""
        self._source = source
        self._agent = agent
        self._history: list[Part] = []
        self._latest = 0.0

    @property
    def turn(self) -> Turn:
        """The turn that is open; one that nobody is known to have asked for where none is."""
        return self.turns[-1] if self.turns else self._open("", None)

    @property
    def unanswered(self) -> int:
        """Messages of the user that nothing followed."""
        return sum(not turn.draft.entries for turn in self.turns)

    def user(self, text: str, at: float | None, key: str | None = None) -> Turn:
        """The user asks: a new task, unless the one before has not been answered at all."""
        turn = self.turns[-1] if self.turns else None
        if turn is None or turn.draft.entries:
            turn = self._open(key or str(len(self.turns)), at)
            turn.draft.title = first_words(text)
        self.hear("user", text, at)
        return turn

    def opens(self, at: float | None, key: str) -> None:
        """The user asks something that the source does not keep."""
        self._open(key, at)
        if at is not None:
            self.asked = self._latest = at

    def hear(self, role: str, text: str, at: float | None = None) -> Part:
        """Another message that later prompts hold."""
        heard = part(role, text)
        self._history.append(heard)
        if at is not None:
            self.asked = self._latest = at
        return heard

    def forget(self) -> None:
        """The history begins anew: it was compacted."""
        self._history.clear()

    def call(
        self, work: ModelCall, said: str | None, at: float | None, start: float | None = None, error: str | None = None
    ) -> Entry:
        """An answer that was whole at ``at``; begun when it was asked, where its own start is not recorded.

        Args:
            work: what is known of the call but its prompt and answer.
            said: all that it answered; nothing where the source did not keep it.
            at: when it had been answered.
            start: when it was asked, if the source says so.
            error: what went wrong.
        """
        turn = self.turn
        history = self._history
        answer = None if said is None else part("assistant", said)
        if len(history) > LONGEST:
            turn.draft.remarks.append(_LONG)
        prompt = tuple(history) if 0 < len(history) <= LONGEST else None
        end = self._latest if at is None else at
        asked = self.asked if start is None else start
        turn.timed = turn.timed or (at is not None and asked is not None)
        span = span_id(turn.draft.root, "call", str(len(turn.draft.entries)))
        begun = end if asked is None else min(asked, end)
        entry = turn.draft.call(span, begun, at, structs.replace(work, prompt=prompt, answer=answer), error)
        if answer is not None:
            history.append(answer)
        if at is not None:
            self.asked = self._latest = at
        return entry

    def tool(
        self, work: ToolUse, start: float | None, end: float | None, text: str | None, error: str | None = None
    ) -> Entry:
        """A tool that was asked for at ``start`` and gave back ``text``, where it is known, at ``end``."""
        draft = self.turn.draft
        if text is not None:
            work = structs.replace(work, result=self.hear("tool", text, end))
        span = span_id(draft.root, "tool", str(len(draft.entries)))
        return draft.tool(span, self._latest if start is None else start, end, work, error)

    def person(self, start: float, end: float) -> None:
        """A person was waited for between two things that the agent did."""
        draft = self.turn.draft
        draft.waited(span_id(draft.root, "person", str(len(draft.entries))), start, end)
        self.asked = self._latest = end

    def pieces(self, timing: Timing = "messages") -> Iterator[Piece]:
        """The tasks that were answered."""
        for turn in self.turns:
            if turn.draft.entries:
                task = task_id(self._source, turn.key)
                yield turn.draft.piece(task, SessionId(self.session), timing if turn.timed else "none")

    def _open(self, key: str, at: float | None) -> Turn:
        before = self.turns[-1] if self.turns else None
        start = next(when for when in (at, self.asked, self._latest) if when is not None)
        turn = Turn(Draft(span_id(self._source, self.session, key), self._agent, start), f"{self.session}/{key}")
        if before is not None and before.timed and at is not None:
            turn.draft.waited_before(span_id(turn.draft.root, "wait"), before.draft.end)
        self.turns.append(turn)
        return turn


def spoken(text: str, calls: Iterable[tuple[str, str]] = ()) -> str:
    """All that an answer says in one text: its words, then the tools that it asks for with their arguments as JSON."""
    return "\n".join([*([text] if text else []), *(f"{name}({arguments})" for name, arguments in calls)])
