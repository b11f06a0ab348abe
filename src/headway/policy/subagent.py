"""Recognising a sub-agent: its first message was in the arguments of a tool call that is still open."""

from headway.policy.messages import IssuedCall
from headway.policy.phrases import MIN_FRAGMENT, MIN_TEXT, fragments, known, strings
from headway.policy.turn import OpenTool

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
        self._open: dict[int, list[tuple[str, OpenTool]]] = {}

    def add(self, tool: OpenTool, issued: IssuedCall) -> int:
        """Let a sub-agent be recognised by the arguments that ``tool`` was called with; bytes that it takes."""
        keys: list[int] = []
        taken = 0
        for prompt in strings(issued.arguments) or [issued.arguments.strip()]:
            if not MIN_PROMPT <= len(prompt) <= MAX_PROMPT:
                continue
            telling = [hash(fragment) for fragment in fragments(prompt) if len(fragment) >= MIN_FRAGMENT]
            fresh = set([hash(prompt), *telling][: MAX_KEYS + 1])
            for key in fresh:
                shelf = self._open.setdefault(key, [])
                if len(shelf) == SAME_PROMPT:
                    del shelf[0]
                shelf.append((prompt, tool))
            keys.extend(fresh)
            taken += PROMPT_BYTES * (1 + len(fresh)) + 4 * len(prompt)
        tool.keys = tuple(keys)
        return taken

    def remove(self, tool: OpenTool) -> None:
        """Forget ``tool``: it is done."""
        for key in tool.keys:
            left = [entry for entry in self._open.get(key, []) if entry[1] is not tool]
            if left:
                self._open[key] = left
            else:
                self._open.pop(key, None)
        tool.keys = ()

    def find(self, first: str, root: bytes | None) -> OpenTool | None:
        """The latest open call whose arguments hold ``first``, the first user message of a new history.

        A history that starts exactly like the caller's own is not its sub-agent but somebody who asked the same.
        """
        first = first.strip()
        best: OpenTool | None = None
        for fragment in known(first[:MAX_PROMPT], self._open.keys()):
            for prompt, tool in self._open[hash(fragment)]:
                if tool.turn.root == root or (best and best.turn.opened >= tool.turn.opened):
                    continue
                inside = len(first) >= MIN_TEXT and first in prompt
                around = len(prompt) >= MIN_TEXT and prompt in first
                if inside or around or (len(first) >= MIN_PROMPT and first == prompt):
                    best = tool
        return best

    def __len__(self) -> int:
        return len(self._open)
