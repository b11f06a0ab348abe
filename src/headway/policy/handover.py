"""Recognising a request by what it carries of earlier answers: hand-over between agents, and rewritten histories."""

from collections.abc import Iterable

from msgspec import Struct

from headway.policy.messages import Message, text, visible
from headway.policy.phrases import MAX_SCAN, Piece, holds, phrases, piece, pieces
from headway.policy.turn import Turn

SAME_PHRASE = 16
"""Texts kept under one phrase; a phrase that so many share tells nothing."""
PIECE_BYTES = 420
"""Memory that one indexed text takes at most: the piece, its tuple, its list and its dict entry."""


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
            known = piece(words)
            shelf = self._texts.setdefault(known.key, [])
            if len(shelf) == SAME_PHRASE:
                del shelf[0]
            shelf.append((known, turn))
            keys.append(known.key)
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
        left = MAX_SCAN
        for message in messages:
            words = text(message).strip()[:left]
            left -= len(words)
            for key, position in phrases(words):
                for known, turn in self._texts.get(key, ()):
                    if holds(words, position, known):
                        authors.setdefault(known.digest, (known.length, []))[1].append(turn)
            if left <= 0:
                break
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
