"""Recognising a sub-agent: its first message was in the arguments of a tool call that is still open."""

from headway.policy.messages import IssuedCall
from headway.policy.phrases import MIN_FRAGMENT, MIN_TEXT, fragments, known, strings
from headway.policy.turn import OpenTool, Turn

MIN_PROMPT = 16
"""Characters of a prompt that is recognised when it is repeated whole; inside another text it takes `MIN_TEXT`."""
MAX_KEYS = 16
"""Fragments by which one argument is found, beside the whole."""
MAX_PROMPT = 16_384
"""Characters kept of one argument, while its tool call is open."""
SAME_PROMPT = 16
"""Open tool calls kept under one fragment, the latest."""
PROMPT_BYTES = 200
"""Memory that one argument takes beside its text, and each of its keys."""


class Prompts:
    """The arguments of one tenant's open tool calls."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[tuple[str, OpenTool, Turn], ...]] = {}

    def add(self, turn: Turn, tool: OpenTool, issued: IssuedCall) -> None:
        """Let a sub-agent be recognised by the arguments that ``turn`` called ``tool`` with."""
        keys: list[int] = []
        for prompt in strings(issued.arguments) or (issued.arguments.strip(),):
            if not MIN_PROMPT <= len(prompt) <= MAX_PROMPT:
                continue
            telling = [hash(fragment) for fragment in fragments(prompt) if len(fragment) >= MIN_FRAGMENT]
            fresh = {hash(prompt), *telling[:MAX_KEYS]}
            entry = prompt, tool, turn
            for key in fresh:
                self._open[key] = (*self._open.get(key, ())[1 - SAME_PROMPT :], entry)
            keys.extend(fresh)
            tool.charge += PROMPT_BYTES * (1 + len(fresh)) + 4 * len(prompt)
        tool.keys = tuple(keys)

    def remove(self, tool: OpenTool) -> None:
        """Forget ``tool``: it is done."""
        for key in tool.keys:
            left = tuple([entry for entry in self._open.pop(key, ()) if entry[1] is not tool])
            if left:
                self._open[key] = left
        tool.keys, tool.charge = (), 0

    def find(self, first: str, root: int | None) -> tuple[OpenTool, Turn] | None:
        """The latest open call whose arguments hold ``first``, the first user message of a new history.

        A history that starts exactly like the caller's own is not its sub-agent but somebody who asked the same.
        """
        first = first.strip()
        best: tuple[OpenTool, Turn] | None = None
        for fragment in known(first[:MAX_PROMPT], (first,), self._open.keys()):
            for prompt, tool, turn in self._open[hash(fragment)]:
                if turn.root == root or (best and best[1].opened >= turn.opened):
                    continue
                inside = len(first) >= MIN_TEXT and first in prompt
                around = len(prompt) >= MIN_TEXT and prompt in first
                if inside or around or (len(first) >= MIN_PROMPT and first == prompt):
                    best = tool, turn
        return best

    def __len__(self) -> int:
        return len(self._open)
