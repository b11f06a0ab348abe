"""Shapes that agents' tasks have, made from a few numbers."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from msgspec import Struct

from headway.bench.graph import Call, Graph, Session, Shared, Step, Tool
from headway.bench.lengths import Length


class Sizes(Struct, frozen=True, kw_only=True):
    """What the shapes are made of. Tokens and seconds are drawn anew for each step."""

    system: int
    """Tokens that all tasks of the workload begin with; 0: none."""
    input: Length
    """Tokens of what a person asks, and of what a tool gives."""
    output: Length
    """Tokens of an answer."""
    tool: Length
    """Seconds that a tool takes."""
    think: Length
    """Seconds that a person thinks between tasks."""
    steps: Length
    """Iterations of a loop, turns of a chat, stages of a pipeline."""
    width: int
    """Branches of a scatter, sub-agents, tools at a time."""


class _Maker:
    """Draws steps."""

    def __init__(self, sizes: Sizes, dice: Random) -> None:
        self.sizes, self.dice = sizes, dice
        self.count = sizes.steps.whole(dice)
        self._shared = Shared("system", sizes.system) if sizes.system else None

    def call(self, name: str, *after: str, extends: str | None = None) -> Call:
        """A call with what it asks and answers drawn."""
        return Call(
            id=name,
            input_tokens=self.sizes.input.whole(self.dice),
            output_tokens=self.sizes.output.whole(self.dice),
            after=after,
            extends=extends,
            shared=self._shared if extends is None else None,
        )

    def tool(self, name: str, *after: str) -> Tool:
        """A tool with its seconds drawn."""
        return Tool(id=name, seconds=max(0.0, self.sizes.tool.draw(self.dice)), after=after)

    def loop(self, name: str, *after: str) -> list[Step]:
        """call, tool, call … call: each call has the history of the one before it."""
        steps: list[Step] = [self.call(f"{name}0", *after)]
        for number in range(1, self.count):
            before = f"{name}{number - 1}"
            steps += [
                self.tool(f"{before}-tool", before),
                self.call(f"{name}{number}", f"{before}-tool", extends=before),
            ]
        return steps


def _one(steps: list[Step]) -> Session:
    return Session((Graph(tuple(steps)),))


def _single(make: _Maker) -> Session:
    return _one([make.call("ask")])


def _chat(make: _Maker) -> Session:
    turns = [Graph((make.call("turn0"),))]
    turns += [Graph((make.call(f"turn{n}", extends=f"turn{n - 1}"),)) for n in range(1, make.count)]
    think = tuple(max(0.0, make.sizes.think.draw(make.dice)) for _ in turns[1:])
    return Session(tuple(turns), think)


def _react(make: _Maker) -> Session:
    return _one(make.loop("step"))


def _plan(make: _Maker) -> Session:
    parts = [make.call(f"act{n}", "plan") for n in range(make.count)]
    return _one([make.call("plan"), *parts, make.call("answer", *[part.id for part in parts])])


def _scatter(make: _Maker) -> Session:
    parts = [make.call(f"part{n}") for n in range(make.sizes.width)]
    return _one([*parts, make.call("gather", *[part.id for part in parts])])


def _pipeline(make: _Maker) -> Session:
    steps = [make.call("stage0")]
    steps += [make.call(f"stage{n}", f"stage{n - 1}") for n in range(1, make.count)]
    return _one(list(steps))


def _sub_agents(make: _Maker) -> Session:
    agents = [make.loop(f"agent{n}-", "lead") for n in range(make.sizes.width)]
    ends = [steps[-1].id for steps in agents]
    return _one([make.call("lead"), *[step for steps in agents for step in steps], make.call("answer", *ends)])


SHAPES: Final[Mapping[str, tuple[str, Callable[[_Maker], Session]]]] = {
    "single": ("one call", _single),
    "chat": ("turns of a conversation, each a task, with a person thinking between them", _chat),
    "react": ("a loop of call and tool, with one history", _react),
    "plan": ("a plan, then its parts side by side, then the answer", _plan),
    "scatter": ("parts side by side, then one call that gathers them", _scatter),
    "pipeline": ("calls one after another, each of its own prompt", _pipeline),
    "sub-agents": ("a lead, loops of sub-agents side by side, then the answer", _sub_agents),
}
"""By name: what it is, and what makes one."""


def made(shape: str, sizes: Sizes, dice: Random) -> Session:
    """A session of ``shape``.

    Raises:
        KeyError: there is no such shape.
    """
    return SHAPES[shape][1](_Maker(sizes, dice))
