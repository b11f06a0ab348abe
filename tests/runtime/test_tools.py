import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from runs import Gate, in_a_run

from headway.core.clock import VirtualClock
from headway.core.errors import BadInputError, InDoubtError, OverBudgetError
from headway.core.money import MicroUsd
from headway.core.span import ToolUse
from headway.core.task import TaskId
from headway.runtime import (
    Amount,
    Budget,
    GroupedLedger,
    ResultCache,
    Run,
    Runtime,
    SqliteTable,
    Tool,
    ToolResult,
    Traits,
    task,
    tool,
)
from headway.runtime import scatter as scattering
from headway.trace.store import Store


def made(body: Any, **traits: Any) -> Tool:  # noqa: ANN401 - as Tool has them
    """A tool that takes anything."""
    return Tool(name="thing", description="Do it.", parameters={"type": "object"}, body=body, **traits)


async def used(thing: Tool, arguments: str = "{}") -> ToolResult:
    async def body(run: Run) -> ToolResult:
        return await thing.use(run, arguments)

    return await in_a_run(body)


async def forever(_run: Run, _given: dict[str, Any]) -> str:
    await asyncio.Event().wait()
    return ""


async def test_a_tool_that_hangs_is_stopped_and_the_model_told() -> None:
    result = await used(made(forever, timeout=0.01))
    assert result.failed
    assert result.text == "thing was not done in 0.01 s and was stopped. Whether it was done is not known."
    reads = await used(made(forever, timeout=0.01, purity="reads"))
    assert reads.text == "thing was not done in 0.01 s and was stopped."


async def test_a_tool_that_does_not_heed_is_left_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scattering, "_GRACE", 0.01)
    end = asyncio.Event()

    async def deaf(_run: Run, _given: dict[str, Any]) -> str:
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    @task()
    async def body(run: Run) -> ToolResult:
        return await made(deaf, timeout=0.01).use(run, {})

    result = await body.start()
    assert "goes on although it was told to stop" in result.text
    end.set()


async def test_a_tool_that_raises_is_told_with_its_error_and_no_more_of_it_than_can_be_read() -> None:
    async def breaks(_run: Run, _given: dict[str, Any]) -> str:
        raise OSError("no such file " + "x" * 1_000_000)

    result = await used(made(breaks))
    assert result.failed
    assert result.text.startswith("thing failed: OSError: no such file xxx")
    assert len(result.text) == 2000


async def test_a_tool_that_is_cancelled_from_within_is_told() -> None:
    async def gives_up(_run: Run, _given: dict[str, Any]) -> str:
        raise asyncio.CancelledError

    assert (await used(made(gives_up))).text == "thing was cancelled from within."


async def test_a_result_of_100_mb_is_cut_and_the_model_told() -> None:
    async def floods(_run: Run, _given: dict[str, Any]) -> str:
        return "a" * 100_000_000

    result = await used(made(floods, most_bytes=1000))
    assert result.text == "a" * 1000 + "\n[Cut: the first 1,000 bytes of 100,000,000 characters. Ask for less.]"
    assert not result.failed


@given(st.text(st.characters(), max_size=60), st.integers(1, 40))
def test_no_result_is_larger_than_its_bound_or_cut_within_a_character(text: str, most: int) -> None:
    async def says(_run: Run, _given: dict[str, Any]) -> str:
        return text

    result = asyncio.run(used(made(says, most_bytes=most)))
    head, _, note = result.text.partition("\n[Cut: ")
    sound = text.encode(errors="replace").decode()
    assert len(head.encode()) <= most
    assert sound.startswith(head)
    assert (head == sound) == (not note)
    assert bool(note) == (len(sound.encode()) > most)


@pytest.mark.parametrize("piece", ["abc", ""])
async def test_a_stream_that_never_ends_is_closed(piece: str) -> None:
    closed = asyncio.Event()

    async def endless(_run: Run, _given: dict[str, Any]) -> AsyncGenerator[str]:
        try:
            while True:
                yield piece
        finally:
            closed.set()

    result = await used(made(endless, most_bytes=100))
    assert closed.is_set()
    head, _, note = result.text.partition("\n")
    assert head == (piece * 34)[:100]
    assert note == "[Stopped after 100 bytes; there was more. Ask for less.]"


