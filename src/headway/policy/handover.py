"""Recognising a request by what it carries of earlier answers: hand-over between agents, and rewritten histories."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from headway.policy.ledger import Ledger
from headway.policy.messages import Message, text
from headway.policy.phrases import Piece, holds, known, piece, pieces
from headway.policy.turn import Turn

SAME_FRAGMENT = 16
"""Texts kept under one fragment; a fragment that so many share tells nothing."""
MAX_SCAN = 65_536
"""Characters of a request that are searched for known texts: its last ones."""
PIECE_BYTES = 460
"""Memory that one key of an indexed text takes at most: a share of its piece, a small dict, an entry in a large one."""


class Carried(Struct, frozen=True):
    """An answer that a request carries."""

    turn: Turn
    """The latest call of the session whose words are most of what is carried."""
    characters: int


class Passages:
    """The texts of one tenant's answers. Only digests are kept."""

    def __init__(self, ledger: Ledger) -> None:
        self._texts: dict[int, dict[Piece, Turn]] = {}
        self._ledger = ledger

    def add(self, turn: Turn, said: str) -> None:
        """Let later requests be recognised by the answer that ``turn`` got."""
        texts = self._texts
        turn.passages = tuple([piece(words) for words in pieces(said)])
        for found in turn.passages:
            self._ledger.bytes += PIECE_BYTES * len(found.keys)
            for key in found.keys:
                shelf = texts.get(key)
                if shelf is None:
                    texts[key] = {found: turn}
                    continue
                if len(shelf) == SAME_FRAGMENT:
                    del shelf[next(iter(shelf))]
                shelf[found] = turn

    def remove(self, turn: Turn) -> None:
        """Forget what ``turn`` was answered."""
        for found in turn.passages:
            self._ledger.bytes -= PIECE_BYTES * len(found.keys)
            for key in found.keys:
                shelf = self._texts.get(key)
                if shelf is not None and shelf.pop(found, None) is turn and not shelf:
                    del self._texts[key]

    def find(self, messages: Sequence[Message]) -> Carried | None:
        """Whose answers ``messages`` carry; ``None`` if nobody's, or it cannot be told.

        A text that two sessions were answered alike tells nothing and is left out. The session with the most
        characters wins.
        """
        if not self._texts:
            return None
        said = [text(message).strip() for message in messages]
        words = "\n".join(said)[-MAX_SCAN:]
        authors: dict[int, tuple[int, list[Turn]]] = {}
        for fragment in known(words, said, self._texts.keys()):
            for found, turn in self._texts[hash(fragment)].items():
                if holds(words, fragment, found):
                    authors.setdefault(found.digest, (found.length, []))[1].append(turn)
        return _most(authors.values()) if authors else None


def _most(authors: Iterable[tuple[int, list[Turn]]]) -> Carried | None:
    found: dict[str, Carried] = {}
    for length, turns in authors:
        session = turns[0].session
        if any(turn.session != session for turn in turns):
            continue
        before = found.get(session)
        latest = max(turns if before is None else [before.turn, *turns], key=lambda turn: turn.opened)
        found[session] = Carried(latest, length + (0 if before is None else before.characters))
    return max(found.values(), key=lambda carried: carried.characters, default=None)
