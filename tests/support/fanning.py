"""Fan-outs: calls that share a long beginning, through a gateway that has one of them lead."""

import asyncio
from typing import Any

from serving import Ids, Served, chat

from headway.core.clock import SystemClock
from headway.gateway.leading import Leading, LeadRules
from headway.gateway.wiring import Passes
from headway.policy.identify import Identifier

CLOSE = "connection: close\r\n"
SHARED = {"role": "system", "content": "word " * 2000}
"""2,000 words to the fake engine, some 2,500 tokens to the gateway."""


class Fan:
    """A gateway whose calls follow each other, and what they ask."""

    def __init__(self, **rules: Any) -> None:  # noqa: ANN401 - the rules' own fields
        self.identifier = Identifier(Ids(), measure=True)
        self.leading = Leading(LeadRules(**rules), self.identifier.prompt, SystemClock())
        self.passes = Passes(leading=self.leading)

    def branch(self, served: Served, number: int, *, stream: bool = True) -> asyncio.Task[bytes]:
        """Ask what no other branch does."""
        messages = [SHARED, {"role": "user", "content": f"branch {number}"}]
        return asyncio.create_task(served.raw(chat(CLOSE, messages=messages, stream=stream)))

    async def waiting(self, count: int) -> None:
        """Return when so many wait for their leader."""
        async with asyncio.timeout(5):
            while self.leading.waiting != count:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0)