async def test_what_a_stream_said_before_it_failed_is_told_too() -> None:
    async def breaks(_run: Run, _given: dict[str, Any]) -> AsyncGenerator[str]:
        yield "first, "
        yield "second"
        raise OSError("gone")

    async def stalls(_run: Run, _given: dict[str, Any]) -> AsyncGenerator[str]:
        yield "first"
        await asyncio.Event().wait()

    assert await used(made(breaks)) == ToolResult(text="first, second\nthing failed: OSError: gone", failed=True)
    assert (await used(made(stalls, timeout=0.01, purity="reads"))).text == (
        "first\nthing was not done in 0.01 s and was stopped."
    )


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (b"caf\xc3\xa9 \xff", "café \ufffd"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (None, ""),
        ("half \ud83d", "half ?"),
        (ToolResult(text="no", failed=True), "no"),
    ],
)
async def test_what_a_tool_gives_is_made_text(said: object, text: str) -> None:
    async def gives(_run: Run, _given: dict[str, Any]) -> object:
        return said

    assert (await used(made(gives))).text == text


async def test_what_can_be_neither_text_nor_json_is_a_failure() -> None:
    async def gives(_run: Run, _given: dict[str, Any]) -> object:
        return asyncio.Event()

    result = await used(made(gives))
    assert result.failed
    assert "TypeError" in result.text


async def test_no_more_calls_at_once_than_a_tool_bears() -> None:
    gate = Gate()

    async def works(run: Run, given: dict[str, Any]) -> str:
        return str(await gate(run, given["n"]))

    narrow = made(works, concurrency=2)

    async def item(run: Run, number: int) -> str:
        return (await narrow.use(run, {"n": number})).text

    async def body(run: Run) -> list[str]:
        return await run.map(item, range(7))

    work = asyncio.create_task(in_a_run_beside(body))
    while gate.inside < 2:  # noqa: ASYNC110 - nobody is told when one is inside
        await asyncio.sleep(0)
    gate.open.set()
    assert await work == [str(number) for number in range(7)]
    assert gate.most == 2


async def in_a_run_beside(body: Any) -> Any:  # noqa: ANN401 - whatever the body gives
    return await task()(body).start()


