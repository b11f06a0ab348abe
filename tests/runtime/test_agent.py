import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from scripted import calls, engine_and_runtime, says, start

from headway.core.errors import BadInputError, OverBudgetError, StoppedError
from headway.core.task import TaskId
from headway.gateway.fake import FakeEngine, Reply, ToolCall
from headway.runtime import (
    Agent,
    Answered,
    Budget,
    GroupedLedger,
    Models,
    Policy,
    Run,
    Runtime,
    Said,
    SqliteTable,
    Stage,
    Tool,
    task,
    tool,
)


@tool(purity="reads")
async def look(run: Run, path: str) -> str:
    """Read a file.

    Args:
        path: where it is.
    """
    del run
    if path == "gone":
        raise OSError("no such file")
    return f"text of {path}"


async def stopped(script: list[Reply], agent: Agent[Any]) -> tuple[StoppedError, FakeEngine]:
    """What an agent was stopped by."""
    async with engine_and_runtime(script) as (engine, runtime):
        with pytest.raises(StoppedError) as error:
            await start(runtime, agent, "what?")
        return error.value, engine


async def test_an_agent_calls_tools_until_it_has_an_answer() -> None:
    agent = Agent("fake", [look], system="You read files.")
    script = [calls(("look", '{"path": "a"}'), ("look", '{"path": "gone"}')), says("it says a")]
    async with engine_and_runtime(script) as (engine, runtime):
        answer: Answered[str] = await start(runtime, agent.ask, "what does a say?")
    assert (answer.value, answer.iterations, answer.dropped) == ("it says a", 2, ())
    first, second = engine.requests
    assert [told["function"]["name"] for told in first["tools"]] == ["look", "recall"]
    assert first["messages"] == [
        {"role": "system", "content": "You read files."},
        {"role": "user", "content": "what does a say?"},
    ]
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2]["tool_calls"] == [
        {"id": "c0", "type": "function", "function": {"name": "look", "arguments": '{"path": "a"}'}},
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"path": "gone"}'}},
    ]
    assert second["messages"][3:] == [
        {"role": "tool", "tool_call_id": "c0", "content": "text of a"},
        {"role": "tool", "tool_call_id": "c1", "content": "look failed: OSError: no such file"},
    ]
    assert list(answer.messages) == [*second["messages"], {"role": "assistant", "content": "it says a"}]


async def test_independent_calls_of_one_response_are_made_at_once() -> None:
    """Elsewhere one call held up the others (openai-agents-python#2386)."""
    inside = asyncio.Barrier(3)

    @tool()
    async def meet(run: Run, who: int) -> str:
        """Wait for all others."""
        del run
        await inside.wait()
        return f"{who} was there"

    script = [calls(*(("meet", f'{{"who": {who}}}') for who in range(3))), says("all met")]
    async with engine_and_runtime(script) as (engine, runtime):
        assert await start(runtime, Agent("fake", [meet]), "go") == "all met"
    assert [m["content"] for m in engine.requests[1]["messages"][2:]] == [f"{who} was there" for who in range(3)]


