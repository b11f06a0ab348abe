"""A model that makes plans, and plans at work: a step starts as soon as what it needs is there."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from headway.core.errors import ToolError
from headway.runtime.agent import Agent
from headway.runtime.plan import REFERENCE, Plan, PlanStep, Steps
from headway.runtime.policy import Policy
from headway.runtime.run import Run
from headway.runtime.scatter import Failure, Options, Success, Tally
from headway.runtime.tools import Tool, ToolResult

_ABOUT: Final = """Plan how to answer. Do not answer yourself: write steps, each of which is one call of one action.
An argument may be or contain ${ID}: the result of the step called ID. Steps that do not need each other run at the \
same time, so let a step need only what it uses; `after` names steps that have to be done before it though it uses \
nothing of them.
The actions:
"""


class Planner:
    """A model that makes plans.

    Args:
        model: its name at the endpoint.
        actions: what steps may do.
        policy: how; of it ``mistakes`` is how often the model is told of what is wrong with its plan.
        most_steps: of a plan.
        system: what the model is told first.
    """

    def __init__(
        self,
        model: str,
        actions: Sequence[Tool],
        policy: Policy | None = None,
        *,
        most_steps: int = 50,
        system: str = "",
    ) -> None:
        self.actions = tuple(actions)
        self.most_steps = most_steps
        told = msgspec.json.encode([tool.schema["function"] for tool in actions]).decode()
        self._agent = Agent(
            model,
            policy=policy or Policy(),
            answer=Plan,
            check=lambda plan: plan.check(self.actions, most_steps),
            system="\n\n".join(text for text in (system, _ABOUT + told) if text),
            name="planner",
        )

    async def __call__(self, run: Run, question: str) -> Plan:
        """A plan that can be carried out.

        Raises:
            StoppedError: the model wrote none.
            HeadwayError: as `Agent.ask`.
        """
        return await self._agent(run, question)


class Carried(Struct, frozen=True, kw_only=True):
    """What a plan came to."""

    results: Mapping[str, str]
    """By step, in the plan's order, of those that were done."""
    failures: Mapping[str, str]
    """By step, in the plan's order: what it failed of, or which step that it needs did."""


async def carry_out(
    run: Run, plan: Plan, actions: Sequence[Tool], *, limit: int = 16, tolerate: float = 0.0
) -> Carried:
    """Do the steps of a plan that was checked, each as soon as what it needs is there.

    Args:
        run: whose plan it is.
        plan: the steps.
        actions: what they call.
        limit: steps under way at once.
        tolerate: share of the steps that may fail, from 0 to 1; those that need one that failed count.

    Raises:
        ItemsFailedError: more failed than are tolerated; nothing runs any more.
        BadInputError: the plan cannot be carried out.
    """
    plan.check(actions, len(plan.steps))
    tools = {tool.name: tool for tool in actions}
    tally = Tally("plan", len(plan.steps), tolerate)
    under_way = Steps(plan)
    results: dict[str, str] = {}
    failures: dict[str, str] = {}

    async def step(below: Run, planned: PlanStep) -> ToolResult:
        tool = tools[planned.action]
        result = await tool.use(below, _filled(planned.arguments, results, tool))
        if result.failed:
            raise ToolError(result.text)
        return result

    options = Options(limit=limit, tolerate=1)
    async with aclosing(run.scatter(step, under_way, options, of=len(plan.steps), place=under_way.place)) as outcomes:
        async for outcome in outcomes:
            match outcome:
                case Success(index=index, value=result):
                    results[under_way.place(index)] = result.text
                    under_way.done(index)
                case Failure(index=index, error=error):
                    failed = under_way.place(index)
                    failures[failed] = str(error)
                    tally.count(outcome)
                    for name in under_way.failed(index):
                        failures[name] = f"It was not started, because {failed} failed, which it needs."
                        tally.count(Failure(under_way.number(name), ToolError(failures[name])))
    order = [step.id for step in plan.steps]
    return Carried(
        results={name: results[name] for name in order if name in results},
        failures={name: failures[name] for name in order if name in failures},
    )


def _filled(arguments: Mapping[str, Any], results: Mapping[str, str], tool: Tool) -> dict[str, Any]:
    """With results in place of references. One that is a whole argument is JSON, unless a text is wanted."""
    declared: Mapping[str, Mapping[str, Any]] = tool.parameters.get("properties", {})
    filled: dict[str, Any] = {}
    for name, value in arguments.items():
        filled[name] = _replaced(value, results)
        whole = isinstance(value, str) and REFERENCE.fullmatch(value)
        if whole and declared.get(name, {}).get("type") != "string":
            try:
                filled[name] = msgspec.json.decode(filled[name])
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                continue  # a text after all; the tool says what it thinks of that
    return filled


def _replaced(value: Any, results: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case str():
            return REFERENCE.sub(lambda found: results[found[1]], value)
        case dict():
            parts = cast("dict[str, Any]", value)
            return {name: _replaced(part, results) for name, part in parts.items()}
        case list():
            return [_replaced(part, results) for part in cast("list[Any]", value)]
        case _:
            return value
