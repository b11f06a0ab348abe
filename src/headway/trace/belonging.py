"""How sure it is that a task's calls belong to it: what was inferred is said, with the way to make it certain."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from headway.core.span import ModelCall
from headway.core.task import Evidence, Identity

REMEDY: Final = "To be certain, let the agent send the header x-headway-task, the same with every call of a task."

_BECAUSE: Final[dict[Evidence, str]] = {
    "explicit": "by a header",
    "tool_result": "by tool results in a history that was altered",
    "extends": "by a history that goes on, but not word for word or with a message too quick for a person",
    "sub_agent": "by a prompt found in an open tool call",
    "compaction": "by a history that takes another's place",
    "hand_over": "by words of an earlier answer",
    "session": "by nothing more than a declared session",
    "new": "by opening it",
}


def joined(calls: Iterable[ModelCall]) -> list[str]:
    """Sentences on the calls whose assignment to the task is inferred; none where all are certain or never assigned."""
    identities = [call.identity for call in calls if call.identity is not None]
    inferred = [one for one in identities if one.confidence < 1]
    notes: list[str] = []
    if within := [one for one in inferred if not one.opens_task]:
        kinds = Counter[str](map(_because, within)).most_common()
        listed = "; ".join(f"{number:,} {because}" for because, number in kinds)
        notes.append(f"Joined to this task by inference, {_sure(within)}: {listed}.")
    if opening := [one for one in inferred if one.opens_task]:
        notes.append(
            f"That a task of its own begins here is inferred, {_sure(opening)}: what follows the answer before it is"
            " taken to be a person's."
        )
    if notes:
        notes[-1] += f" {REMEDY}"
    return notes


def _because(identity: Identity) -> str:
    if identity.rivals:
        others = "another open task" if identity.rivals == 1 else f"{identity.rivals:,} other open tasks"
        return f"by a history that {others} might go on with as well"
    return _BECAUSE[identity.evidence]


def _sure(inferred: Iterable[Identity]) -> str:
    return f"{min(one.confidence for one in inferred):.0%}".replace("%", " % sure at least")
