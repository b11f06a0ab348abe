"""How far a task is, for whoever watches: how much of each stage is done, and what the task says meanwhile.

A watcher who reads slowly misses no text and gets only the newest count of each stage; so what waits for him is bounded
by the stages that there are and the text that was said.
"""

import asyncio
from collections.abc import AsyncIterator

from msgspec import Struct


class Stage(Struct, frozen=True, kw_only=True):
    """How far a stage is, in items."""

    name: str
    done: int
    failed: int = 0
    of: int | None = None
    """Items in all; ``None``: not known yet."""

    @property
    def share(self) -> float | None:
        """Of its items, those that have ended, from 0 to 1."""
        return (self.done + self.failed) / self.of if self.of else None


class Said(Struct, frozen=True, kw_only=True):
    """Text for the user: a finding, or a piece of an answer. What was said by one stage in a row may come joined."""

    stage: str
    """The outermost scatter or pipeline stage that it was said in; empty: the task itself."""
    text: str


Progress = Stage | Said


class Feed:
    """What one task tells; any number may watch, from its start or later."""

    def __init__(self) -> None:
        self._stages: dict[str, Stage] = {}
        self._watchers: list[_Watcher] = []
        self._ended = False

    def stage(self, stage: Stage) -> None:
        """A stage has got further."""
        self._stages[stage.name] = stage
        for watcher in self._watchers:
            watcher.stages[stage.name] = stage
            watcher.wake.set()

    def say(self, said: Said) -> None:
        """Text for the user. Nobody keeps it: who does not watch yet has missed it."""
        for watcher in self._watchers:
            last = watcher.said[-1] if watcher.said else None
            if last is not None and last.stage == said.stage:
                watcher.said[-1] = Said(stage=said.stage, text=last.text + said.text)
            else:
                watcher.said.append(said)
            watcher.wake.set()

    def end(self) -> None:
        """The task is over."""
        self._ended = True
        for watcher in self._watchers:
            watcher.wake.set()

    def watch(self) -> AsyncIterator[Progress]:
        """All that is told from this call on, and how far each stage is now; it ends with the task."""
        watcher = _Watcher(dict(self._stages), [], asyncio.Event())
        watcher.wake.set()
        self._watchers.append(watcher)
        return self._told(watcher)

    async def _told(self, watcher: "_Watcher") -> AsyncIterator[Progress]:
        try:
            while True:
                await watcher.wake.wait()
                watcher.wake.clear()
                stages, watcher.stages = watcher.stages, {}
                said, watcher.said = watcher.said, []
                for event in (*stages.values(), *said):
                    yield event
                if self._ended and not watcher.stages and not watcher.said:
                    return
        finally:
            self._watchers.remove(watcher)


class _Watcher(Struct, eq=False):
    stages: dict[str, Stage]
    said: list[Said]
    wake: asyncio.Event
