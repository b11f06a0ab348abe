"""BeeAI's instrumentation makes a span of every event: of those of one call or tool, only the first is the work."""

import re
from typing import Final

from msgspec import Struct

_EVENT: Final = re.compile(r"(?:tool\.)?(?P<what>[\w.]+)\.(?P<event>[a-z_A-Z]+)-\d+\Z")
_SCOPE: Final = "openinference.instrumentation.beeai"


class Event(Struct, frozen=True):
    """What the name of such a span says."""

    what: str
    """Who emitted it: ``backend.openai.chat``, ``agent.react``, ``search.wikipedia``."""
    work: bool
    """Whether the span stands for the work, as that of its start does."""


def event(scope: str, name: str) -> Event | None:
    """The event that a span was made of; ``None`` for all other spans."""
    found = _EVENT.match(name) if scope == _SCOPE else None
    return None if found is None else Event(found["what"], found["event"] == "start")
