import asyncio
import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import in_a_run
from scripted import engine_and_runtime, says, start

from headway.core.errors import BadInputError, ItemsFailedError, StoppedError
from headway.runtime import Carried, Plan, Planner, PlanStep, Policy, Run, carry_out, tool


@tool(purity="reads")
async def find(run: Run, about: str) -> list[str]:
    """Find files.

    Args:
        about: what they are to be about.
    """
    del run
    return [f"{about}.py", f"{about}.md"]


@tool(purity="reads")
async def read(run: Run, paths: list[str], limit: int = 10) -> str:
    """Read files."""
    del run
    if "gone.py" in paths:
        raise OSError("no such file")
    return f"{len(paths)} files, {limit}: {','.join(paths)}"


@tool()
async def note(run: Run, text: str) -> str:
    """Write a note."""
    del run
    return f"noted: {text}"


ACTIONS = (find, read, note)


def step(name: str, action: str, arguments: dict[str, Any], *after: str) -> PlanStep:
    return PlanStep(name, action, arguments, after)


def plan(*steps: PlanStep) -> Plan:
    return Plan(steps)


async def carried(made: Plan, **how: Any) -> Carried:  # noqa: ANN401 - as carry_out has it
    async def body(run: Run) -> Carried:
        return await carry_out(run, made, ACTIONS, **how)

    return await in_a_run(body)


async def test_a_model_plans_and_its_steps_use_each_others_results() -> None:
    steps = [
        {"id": "n", "action": "note", "arguments": {"text": "found ${f}; read ${r}"}},
        {"id": "r", "action": "read", "arguments": {"paths": "${f}", "limit": 2}},
        {"id": "f", "action": "find", "arguments": {"about": "pump"}},
    ]
    async with engine_and_runtime([says(json.dumps({"steps": steps}))]) as (engine, runtime):
        made: Plan = await start(runtime, Planner("fake", ACTIONS, system="Be quick."), "what of the pump?")
        done: Carried = await start(runtime, carry_out, made, ACTIONS)
    assert list(done.results.items()) == [
        ("n", 'noted: found ["pump.py","pump.md"]; read 2 files, 2: pump.py,pump.md'),
        ("r", "2 files, 2: pump.py,pump.md"),
        ("f", '["pump.py","pump.md"]'),
    ]
    assert done.failures == {}
    told = engine.requests[0]["messages"][0]["content"]
    assert told.startswith("Be quick.")
    assert '"name":"find","description":"Find files."' in told
    assert engine.requests[0]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("made", "says_what"),
    [
        (plan(), "has 0 steps"),
        (plan(*(step(f"s{at}", "find", {"about": "x"}) for at in range(10_000))), "has 10,000 steps. Write 1 to 50"),
        (plan(step("a", "fly", {})), "step 'a' has the action 'fly', which is none of: find, read, note"),
        (plan(step("a", "find", {"about": "x"}), step("a", "find", {"about": "y"})), "2 steps are called 'a'"),
        (plan(step("", "find", {"about": "x"})), "has a name that is empty"),
        (plan(step("a/b", "find", {"about": "x"})), "has a name that is empty or has / "),
        (plan(step("a", "find", {"about": 1})), "step 'a': The arguments of find cannot be used: Expected `str`"),
        (plan(step("a", "find", {})), "missing required field `about`"),
        (plan(step("a", "note", {"text": "${b}"})), "step 'a' needs 'b', which is no step"),
        (plan(step("a", "note", {"text": ""}, "c")), "step 'a' needs 'c', which is no step"),
        (
            plan(step("a", "find", {"about": "x"}), step("b", "read", {"path": "${a}"})),
            "gives read path, which it does not take",
        ),
        (plan(step("a", "find", {"about": "x"}), step("b", "read", {"limit": "${a}"})), "does not give read its paths"),
        (plan(step("a", "note", {"text": "${a}"})), "need each other in a circle: a → a"),
        (
            plan(
                step("a", "note", {"text": "${b}"}),
                step("b", "note", {"text": ""}, "c"),
                step("c", "note", {"text": "${a}"}),
            ),
            "need each other in a circle",
        ),
        (plan(*(step(f"s{at}", "fly", {}) for at in range(9))), "and 4 more mistakes"),
    ],
)
async def test_a_plan_that_cannot_be_carried_out_is_refused_and_the_model_told(made: Plan, says_what: str) -> None:
    with pytest.raises(BadInputError) as error:
        made.check(ACTIONS, 50)
    assert says_what in str(error.value)
    written = json.dumps(
        {"steps": [{"id": s.id, "action": s.action, "arguments": s.arguments, "after": s.after} for s in made.steps]}
    )
    async with engine_and_runtime([says(written)] * 9) as (engine, runtime):
        with pytest.raises(StoppedError) as stopped:
            await start(runtime, Planner("fake", ACTIONS, Policy(mistakes=1)), "go")
    assert stopped.value.reason == "mistakes"
    assert len(engine.requests) == 2
    assert says_what in engine.requests[1]["messages"][-1]["content"]
    assert len(engine.requests[1]["messages"][-2]["content"]) <= 2000


