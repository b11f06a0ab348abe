"""Person or machine: who wrote the user message that follows an answer?

Known: a tool result is a machine's; everything else comes under the role "user" and the wire does not say who typed
it. Agents that speak a text protocol send every observation as a "user" message, and those must not open a new task.

Inferred, in this order:

1. It came within `REACTION_SECONDS` of the answer, or begins like an observation (`OBSERVATION`): a machine, surely.
2. It came sooner after the answer than a person could have typed or pasted it: a machine, probably.
3. It begins as a surely machine-made message of the same history did (observations share a frame): a machine, probably.
4. Otherwise: a person.

What this gets wrong: a person who types ahead and sends within `REACTION_SECONDS` of the answer's end; a program that
plays a person (a user simulator) is a machine here, if it is quick; the first slow observation of a protocol that looks
like none we know is taken for a person.
"""

import re

from msgspec import Struct

REACTION_SECONDS = 1.0
"""Nobody reads an answer, decides and presses enter within this time."""
TYPING_CHARS_PER_SECOND = 15.0
"""Twice a fast typist."""
PASTE_SECONDS = 3.0
"""A long text may have been pasted; finding and pasting it takes at least so long."""
OPENER_CHARS = 8
"""How much of a message's beginning is its frame."""

OBSERVATION = re.compile(
    r"\s*(<(returncode|output|observation|result|tool_response|tool_result|function_results?|system-reminder)\b"
    r"|\[?(observation|(tool|command|execution|function|terminal|shell)[ _](output|result|response))\b"
    r"|(exit|return) ?code\b|Traceback \()",
    re.IGNORECASE,
)
"""Beginnings of what programs report to a model."""


class Author(Struct, frozen=True, gc=False):
    """Who wrote a user message."""

    machine: bool
    opener: str | None
    """How the machine-made messages of this history begin, as far as is known after this one."""


def author(message: str, gap: float, opener: str | None) -> Author:
    """Judge a user message that came ``gap`` seconds after the answer that it follows.

    ``opener`` is how earlier machine-made messages of this history began, if there were any. Only what is surely
    a machine's sets it: a person's quick paste must not mark everything else that begins the same.
    """
    begins = _frame(message)
    if gap < REACTION_SECONDS or OBSERVATION.match(message):
        return Author(machine=True, opener=begins)
    hurried = gap < REACTION_SECONDS + min(len(message) / TYPING_CHARS_PER_SECOND, PASTE_SECONDS)
    return Author(machine=hurried or begins == opener, opener=opener)


def _frame(message: str) -> str:
    return message.lstrip()[:OPENER_CHARS].partition("\n")[0]
