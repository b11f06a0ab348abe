"""Calls that were logged one by one, back into the conversations that they are parts of: a history only ever grows."""

from collections.abc import Sequence

from msgspec import Struct

from headway.core.prompt import Part
from headway.core.usage import Usage
from headway.trace.sources.fields.messages import Message


class Logged(Struct, kw_only=True):
    """One call as it was logged. Times are epoch seconds."""

    start: float
    end: float
    timed: bool = True
    """Whether it is known how long it took; else it is only known that it had ended by ``end``."""
    id: str
    model: str
    prompt: tuple[Part, ...]
    results: dict[str, Part]
    """Results of tools in the prompt, by the id of the call that each answers."""
    asked: str | None
    """The last thing that a user says in the prompt."""
    said: list[Message]
    arguments: dict[str, object]
    """What tools are called with in the answer, by the id of the call."""
    usage: Usage
    cost: int | None = None
    error: str | None = None


class Turn(Struct):
    """What one message of a user set off: the calls of its conversation, and others' that were made meanwhile."""

    calls: list[Logged]
    beside: list[Logged]
    """Of histories of their own: a condenser's, a sub-agent's."""


def conversations(calls: Sequence[Logged]) -> list[list[Turn]]:
    """The turns of each conversation, by when it began.

    A call goes on from the one whose prompt its own begins with, else from the latest that had the same opening (its
    history was then rewritten). A history that begins while another is going on works for it.
    """
    chains: list[list[Logged]] = []
    for call in sorted(calls, key=lambda one: one.start):
        found = _before(chains, call)
        if found is None:
            chains.append([call])
        else:
            found.append(call)
    hosts: list[tuple[list[Logged], list[list[Logged]]]] = []
    for chain in chains:
        host = next((held for host, held in reversed(hosts) if chain[0].start < host[-1].end), None)
        if host is None:
            hosts.append((chain, []))
        else:
            host.append(chain)
    return [_turns(chain, [call for inner in held for call in inner]) for chain, held in hosts]


def _before(chains: list[list[Logged]], call: Logged) -> list[Logged] | None:
    grown = [chain for chain in chains if _begins(call.prompt, chain[-1].prompt)]
    if grown:
        return max(grown, key=lambda chain: len(chain[-1].prompt))
    if all(part.role != "assistant" for part in call.prompt):
        return None
    opening = _opening(call.prompt)
    return next((chain for chain in reversed(chains) if _opening(chain[-1].prompt) == opening), None)


def _begins(prompt: tuple[Part, ...], earlier: tuple[Part, ...]) -> bool:
    return len(prompt) > len(earlier) and prompt[: len(earlier)] == earlier


def _opening(prompt: tuple[Part, ...]) -> tuple[Part, ...]:
    """Up to the first message of a user."""
    first = next((i for i, part in enumerate(prompt) if part.role == "user"), len(prompt) - 1)
    return prompt[: first + 1]


def _turns(chain: list[Logged], beside: list[Logged]) -> list[Turn]:
    turns: list[Turn] = []
    last: Logged | None = None
    for call in chain:
        grown = last is not None and _begins(call.prompt, last.prompt)
        added = call.prompt[len(last.prompt) + 1 :] if grown and last is not None else ()
        if last is None or any(part.role == "user" for part in added):
            turns.append(Turn([], []))
        turns[-1].calls.append(call)
        last = call
    for call in beside:
        turn = next((one for one in reversed(turns) if one.calls[0].start <= call.start), turns[0])
        turn.beside.append(call)
    return turns
