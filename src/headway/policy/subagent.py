"""Recognising a sub-agent: its first message was in the arguments of a tool call that is still open."""

from headway.core.task import SpanId
from headway.policy.ledger import Ledger
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
    """The arguments of one tenant's open tool calls; read only once somebody new has come, as most are done before."""

    def __init__(self, ledger: Ledger) -> None:
        self._unread: dict[SpanId, tuple[str, OpenTool, Turn]] = {}
        self._open: dict[int, tuple[tuple[str | None, OpenTool, Turn], ...]] = {}
        """Texts, ``None`` where only the digest of the whole is known, under the digests of their fragments."""
        self._ledger = ledger

    def add(self, turn: Turn, tool: OpenTool, arguments: str) -> None:
        """Let a sub-agent be recognised by the ``arguments`` that ``turn`` called ``tool`` with."""
        if len(arguments) >= MIN_PROMPT:
            self._unread[tool.span] = arguments, tool, turn
            self._charge(tool, PROMPT_BYTES + 4 * len(arguments))

    def add_told(self, turn: Turn, tool: OpenTool) -> None:
        """The same for a call that another worker has told of: its arguments are known by their digests alone."""
        for key in tool.prompts:
            self._open[key] = (*self._open.get(key, ())[1 - SAME_PROMPT :], (None, tool, turn))
        tool.keys += tool.prompts
        self._charge(tool, tool.charge + PROMPT_BYTES * len(tool.prompts))

    def remove(self, tool: OpenTool) -> None:
        """Forget ``tool``: it is done."""
        self._unread.pop(tool.span, None)
        for key in tool.keys:
            left = tuple([entry for entry in self._open.pop(key, ()) if entry[1] is not tool])
            if left:
                self._open[key] = left
        tool.keys = ()
        self._charge(tool, 0)

    def _read(self) -> None:
        """Index what was added since the last time."""
        for arguments, tool, turn in self._unread.values():
            keys: list[int] = []
            charge = 0
            for prompt in strings(arguments) or (arguments.strip(),):
                if not MIN_PROMPT <= len(prompt) <= MAX_PROMPT:
                    continue
                telling = [hash(fragment) for fragment in fragments(prompt) if len(fragment) >= MIN_FRAGMENT]
                fresh = {hash(prompt), *telling[:MAX_KEYS]}
                entry = prompt, tool, turn
                for key in fresh:
                    self._open[key] = (*self._open.get(key, ())[1 - SAME_PROMPT :], entry)
                keys += fresh
                charge += PROMPT_BYTES * (1 + len(fresh)) + 4 * len(prompt)
            tool.keys = tuple(keys)
            self._charge(tool, charge)
        self._unread.clear()

    def _charge(self, tool: OpenTool, charge: int) -> None:
        self._ledger.bytes += charge - tool.charge
        tool.charge = charge

    def find(self, first: str, root: int | None) -> tuple[OpenTool, Turn] | None:
        """The latest open call whose arguments hold ``first``, the first user message of a new history.

        A history that starts exactly like the caller's own is not its sub-agent but somebody who asked the same.
        """
        self._read()
        first = first.strip()
        best: tuple[OpenTool, Turn] | None = None
        for fragment in known(first[:MAX_PROMPT], (first,), self._open.keys()):
            for prompt, tool, turn in self._open[hash(fragment)]:
                if turn.root == root or (best and best[1].opened >= turn.opened):
                    continue
                if prompt is None:
                    if fragment == first and len(first) >= MIN_PROMPT:
                        best = tool, turn
                    continue
                inside = len(first) >= MIN_TEXT and first in prompt
                around = len(prompt) >= MIN_TEXT and prompt in first
                if inside or around or (len(first) >= MIN_PROMPT and first == prompt):
                    best = tool, turn
        return best

    @staticmethod
    def digests(arguments: str) -> tuple[int, ...]:
        """Of the texts in a tool's arguments that are long enough to be a sub-agent's prompt."""
        prompts = strings(arguments) or (arguments.strip(),)
        return tuple([hash(prompt) for prompt in prompts if MIN_PROMPT <= len(prompt) <= MAX_PROMPT][:MAX_KEYS])

    def __len__(self) -> int:
        return len(self._unread) + len(self._open)