@given(st.lists(st.tuples(st.sampled_from("ab-"), st.integers(0, 3)), min_size=1, max_size=12), st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_calls_on_one_resource_are_made_in_order_and_never_at_once(asked: list[tuple[str, int]], parallel: int) -> None:
    under_way: dict[str, int] = {}
    begun: list[tuple[str, int]] = []
    most = 0

    @tool(resource="{on}")
    async def work(run: Run, on: str, number: int, turns: int) -> int:
        """Work on something."""
        nonlocal most
        del run
        begun.append((on, number))
        under_way[on] = under_way.get(on, 0) + 1
        most = max(most, sum(under_way.values()))
        assert under_way[on] == 1
        for _ in range(turns):
            await asyncio.sleep(0)
        under_way[on] -= 1
        return number

    @tool(purity="reads")
    async def free(run: Run, number: int) -> int:
        """Work on nothing."""
        del run
        return number

    def call(number: int, on: str, turns: int) -> tuple[str, str]:
        if on == "-":
            return "free", json.dumps({"number": number})
        return "work", json.dumps({"on": on, "number": number, "turns": turns})

    async def body() -> list[str]:
        script = [calls(*(call(at, on, turns) for at, (on, turns) in enumerate(asked))), says("done")]
        async with engine_and_runtime(script) as (engine, runtime):
            await start(runtime, Agent("fake", [work, free], Policy(parallel=parallel)), "go")
        return [message["content"] for message in engine.requests[1]["messages"][2:]]

    assert asyncio.run(body()) == [str(at) for at in range(len(asked))]
    assert most <= parallel
    for on in "ab":
        assert [number for where, number in begun if where == on] == [n for n, (to, _) in enumerate(asked) if to == on]


@given(st.integers(1, 6), st.lists(st.booleans(), min_size=6, max_size=6))
@settings(max_examples=15, deadline=None)
def test_an_agent_never_makes_more_calls_than_it_may(iterations: int, useful: list[bool]) -> None:
    """Elsewhere the bound did not stop it (crewAI#3847)."""

    async def body() -> None:
        replies = [
            calls(("look", f'{{"path": "{at}"}}')) if one else calls(("lok", "{}")) for at, one in enumerate(useful)
        ]
        agent = Agent("fake", [look], Policy(iterations=iterations, mistakes=9, standstill=9))
        error, engine = await stopped(replies, agent)
        assert error.reason == "iterations"
        assert f"after {iterations} of {iterations} model calls" in str(error)
        assert len(engine.requests) == iterations
        told = ["Give your answer now" in request["messages"][-1]["content"] for request in engine.requests]
        assert told == [False] * (iterations - 1) + [iterations > 1]

    asyncio.run(body())


async def test_an_agent_that_repeats_itself_is_told_once_and_then_stopped() -> None:
    """Elsewhere nobody noticed (claude-code#30150)."""
    again = [calls(("look", '{"path": "a"}')), calls(("look", '{"path":"a"}')), calls(("look", ' { "path": "a" } '))]
    error, engine = await stopped(again, Agent("fake", [look]))
    assert error.reason == "standstill"
    assert "made calls again" in str(error)
    assert len(engine.requests) == 3
    told = ["Do something else" in request["messages"][-1]["content"] for request in engine.requests]
    assert told == [False, False, True]
    assert list(error.messages[:4]) == engine.requests[2]["messages"][:4]


async def test_who_goes_in_a_circle_is_stopped_too() -> None:
    one, other = calls(("look", '{"path": "a"}')), calls(("look", '{"path": "b"}'))
    error, engine = await stopped([one, other] * 5, Agent("fake", [look]))
    assert (error.reason, len(engine.requests)) == ("standstill", 4)


async def test_who_tries_something_new_between_equal_results_is_let_go_on() -> None:
    @tool()
    async def check(run: Run) -> str:
        """Run the tests."""
        del run
        return "1 failed"

    @tool()
    async def edit(run: Run, text: str) -> str:
        """Change the code."""
        del run, text
        return "changed"

    script = [turn for at in range(4) for turn in (calls(("edit", f'{{"text": "{at}"}}')), calls(("check", "")))]
    async with engine_and_runtime([*script, says("I give up")]) as (engine, runtime):
        assert await start(runtime, Agent("fake", [check, edit]), "go") == "I give up"
    assert len(engine.requests) == 9


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("look", "{"), "arguments of look are no JSON object"),
        (("look", "text of a file"), "arguments of look are no JSON object"),
        (("look", '{"file": "a"}'), "unknown field `file`"),
        (("lok", '{"path": "a"}'), "There is no tool 'lok'. There are: look, recall."),
        (("", "{}"), "There is no tool 'nameless'"),
        (("x" * 5000, "{}"), "There is no tool 'xxx"),
    ],
)
async def test_calls_that_cannot_be_made_are_told_a_few_times(call: tuple[str, str], told: str) -> None:
    error, engine = await stopped([calls(call)] * 9, Agent("fake", [look], Policy(mistakes=2, standstill=9)))
    assert error.reason == "mistakes"
    assert told in str(error)
    assert len(engine.requests) == 3
    assert told in engine.requests[1]["messages"][-1]["content"]
    spelled = engine.requests[2]["messages"][1]["tool_calls"][0]["function"]
    json.loads(spelled["arguments"])
    assert 1 <= len(spelled["name"]) <= 64


async def test_mistakes_count_only_in_a_row() -> None:
    wrong = [calls(("lok", f'{{"n": {at}}}')) for at in range(3)]
    good = [calls(("look", f'{{"path": "{at}"}}')) for at in range(3)]
    script = [reply for pair in zip(wrong, good, strict=True) for reply in pair]
    async with engine_and_runtime([*script, says("done")]) as (_, runtime):
        assert await start(runtime, Agent("fake", [look], Policy(mistakes=1)), "go") == "done"


async def test_calls_with_no_id_or_one_twice_get_ids_of_their_own() -> None:
    twice = ToolCall("x", "look", '{"path": "a"}')
    none = ToolCall("", "look", '{"path": "b"}')
    taken = ToolCall("call_1_4", "look", '{"path": "c"}')
    async with engine_and_runtime([Reply(tool_calls=(twice, twice, none, taken, none)), says("done")]) as (
        engine,
        runtime,
    ):
        await start(runtime, Agent("fake", [look]), "go")
    asked, *told = engine.requests[1]["messages"][1:]
    ids = [call["id"] for call in asked["tool_calls"]]
    assert len(set(ids)) == 5
    assert [message["tool_call_id"] for message in told] == ids


