"""Recognising a request by what it carries of earlier answers: hand-over between agents, and rewritten histories."""

from collections.abc import Iterable

from msgspec import Struct

from headway.policy.messages import Message, text, visible
from headway.policy.phrases import Piece, holds, known, piece, pieces
from headway.policy.turn import Turn

SAME_FRAGMENT = 16
"""Texts kept under one fragment; a fragment that so many share tells nothing."""
MAX_SCAN = 65_536
"""Characters of a request that are searched for known texts, the latest first."""
PIECE_BYTES = 340
"""Memory that one key of an indexed text takes at most: its share of the piece, a tuple, a list and a dict entry."""


class Carried(Struct, frozen=True):
    """An answer that a request carries."""

    turn: Turn
    """The latest call of the session whose words are most of what is carried."""
    characters: int


class Passages:
    """The texts of one tenant's answers. Only digests are kept."""

    def __init__(self) -> None:
        self._texts: dict[int, list[tuple[Piece, Turn]]] = {}

    def add(self, turn: Turn, content: str) -> None:
        """Let later requests be recognised by the answer that ``turn`` got."""
        keys: list[int] = []
        for words in pieces(visible(content)):
            said = piece(words)
            for key in said.keys:
                shelf = self._texts.setdefault(key, [])
                if len(shelf) == SAME_FRAGMENT:
                    del shelf[0]
                shelf.append((said, turn))
            keys.extend(said.keys)
        turn.passages = tuple(keys)
        turn.charge += PIECE_BYTES * len(keys)

    def remove(self, turn: Turn) -> None:
        """Forget what ``turn`` was answered."""
        for key in turn.passages:
            left = [entry for entry in self._texts.get(key, []) if entry[1] is not turn]
            if left:
                self._texts[key] = left
            else:
                self._texts.pop(key, None)

    def find(self, messages: Iterable[Message]) -> Carried | None:
        """Whose answers ``messages`` (the latest first) carry; ``None`` if nobody's, or it cannot be told.

        A text that two sessions were answered alike tells nothing and is left out. The session with the most
        characters wins.
        """
        authors: dict[int, tuple[int, list[Turn]]] = {}
        left = MAX_SCAN if self._texts else 0
        for message in messages:
            if left <= 0:
                break
            words = text(message).strip()[:left]
            left -= len(words)
            for fragment in known(words, self._texts.keys()):
                for said, turn in self._texts[hash(fragment)]:
                    if holds(words, fragment, said):
                        authors.setdefault(said.digest, (said.length, []))[1].append(turn)
        return _most(authors.values())


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
