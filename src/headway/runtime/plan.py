"""Plans: steps that say what each needs, checked before any is done, in the order in which they can start."""

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, cast

from msgspec import Struct, field

from headway.core.errors import BadInputError
from headway.runtime.tools import Tool

REFERENCE: Final = re.compile(r"\$\{([^${}]{1,64})\}")
"""A step's result, in an argument of another."""
_TOLD: Final = 5
"""Mistakes of a plan that are told at once."""


class PlanStep(Struct, frozen=True, forbid_unknown_fields=True):
    """A step of a plan."""

    id: str
    action: str
    """The tool that it calls."""
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    """What it is called with; ``${id}`` in a text stands for a step's result."""
    after: tuple[str, ...] = ()
    """Steps that have to be done before it, beside those whose results it uses."""

    @property
    def needs(self) -> frozenset[str]:
        """Steps that have to be done before it."""
        return frozenset({*self.after, *_references(self.arguments)})


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """Steps, each of which starts as soon as those are done that it needs."""

    steps: tuple[PlanStep, ...]

    def check(self, actions: Sequence[Tool], most_steps: int) -> None:
        """See that it can be carried out.

        Raises:
            BadInputError: it has no steps or too many, two of one name, an action that there is not, arguments that do
                not fit it, a need of a step that there is not, or steps that need each other in a circle.
        """
        if not 1 <= len(self.steps) <= most_steps:
            raise BadInputError(f"The plan has {len(self.steps):,} steps.", fix=f"Write 1 to {most_steps:,}.")
        tools = {tool.name: tool for tool in actions}
        known = Counter(step.id for step in self.steps)
        wrong = [f"{count} steps are called {name!r}" for name, count in known.items() if count > 1]
        wrong += [problem for step in self.steps for problem in _problems(step, tools, known)]
        if not wrong:
            try:
                TopologicalSorter({step.id: step.needs for step in self.steps}).prepare()
            except CycleError as error:
                wrong = [f"steps need each other in a circle: {' → '.join(reversed(error.args[1]))}"]
        if wrong:
            more = f"; and {len(wrong) - _TOLD} more mistakes" if len(wrong) > _TOLD else ""
            raise BadInputError(f"The plan cannot be carried out: {'; '.join(wrong[:_TOLD])}{more}.", fix="Mend it.")


class Steps(Iterator[PlanStep]):
    """The steps of a plan in the order in which they can start; at its end it may later have more."""

    def __init__(self, plan: Plan) -> None:
        self._steps = {step.id: step for step in plan.steps}
        self._numbers = {name: at for at, name in enumerate(self._steps)}
        self._missing = {step.id: set(step.needs) for step in plan.steps}
        self._users: dict[str, list[str]] = {}
        for step in plan.steps:
            for need in step.needs:
                self._users.setdefault(need, []).append(step.id)
        self._ready = deque(name for name, missing in self._missing.items() if not missing)
        self._taken: list[str] = []

    def __next__(self) -> PlanStep:
        """The next step of which all that it needs is done."""
        if not self._ready:
            raise StopIteration
        self._taken.append(self._ready.popleft())
        return self._steps[self._taken[-1]]

    def place(self, index: int) -> str:
        """The step that was taken as the ``index``-th."""
        return self._taken[index]

    def number(self, name: str) -> int:
        """Where in the plan a step is."""
        return self._numbers[name]

    def done(self, index: int) -> None:
        """The step that was taken as the ``index``-th is done."""
        for user in self._users.get(self._taken[index], ()):
            missing = self._missing.get(user)
            if missing is None:
                continue
            missing.discard(self._taken[index])
            if not missing:
                self._ready.append(user)

    def failed(self, index: int) -> list[str]:
        """It failed: those that need it, or one that does, and can never start, if that is new."""
        lost: list[str] = []
        spreading = [self._taken[index]]
        while spreading:
            for user in self._users.get(spreading.pop(), ()):
                if user in self._missing:
                    del self._missing[user]
                    lost.append(user)
                    spreading.append(user)
        return lost


def _problems(step: PlanStep, tools: Mapping[str, Tool], known: Mapping[str, int]) -> Iterator[str]:
    """What keeps a step from being carried out."""
    where = f"step {step.id!r}"
    if not step.id or "/" in step.id or "|" in step.id:
        yield f"{where} has a name that is empty or has / or | in it"
    for need in sorted(step.needs - known.keys()):
        yield f"{where} needs {need!r}, which is no step"
    tool = tools.get(step.action)
    if tool is None:
        yield f"{where} has the action {step.action!r}, which is none of: {', '.join(tools) or 'none'}"
        return
    if not _references(step.arguments):
        try:
            tool.read(step.arguments)
        except BadInputError as error:
            yield f"{where}: {error.what.rstrip('.')}"
        return
    declared: Mapping[str, Any] = tool.parameters.get("properties", {})
    if strange := sorted(step.arguments.keys() - declared.keys()):
        yield f"{where} gives {tool.name} {', '.join(strange)}, which it does not take"
    if lacking := [name for name in tool.parameters.get("required", ()) if name not in step.arguments]:
        yield f"{where} does not give {tool.name} its {', '.join(lacking)}"


def _references(value: object) -> set[str]:
    match value:
        case str():
            return set(REFERENCE.findall(value))
        case dict():
            return {name for part in cast("dict[str, object]", value).values() for name in _references(part)}
        case list():
            return {name for part in cast("list[object]", value) for name in _references(part)}
        case _:
            return set()