class Verdict(Struct):
    good: bool
    marks: int


async def test_an_answer_of_a_type_is_asked_for_and_enforced_where_it_can_be() -> None:
    agent = Agent("fake", answer=Verdict, name="judge")
    async with engine_and_runtime([says('{"good": true, "marks": 7}')] * 2) as (engine, runtime):
        verdict: Verdict = await start(runtime, agent, "good?")
        await start(runtime, Agent("fake", [look], answer=Verdict), "good?")
    assert verdict == Verdict(good=True, marks=7)
    alone, tooled = engine.requests
    assert alone["response_format"]["json_schema"]["schema"]["$ref"] == "#/$defs/Verdict"
    assert '"marks":{"type":"integer"}' in alone["messages"][0]["content"]
    assert "response_format" not in tooled
    assert '"marks":{"type":"integer"}' in tooled["messages"][0]["content"]


@pytest.mark.parametrize(
    "text",
    [
        '{"good": true, "marks": 7}',
        '```json\n{"good": true, "marks": 7}\n```',
        ' ```\n{"good": true, "marks": "7"}\n``` \n',
    ],
)
async def test_an_answer_is_read_as_models_write_it(text: str) -> None:
    async with engine_and_runtime([says(text)]) as (_, runtime):
        assert await start(runtime, Agent("fake", answer=Verdict), "good?") == Verdict(good=True, marks=7)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (says("I think that it is good."), "malformed"),
        (says('{"good": true}'), "missing required field `marks`"),
        (says('{"good": 3, "marks": 7}'), "Expected `bool`, got `int`"),
        (says('{"good": true, "marks": 11}'), "marks go up to 10"),
        (says(""), "It is empty"),
        (Reply(content='{"good": tr', finish_reason="length"), "It was cut off at 4096 tokens"),
        (says("[" * 10_000), "Your answer cannot be used"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_asked_for_again_a_few_times(reply: Reply, told: str) -> None:
    def check(verdict: Verdict) -> None:
        if verdict.marks > 10:
            raise ValueError("marks go up to 10.")

    agent = Agent("fake", policy=Policy(mistakes=2), answer=Verdict, check=check)
    async with engine_and_runtime([reply, says('{"good": false, "marks": 1}')]) as (engine, runtime):
        assert await start(runtime, agent, "good?") == Verdict(good=False, marks=1)
    assert told in engine.requests[1]["messages"][-1]["content"]
    error, engine = await stopped([reply] * 9, agent)
    assert error.reason == "mistakes"
    assert len(engine.requests) == 3


async def test_an_empty_answer_of_text_is_no_answer() -> None:
    async with engine_and_runtime([says(" \n"), says("yes")]) as (_, runtime):
        assert await start(runtime, Agent("fake"), "good?") == "yes"


async def test_agents_can_be_scattered() -> None:
    agent = Agent("fake", [look], name="reader")

    def script(body: dict[str, Any]) -> Reply:
        last = body["messages"][-1]
        return (
            says(last["content"]) if last["role"] == "tool" else calls(("look", json.dumps({"path": last["content"]})))
        )

    async def body(run: Run) -> list[str]:
        return await run.map(agent, ["a", "b", "c"], limit=2)

    async with engine_and_runtime(script) as (_, runtime):
        assert await start(runtime, body) == ["text of a", "text of b", "text of c"]


async def test_an_agent_that_is_stopped_is_not_tried_again_for_nothing() -> None:
    agent = Agent("fake", [look], Policy(iterations=1))

    async def body(run: Run) -> None:
        await run.map(agent, ["a"], retries=5)

    async with engine_and_runtime([calls(("look", '{"path": "a"}'))] * 9) as (engine, runtime):
        with pytest.raises(Exception, match="agent was stopped after 1 of 1 model calls"):
            await start(runtime, body)
    assert len(engine.requests) == 1


async def test_an_agent_whose_endpoint_fails_goes_on_where_it_was_when_it_is_tried_again() -> None:
    acted: list[int] = []

    @tool
    async def act(run: Run, number: int) -> str:
        """Do something once."""
        del run
        acted.append(number)
        if number == 2:
            raise OSError("it cannot be done")
        return "done"

    script = [
        calls(("act", '{"number": 1}'), ("act", '{"number": 2}')),
        Reply(status=500),
        calls(("act", '{"number": 3}')),
        says("all done"),
    ]

    async def body(run: Run) -> list[str]:
        return await run.map(Agent("fake", [act]), ["go"], retries=1)

    async with engine_and_runtime(script) as (engine, runtime):
        assert await start(runtime, body) == ["all done"]
    assert sorted(acted) == [1, 2, 3]
    assert len(engine.requests) == 4
    assert engine.requests[2] == engine.requests[1]


async def test_an_agent_is_held_to_the_budget() -> None:
    agent = Agent("fake", [look])

    @task(budget=Budget(calls=2))
    async def asks(run: Run) -> str:
        return await agent(run, "what?")

    script = [calls(("look", f'{{"path": "{at}"}}')) for at in range(9)]
    async with engine_and_runtime(script) as (engine, runtime):
        started = runtime.start(asks)
        with pytest.raises(OverBudgetError):
            await started
    assert started.spent.calls == len(engine.requests) == 2


async def test_text_is_streamed_and_turns_are_told() -> None:
    agent = Agent("fake", [look], Policy(say=True), name="reader")
    async with engine_and_runtime([calls(("look", '{"path": "a"}')), says("a b c")]) as (engine, runtime):
        started = start(runtime, agent, "what?")
        events = [event async for event in started.progress()]
        await started
    assert "".join(event.text for event in events if isinstance(event, Said)) == "a b c"
    assert events[-1] == Stage(name="reader", done=2, of=2) or Stage(name="reader", done=2, of=2) in events
    assert [request["stream"] for request in engine.requests] == [True, True]


async def test_a_tool_ends_with_its_agent() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @tool()
    async def hang(run: Run) -> str:
        """Wait for ever."""
        del run
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    async with engine_and_runtime([calls(("hang", ""))]) as (_, runtime):
        started = start(runtime, Agent("fake", [hang]), "go")
        await begun.wait()
        await started.cancel()
        assert ended.is_set()


async def test_an_agent_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    acted: list[int] = []
    reached = asyncio.Event()

    @tool()
    async def act(run: Run, number: int) -> str:
        """Do something once."""
        del run
        acted.append(number)
        return f"did {number}"

    script = [calls(*(("act", f'{{"number": {n}}}') for n in range(at, at + 2))) for at in (0, 2, 4)]
    replies = iter([*script, says("all done")])
    hang = True

    def model(_: dict[str, Any]) -> Reply:
        if hang and len(engine.requests) == 3:
            reached.set()
            return Reply(fault="stall_before")
        return next(replies)

    @task()
    async def asks(run: Run) -> str:
        return await Agent("fake", [act])(run, "go")

    async with FakeEngine(model) as engine, Models(engine.url) as models:
        async with (
            GroupedLedger(SqliteTable(tmp_path / "l")) as ledger,
            Runtime(models=models, ledger=ledger) as killed,
        ):
            started = killed.resume(TaskId("t"), asks)
            await reached.wait()
            await started.cancel()
        hang = False
        async with (
            GroupedLedger(SqliteTable(tmp_path / "l")) as ledger,
            Runtime(models=models, ledger=ledger) as runtime,
        ):
            assert await runtime.resume(TaskId("t"), asks) == "all done"
    assert sorted(acted) == list(range(6))
    assert len(engine.requests) == 5, "two calls, one that was stopped, and two more"


async def test_an_agent_has_to_be_asked_something() -> None:
    async with engine_and_runtime([]) as (_, runtime):
        with pytest.raises(BadInputError, match="agent is asked nothing"):
            await start(runtime, Agent("fake"), [])


async def test_an_agent_goes_on_from_a_conversation() -> None:
    talk = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hello you"},
        {"role": "user", "content": "and now?"},
    ]
    async with engine_and_runtime([says("now")]) as (engine, runtime):
        assert await start(runtime, Agent("fake"), talk) == "now"
    assert engine.requests[0]["messages"] == talk


def test_two_tools_of_one_name_are_refused() -> None:
    for tools in ([look, look], [Tool(name="recall", description="", parameters={}, body=look.body)]):
        with pytest.raises(BadInputError, match="has two tools called"):
            Agent("fake", tools)


def test_what_is_no_tool_is_refused() -> None:
    async def bare(run: Run) -> None:
        """Forget the decorator."""
        del run

    with pytest.raises(BadInputError, match=r"agent: <function .*bare.* is no tool. Write @tool above"):
        Agent("fake", [bare])  # pyright: ignore[reportArgumentType] - wrong on purpose


def test_a_type_that_cannot_be_json_is_refused() -> None:
    with pytest.raises(BadInputError, match="is no type of an answer"):
        Agent("fake", answer=asyncio.Event)


@pytest.mark.parametrize("wrong", ["iterations", "max_tokens", "parallel", "standstill", "mistakes"])
def test_a_policy_that_makes_no_sense_is_refused(wrong: str) -> None:
    with pytest.raises(BadInputError, match=f"Policy.{wrong}=-1 makes no sense"):
        Policy(**dict[str, Any]({wrong: -1}))