async def test_a_tool_ends_with_its_task() -> None:
    """Elsewhere tools outlived what had started them (pydantic-ai#3960)."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def works(_run: Run, _given: dict[str, Any]) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    @task()
    async def body(run: Run) -> ToolResult:
        return await made(works).use(run, {})

    started = body.start()
    await begun.wait()
    await started.cancel()
    assert ended.is_set()
    assert len(asyncio.all_tasks()) == 1


async def test_a_tools_cost_is_taken_from_the_budget() -> None:
    calls = 0

    async def works(_run: Run, _given: dict[str, Any]) -> str:
        nonlocal calls
        calls += 1
        raise OSError

    dear = made(works, cost=Amount(money=MicroUsd(40), calls=1))

    @task(budget=Budget(usd="0.0001 USD"))
    async def body(run: Run) -> None:
        await dear.use(run, {"n": 1})
        await dear.use(run, {"n": 2})
        assert run.purse.spent == Amount(money=MicroUsd(80), calls=2)
        await dear.use(run, {"n": 3})

    with pytest.raises(OverBudgetError):
        await body.start()
    assert calls == 2


async def test_when_an_item_is_tried_again_its_tools_do_not_act_again() -> None:
    acted: list[int] = []

    async def acts(_run: Run, given: dict[str, Any]) -> str:
        acted.append(given["n"])
        return "done"

    tries = 0

    async def item(run: Run, number: int) -> str:
        nonlocal tries
        tries += 1
        result = await made(acts).use(run, {"n": number})
        if tries == 1:
            raise OSError("later")
        return result.text

    async def body(run: Run) -> list[str]:
        return await run.map(item, [7], retries=1)

    assert await in_a_run(body) == ["done"]
    assert (acted, tries) == ([7], 2)


@pytest.mark.parametrize(
    ("traits", "call_id", "anew"),
    [
        (Traits(purity="reads"), None, True),
        (Traits(purity="reads"), "c", False),
        (Traits(idempotent=True), None, True),
        (Traits(), None, False),
    ],
    ids=["code", "a model", "code, idempotent", "code, acts"],
)
async def test_who_fails_is_called_anew_for_code_but_a_model_is_told_the_same(
    traits: Traits, call_id: str | None, anew: bool
) -> None:
    calls = 0

    async def works(_run: Run, _given: dict[str, Any]) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("for now")
        return "done"

    thing = structs.replace(made(works, **traits), cost=Amount(calls=1))

    async def item(run: Run, _: int) -> str:
        result = await thing.use(run, {}, call_id=call_id)
        if result.failed:
            raise ValueError(result.text)
        return result.text

    async def body(run: Run) -> tuple[list[str], int]:
        return list(await run.map(item, [0], retries=1, tolerate=1)), run.purse.spent.calls

    assert await in_a_run(body) == ((["done"], 2) if anew else ([], 1))


@pytest.mark.parametrize(
    ("traits", "again"),
    [
        (Traits(), False),
        (Traits(idempotent=True), True),
        (Traits(purity="reads"), True),
    ],
)
async def test_after_a_crash_only_what_may_be_repeated_is(traits: Traits, again: bool, tmp_path: Path) -> None:
    calls = 0

    async def works(_run: Run, _given: dict[str, Any]) -> str:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyError
        return "done"

    async def dies(_run: Run, _given: dict[str, Any]) -> str:
        nonlocal calls
        calls += 1
        begun.set()
        await asyncio.Event().wait()
        return ""

    begun = asyncio.Event()

    @task()
    async def body(run: Run, work: Tool) -> str:
        return (await work.use(run, {}, call_id="c")).text

    async with GroupedLedger(SqliteTable(tmp_path / "l.db")) as ledger, Runtime(ledger=ledger) as runtime:
        started = runtime.resume(TaskId("t"), body, made(dies, **traits))
        await begun.wait()
        await started.cancel()
    async with GroupedLedger(SqliteTable(tmp_path / "l.db")) as ledger, Runtime(ledger=ledger) as runtime:
        if not again:
            with pytest.raises(InDoubtError, match="execute_tool thing was under way"):
                await runtime.resume(TaskId("t"), body, made(works))
            return
        failed = await runtime.resume(TaskId("t"), body, made(works, **traits))
        assert failed == "thing failed: KeyError: "
        assert await runtime.resume(TaskId("t"), body, made(works, **traits)) == failed, (
            "it went on from another result"
        )
    assert calls == 2


async def count(traits: Traits, tasks: list[tuple[Runtime, int]], clock: VirtualClock | None = None) -> int:
    """How often a tool worked that was asked the same ``times`` in each of the tasks, a second apart."""
    calls = 0

    async def works(_run: Run, _given: dict[str, Any]) -> str:
        nonlocal calls
        calls += 1
        return f"answer {calls}"

    thing = made(works, **traits)

    @task()
    async def asks(run: Run, times: int) -> None:
        for _ in range(times):
            await thing.use(run, {"b": 1, "a": 2})
            await thing.use(run, '{"a": 2, "b": 1}')
            if clock is not None:
                clock.advance(1)

    for runtime, times in tasks:
        await runtime.start(asks, times)
    return calls


async def test_results_are_given_again_as_far_as_a_tool_declares() -> None:
    clock = VirtualClock()
    async with Runtime(clock=clock) as one, Runtime(clock=clock) as other:
        assert await count(Traits(purity="pure"), [(one, 3)], clock) == 1
        assert await count(Traits(purity="pure", fresh=2), [(one, 4)], clock) == 2
        assert await count(Traits(purity="reads"), [(one, 3)], clock) == 6
        assert await count(Traits(purity="reads", fresh=2), [(one, 4)], clock) == 2
        assert await count(Traits(), [(one, 3)], clock) == 6
        assert await count(Traits(purity="pure"), [(one, 1), (one, 1)]) == 2
        assert await count(Traits(purity="pure", shared=True), [(one, 1), (one, 1)]) == 1
        assert await count(Traits(purity="pure", shared=True), [(one, 1), (other, 1)]) == 2


async def test_kept_results_of_one_tenant_are_never_given_to_another() -> None:
    cache = ResultCache()
    async with (
        Runtime(results=cache, tenant="a") as one,
        Runtime(results=cache, tenant="a") as same,
        Runtime(results=cache, tenant="b") as other,
    ):
        traits = Traits(purity="pure", shared=True)
        assert await count(traits, [(one, 1), (same, 1)]) == 1
        assert await count(traits, [(one, 1), (other, 1)]) == 2


async def test_a_failure_is_not_kept() -> None:
    calls = 0

    async def works(_run: Run, _given: dict[str, Any]) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("for now")
        return "well"

    thing = made(works, purity="pure")

    async def body(run: Run) -> list[str]:
        return [(await thing.use(run, {})).text for _ in range(3)]

    assert await in_a_run(body) == ["thing failed: OSError: for now", "well", "well"]
    assert calls == 2


async def test_spans_tell_what_was_called_and_how_it_ended(tmp_path: Path) -> None:
    @tool(purity="pure")
    async def half(run: Run, number: int) -> int:
        """Halve a number."""
        del run
        if number % 2:
            raise ValueError("it is odd")
        return number // 2

    @task()
    async def asks(run: Run) -> None:
        for arguments in ('{"number": 4}', '{"number": 3}', "{", '{ "number":4 }'):
            await half.use(run, arguments, call_id=f"c{len(arguments)}")

    path = tmp_path / "store.db"
    async with Runtime(store=path) as runtime:
        started = runtime.start(asks)
        await started
    with Store(path) as store:
        spans = [span for span in store.spans(started.id) if isinstance(span.work, ToolUse)]
    uses = [span.work for span in spans if isinstance(span.work, ToolUse)]
    assert {span.name for span in spans} == {"execute_tool half"}
    assert [use.failed for use in uses] == [False, True, True, False]
    assert [use.call_id for use in uses] == ["c13", "c13", "c1", "c14"]
    assert uses[0].arguments == uses[3].arguments != uses[1].arguments
    assert uses[0].result == uses[3].result
    assert [bool(span.remarks) for span in spans] == [False, False, False, True]


@pytest.mark.parametrize(
    ("traits", "says"),
    [
        ({"name": "a b"}, "no name for a tool"),
        ({"name": "x" * 65}, "no name for a tool"),
        ({"purity": "writes"}, "purity=writes makes no sense. It is one of pure, reads, acts"),
        ({"timeout": 0.0}, "timeout=0.0"),
        ({"timeout": float("inf")}, "timeout=inf"),
        ({"most_bytes": 0}, "most_bytes=0"),
        ({"concurrency": 0}, "concurrency=0"),
        ({"fresh": -1.0, "purity": "reads"}, "fresh=-1.0"),
        ({"resource": "{path"}, "resource='{path' makes no sense"),
        ({"resource": "{}"}, "resource='{}' makes no sense"),
        ({"resource": "{path.name}"}, "makes no sense.*file:"),
        ({"fresh": 5.0}, "fresh=5.0 makes no sense. What acts is never kept"),
    ],
)
def test_what_makes_no_sense_is_refused(traits: dict[str, Any], says: str) -> None:
    fields: dict[str, Any] = {"name": "t", "description": "", "parameters": {}, "body": forever, **traits}
    with pytest.raises(BadInputError, match=says):
        Tool(**fields)
