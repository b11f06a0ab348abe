"""Blocks one at a time, though the engine may mix the pieces of several.

Chats number the tool calls of an answer, and an engine may send pieces of the second before the first is complete.
Other dialects have one block after the other.
"""

from collections import deque
from typing import Final

import msgspec

from headway.wire.translate.said import Argued, Called, Event, Said, Thinking

_SAID: Final = -1
_THOUGHT: Final = -2


class _Block:
    __slots__ = ("arguments", "finished", "held", "key")

    def __init__(self, key: int) -> None:
        self.key = key
        self.held: list[Event] = []
        self.arguments: list[str] = []
        self.finished = key < 0
        """Whether it may be left for another: words at any time, a call once its arguments are a whole object."""

    def argue(self, piece: str) -> None:
        self.arguments.append(piece)
        if not piece.rstrip().endswith("}"):
            self.finished = False
            return
        try:
            msgspec.json.decode("".join(self.arguments))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self.finished = False
        else:
            self.finished = True


class Turns:
    """Passes on the pieces of the first block that is not finished; holds those of the others."""

    def __init__(self) -> None:
        self._blocks: deque[_Block] = deque()

    def said(self, text: str) -> list[Event]:
        """Words."""
        return self._take(self._last(_SAID), [Said(text)])

    def thought(self, text: str) -> list[Event]:
        """Thought."""
        return self._take(self._last(_THOUGHT), [Thinking(text)])

    def called(self, number: int, call_id: str, name: str) -> list[Event]:
        """A tool call begins; ``number`` is its own among this answer's."""
        block = _Block(number)
        self._blocks.append(block)
        return self._take(block, [Called(call_id, name)])

    def argued(self, number: int, piece: str) -> list[Event]:
        """A piece of the arguments of call ``number``; it is lost if they had been whole."""
        block = next((block for block in self._blocks if block.key == number), None)
        if block is None:
            return []
        block.argue(piece)
        return self._take(block, [Argued(piece)])

    def end(self) -> list[Event]:
        """All that was held."""
        held = [event for block in self._blocks for event in block.held]
        self._blocks.clear()
        return held

    def _last(self, key: int) -> _Block:
        if not self._blocks or self._blocks[-1].key != key:
            self._blocks.append(_Block(key))
        return self._blocks[-1]

    def _take(self, block: _Block, events: list[Event]) -> list[Event]:
        block.held += events
        blocks = self._blocks
        passed: list[Event] = []
        while True:
            first = blocks[0]
            passed += first.held
            first.held = []
            if len(blocks) == 1 or not first.finished:
                return passed
            blocks.popleft()