@pytest.mark.parametrize("text", ["first I look, then I read", '{"steps": [{"id": 1}]}', '{"stages": []}', "[]"])
async def test_what_is_no_plan_is_asked_for_again(text: str) -> None:
    good = says('{"steps": [{"id": "a", "action": "find", "arguments": {"about": "x"}}]}')
    async with engine_and_runtime([says(text), good]) as (_, runtime):
        assert await start(runtime, Planner("fake", ACTIONS), "go") == plan(step("a", "find", {"about": "x"}))


async def test_a_step_starts_as_soon_as_what_it_needs_is_there() -> None:
    """Elsewhere a level of steps waited for its slowest (langgraph#3617)."""
    behind = asyncio.Event()

    @tool()
    async def slow(run: Run) -> str:
        """Wait until what needs another step only is done."""
        del run
        await behind.wait()
        return "slow"

    @tool()
    async def quick(run: Run, after: str = "") -> str:
        """Be done at once."""
        del run
        if after:
            behind.set()
        return "quick"

    made = plan(step("s", "slow", {}), step("q", "quick", {}), step("r", "quick", {"after": "${q}"}))

    async def body(run: Run) -> Carried:
        return await carry_out(run, made, (slow, quick))

    assert (await in_a_run(body)).results == {"s": "slow", "q": "quick", "r": "quick"}


async def test_as_many_steps_may_fail_as_are_tolerated_and_what_needs_them_is_not_started() -> None:
    made = plan(
        step("a", "read", {"paths": ["gone.py"]}),
        step("b", "note", {"text": "${a}"}),
        step("c", "note", {"text": "x"}, "b"),
        step("d", "find", {"about": "x"}),
        step("e", "note", {"text": "${d}"}, "b", "a"),
    )
    done = await carried(made, tolerate=0.8)
    assert list(done.results) == ["d"]
    assert done.failures == {
        "a": "read failed: OSError: no such file",
        "b": "It was not started, because a failed, which it needs.",
        "c": "It was not started, because a failed, which it needs.",
        "e": "It was not started, because a failed, which it needs.",
    }
    with pytest.raises(ItemsFailedError, match=r"plan: 4 of 5 items failed.*no such file"):
        await carried(made, tolerate=0.6)
    with pytest.raises(ItemsFailedError):
        await carried(made)


async def test_a_reference_is_json_where_the_parameter_is_no_text_and_else_text() -> None:
    made = plan(
        step("f", "find", {"about": "7"}),
        step("t", "note", {"text": "${f}"}),
        step("n", "note", {"text": "5"}),
        step("w", "read", {"paths": ["${n}", "b"]}),
        step("x", "read", {"paths": "${n}"}),
    )
    done = await carried(made, tolerate=1)
    assert done.results["t"] == 'noted: ["7.py","7.md"]'
    assert done.results["w"] == "2 files, 10: noted: 5,b"
    assert "Expected `array`, got `str`" in done.failures["x"]


@st.composite
def graphs(draw: st.DrawFn) -> list[set[int]]:
    """For each step those before it that it needs."""
    size = draw(st.integers(1, 12))
    return [draw(st.sets(st.integers(0, at - 1), max_size=3)) if at else set() for at in range(size)]


@given(graphs(), st.integers(1, 4), st.randoms(use_true_random=False), st.sets(st.integers(0, 11)))
@settings(deadline=None, max_examples=60)
def test_every_step_runs_once_after_all_that_it_needs(
    needs: list[set[int]],
    limit: int,
    random: Random,
    failing: set[int],
) -> None:
    ended: list[int] = []
    inside = most = 0

    @tool()
    async def work(run: Run, number: int) -> int:
        """Work."""
        nonlocal inside, most
        del run
        assert needs[number] <= set(ended)
        assert not needs[number] & failing
        inside += 1
        most = max(most, inside)
        for _ in range(number % 3):
            await asyncio.sleep(0)
        inside -= 1
        ended.append(number)
        if number in failing:
            raise ValueError(number)
        return number

    steps = [
        PlanStep(f"s{at}", "work", {"number": at}, tuple(f"s{n}" for n in before)) for at, before in enumerate(needs)
    ]
    random.shuffle(steps)

    async def body(run: Run, actions: Sequence[Any] = (work,)) -> Carried:
        return await carry_out(run, Plan(tuple(steps)), actions, limit=limit, tolerate=1)

    done = asyncio.run(in_a_run(body))
    lost = set(failing)
    for at, before in enumerate(needs):
        if before & lost:
            lost.add(at)
    assert set(done.failures) == {f"s{at}" for at in lost if at < len(needs)}
    assert set(done.results) == {f"s{at}" for at in range(len(needs))} - set(done.failures)
    assert len(ended) == len(set(ended))
    assert most <= limit
