"""What a fake engine remembers where it is to be like llama.cpp: slots that share nothing and can be saved."""

from typing import Any, cast

import msgspec

_ALIKE = 0.1
"""Share of a prompt that a slot has to hold so that a call is given that one."""


class FakeSlots:
    """Slots, each with the words that were computed in it; a word is a token.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        self._held: list[list[str]] = [[] for _ in range(count)]
        self._tasks: list[int] = [-1] * count
        self._busy: set[int] = set()
        self._files: dict[str, list[str]] = {}
        self._last = -1
        self.computed: list[int] = []
        """Words of each prompt that were not in its slot, in the order in which calls began."""
        self.asked: list[str] = []
        """What was done to slots: ``save 0``, ``restore 1``."""

    @property
    def files(self) -> tuple[str, ...]:
        """Names of what was written."""
        return tuple(self._files)

    def begin(self, request: dict[str, Any]) -> int:
        """A call takes an idle slot: the one that holds most of its prompt, or the one used longest ago; its number."""
        messages = cast("list[dict[str, Any]]", request.get("messages") or [])
        prompt = [word for message in messages for word in str(message.get("content")).split()]
        idle = [slot for slot in range(len(self._held)) if slot not in self._busy]
        best = max(idle, key=lambda slot: _common(self._held[slot], prompt))
        if _common(self._held[best], prompt) <= _ALIKE * len(prompt):
            best = min(idle, key=lambda slot: self._tasks[slot])
        self.computed.append(len(prompt) - _common(self._held[best], prompt))
        self._last += 1
        self._held[best], self._tasks[best] = prompt, self._last
        self._busy.add(best)
        return best

    def end(self, slot: int, answer: str) -> None:
        """The call in ``slot`` is over."""
        self._busy.discard(slot)
        self._held[slot] = [*self._held[slot], *answer.split()]

    def state(self) -> bytes:
        """The answer to ``GET /slots``."""
        rows: list[dict[str, Any]] = []
        for slot, held in enumerate(self._held):
            row: dict[str, Any] = {"id": slot, "n_ctx": 4096, "is_processing": slot in self._busy}
            rows.append(
                row if self._tasks[slot] < 0 else row | {"id_task": self._tasks[slot], "n_prompt_tokens": len(held)}
            )
        return msgspec.json.encode(rows)

    def change(self, slot: int, action: str, filename: str) -> tuple[int, bytes]:
        """Status and body of the answer to ``POST /slots/{slot}?action=…``; a slot at work cannot be changed."""
        self.asked.append(f"{action} {slot}")
        if slot in self._busy or (action == "restore" and filename not in self._files):
            return 400, b'{"error":{"message":"unable to"}}'
        if action == "save":
            self._files[filename] = self._held[slot]
            return 200, msgspec.json.encode({"id_slot": slot, "n_saved": len(self._held[slot])})
        self._held[slot] = self._files[filename]
        return 200, msgspec.json.encode({"id_slot": slot, "n_restored": len(self._held[slot])})


def _common(held: list[str], prompt: list[str]) -> int:
    count = 0
    for one, other in zip(held, prompt, strict=False):
        if one != other:
            break
        count += 1
    return count
