"""Plays a session as an agent would: a call goes out when what it waits for has come, with the real answers so far."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct, field

from headway.bench.connection import Client, Received
from headway.bench.graph import Call, Graph, Session, Step, Tool, needs
from headway.bench.heard import Heard, heard
from headway.bench.text import words

Message = dict[str, str]
_OK: Final = 200


class PlayedCall(Struct, kw_only=True):
    """A call that was made. Epoch seconds."""

    step: Call
    intended: float
    """When it was to be sent: all that it waits for was there, or its task was to begin."""
    received: Received


class PlayedTool(Struct, frozen=True, kw_only=True):
    """A tool that was waited for."""

    step: Tool
    start: float
    end: float


class PlayedTask(Struct, kw_only=True):
    """One task, as it went."""

    session: int
    """Which session of the campaign, from 0."""
    number: int
    """Which task of its session, from 0."""
    graph: Graph
    intended: float
    """When it was to begin."""
    ended: float | None = None
    """When its last step had ended; ``None``: it was stopped before."""
    calls: list[PlayedCall] = field(default_factory=list[PlayedCall])
    tools: list[PlayedTool] = field(default_factory=list[PlayedTool])


class Player:
    """Plays sessions against one endpoint.

    Args:
        client: of the endpoint.
        now: the clock of the run.
        sleep: waits for seconds; for tools and thinking.
        salt: makes this campaign's texts others than any before it, so that no engine has them in its cache.
        told: hears of every task that begins and ends.
    """

    def __init__(
        self,
        client: Client,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        *,
        salt: str,
        told: Callable[[PlayedTask], None],
    ) -> None:
        self._client, self._now, self._sleep, self._salt, self._told = client, now, sleep, salt, told

    async def session(self, session: Session, number: int, intended: float) -> None:
        """Play ``session``, the campaign's ``number``-th, whose first task was to begin at ``intended``.

        After a task that failed the person does not go on.
        """
        said: dict[str, tuple[list[Message], Heard]] = {}
        extended = {call.extends for graph in session.tasks for call in graph.calls if call.extends is not None}
        for index, graph in enumerate(session.tasks):
            if index:
                await self._sleep(session.think[index - 1])
                intended = self._now()
            task = PlayedTask(session=number, number=index, graph=graph, intended=intended)
            self._told(task)
            whole = await _Playing(self, task, extended, said).run()
            task.ended = self._now()
            self._told(task)
            if not whole:
                return

    async def call(self, playing: "_Playing", step: Call, intended: float) -> bool:
        """Make one call; whether it came to its end."""
        client, endpoint = self._client, self._client.endpoint
        messages = self._messages(playing, step)
        received = await client.ask(endpoint.request(messages, step.output_tokens))
        playing.task.calls.append(PlayedCall(step=step, intended=intended, received=received))
        if step.id not in playing.extended and received.error is None and received.status == _OK:
            return True  # nobody goes on from it: it is read when the load is over
        understood = heard(received, endpoint.model, stream=endpoint.stream)
        playing.said[step.id] = (messages, understood)
        return understood.error is None

    async def tool(self, playing: "_Playing", step: Tool) -> None:
        """Wait as long as the tool takes."""
        start = self._now()
        await self._sleep(step.seconds)
        playing.task.tools.append(PlayedTool(step=step, start=start, end=self._now()))

    def _messages(self, playing: "_Playing", step: Call) -> list[Message]:
        seed = f"{self._salt}/{playing.task.session}/{step.id}"
        new = {"role": "user", "content": words(step.input_tokens, seed)}
        if step.extends is not None:
            before, answer = playing.said[step.extends]
            return [*before, {"role": "assistant", "content": answer.text}, new]
        if step.shared is None:
            return [new]
        return [{"role": "system", "content": words(step.shared.tokens, f"{self._salt}/{step.shared.name}")}, new]

    def now(self) -> float:
        """The clock of the run."""
        return self._now()


class _Playing:
    """One task while it is played."""

    def __init__(
        self, player: Player, task: PlayedTask, extended: set[str], said: dict[str, tuple[list[Message], Heard]]
    ) -> None:
        self.task = task
        self.said = said
        """By call, what the session has asked and been answered so far."""
        self.extended = extended
        """Calls whose answers are needed while the session runs: others are read when the load is over."""
        self._player = player
        self._waits = {step.id: {name for name in needs(step) if name not in said} for step in task.graph.steps}
        self._wanted_by = defaultdict[str, list[Step]](list)
        for step in task.graph.steps:
            for name in self._waits[step.id]:
                self._wanted_by[name].append(step)
        self._failed = False

    async def run(self) -> bool:
        """Play all steps; whether none failed. After a failure no step begins, and those under way end."""
        async with asyncio.TaskGroup() as group:
            for step in [step for step in self.task.graph.steps if not self._waits[step.id]]:
                self._begin(step, group, self.task.intended)
        return not self._failed

    def _begin(self, step: Step, group: asyncio.TaskGroup, intended: float) -> None:
        group.create_task(self._step(step, group, intended))

    async def _step(self, step: Step, group: asyncio.TaskGroup, intended: float) -> None:
        if isinstance(step, Tool):
            await self._player.tool(self, step)
        elif not await self._player.call(self, step, intended):
            self._failed = True
        if self._failed:
            return
        now = self._player.now()
        for waiting in self._wanted_by.get(step.id, ()):
            waits = self._waits[waiting.id]
            waits.discard(step.id)
            if not waits:
                self._begin(waiting, group, now)
