import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted import calls, engine_and_runtime, says, start

from headway.core.errors import BadInputError
from headway.gateway.fake import FakeEngine, Reply
from headway.runtime import Agent, Answered, Context, Policy, Run, tool
from headway.runtime.context import Conversation, Result

OPENING = [{"role": "system", "content": "s" * 300}, {"role": "user", "content": "what?"}]
TURNS = st.lists(st.lists(st.integers(0, 6000), min_size=1, max_size=4), max_size=12)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TURNS, st.integers(500, 4000), st.floats(0.2, 0.9), st.none() | st.integers(1, 3000))
def test_a_prompt_begins_as_the_one_before_it_but_where_something_was_taken_out(
    turns: list[list[int]], tokens: int, trim_to: float, counted: int | None
) -> None:
    talk = Conversation(OPENING, [], Context(tokens=tokens, trim_to=trim_to))
    given_out: list[str] = []
    sent: list[bytes] = []
    for turn, sizes in enumerate(turns):
        due = talk.due()
        for place in due:
            talk.take_out(place, turn)
        now = [json.dumps(message).encode() for message in talk.messages]
        same = len(sent) if not due else due[0]
        assert now[:same] == sent[:same]
        if due:
            left = [talk.messages[place] for place in range(len(talk.messages)) if is_whole(talk, place)]
            assert talk.tokens <= tokens * trim_to + 1 or not left, "it took out less than it could"
        sent = now
        talk.answered(counted)
        talk.add({"role": "assistant", "content": "", "tool_calls": []})
        results = [Result(f"{turn}.{at}", "look", f"{turn}.{at} " + "x" * size) for at, size in enumerate(sizes)]
        given_out += [result.text for result in results]
        before = talk.tokens
        talk.add_results(results, turn)
        assert talk.tokens - before <= tokens / 2 + len(results) * 300
    assert {dropped.text for dropped in talk.dropped} <= set(given_out)
    assert len({dropped.id for dropped in talk.dropped}) == len({dropped.text for dropped in talk.dropped})


def is_whole(talk: Conversation, place: int) -> bool:
    message = talk.messages[place]
    seen = place < len(talk.messages) - 4  # no more than four results are new
    return (
        message["role"] == "tool" and seen and len(message["content"]) > 400 and "Taken out" not in message["content"]
    )


def test_what_is_short_stays() -> None:
    talk = Conversation(OPENING, [], Context(tokens=100))
    talk.add_results([Result("c", "look", "short")], 1)
    talk.answered(None)
    assert talk.tokens > 100
    assert talk.due() == []


def test_what_the_endpoint_counts_is_believed_within_reason() -> None:
    talk = Conversation(OPENING, [], Context())
    size = sum(len(json.dumps(message, separators=(",", ":"))) for message in OPENING) + len("[]")
    talk.answered(size // 4)
    assert talk.tokens == pytest.approx(size / 4, rel=0.02)
    talk.answered(1)
    assert talk.tokens == size / 8
    talk.answered(10**9)
    assert talk.tokens == size


@tool(purity="reads")
async def read(run: Run, page: int) -> str:
    """Read a page."""
    del run
    return f"page {page}: " + f"{page}" * 3000


def same_bytes(one: dict[str, Any], other: dict[str, Any]) -> int:
    """Messages at their beginnings that are the same."""
    pairs = list(zip(one["messages"], other["messages"], strict=False))
    return next((at for at, (left, right) in enumerate(pairs) if left != right), len(pairs))


async def pages(policy: Policy, turns: int, more: list[Reply]) -> tuple[FakeEngine, Answered[str]]:
    """An agent that reads a page a turn."""
    script = [*(calls(("read", f'{{"page": {page}}}')) for page in range(1, turns + 1)), *more, says("read")]
    async with engine_and_runtime(script) as (engine, runtime):
        return engine, await start(runtime, Agent("fake", [read], policy).ask, "read all")


async def test_results_are_taken_out_in_batches_and_the_prefix_holds_in_between() -> None:
    engine, answer = await pages(Policy(context=Context(tokens=4000)), 9, [])
    changed = [
        turn
        for turn, (one, other) in enumerate(zip(engine.requests, engine.requests[1:], strict=False), 2)
        if same_bytes(one, other) < len(one["messages"])
    ]
    assert 1 <= len(changed) <= 3, "a prompt that changes each turn is read from no cache"
    assert {dropped.turn for dropped in answer.dropped} == set(changed)
    assert all(request["tools"] == engine.requests[0]["tools"] for request in engine.requests)
    first = engine.requests[changed[0] - 1]["messages"]
    assert first[2]["content"].startswith("[Taken out to save room: 3,008 characters. recall(result='r1')")
    assert answer.dropped[0].text == "page 1: " + "1" * 3000


async def test_what_was_taken_out_can_be_had_again() -> None:
    again = [calls(("recall", '{"result": "r1", "start": 3000}')), calls(("recall", '{"result": "r99"}'))]
    engine, _ = await pages(Policy(context=Context(tokens=4000)), 6, again)
    assert engine.requests[-2]["messages"][-1]["content"] == "1" * 8
    assert (
        "There is no result 'r99' from 0 on; those taken out: r1, r2" in engine.requests[-1]["messages"][-1]["content"]
    )


async def test_a_result_that_would_fill_the_prompt_is_cut_and_its_rest_can_be_had() -> None:
    engine, answer = await pages(Policy(context=Context(tokens=600)), 1, [])
    told = engine.requests[1]["messages"][-1]["content"]
    head, _, note = told.partition("\n")
    assert 300 < len(head) < 1000
    assert note == (
        f"[These are the first {len(head):,} of 3,008 characters. recall(result='r1', start={len(head)}) gives more.]"
    )
    assert answer.dropped[0].text.startswith(head)


async def test_small_results_leave_their_room_to_large_ones() -> None:
    talk = Conversation(OPENING, [], Context(tokens=2000))
    small = [Result(f"{at}", "look", "tiny") for at in range(9)]
    talk.add_results([*small, Result("l", "look", "x" * 2500)], 1)
    assert talk.messages[-1]["content"] == "x" * 2500
    assert talk.dropped == []


async def test_a_summary_stands_for_what_was_taken_out_and_one_that_fails_is_left_out() -> None:
    asked: list[str] = []

    def model(body: dict[str, Any]) -> Reply:
        messages = body["messages"]
        if "put away" in str(messages[0]["content"]):
            asked.append(messages[1]["content"])
            if len(asked) == 1:
                return Reply(status=400, error="no")
            return says("it is about ones")
        turn = sum(message["role"] == "assistant" for message in messages) + 1
        return calls(("read", f'{{"page": {turn}}}')) if turn < 7 else says("read")

    policy = Policy(context=Context(tokens=4000, summarise=True))
    async with engine_and_runtime(model) as (engine, runtime):
        await start(runtime, Agent("fake", [read], policy).ask, "read all")
    stand_ins = [
        message["content"] for message in engine.requests[-1]["messages"] if "Taken out" in str(message["content"])
    ]
    assert len(stand_ins) == len(asked) >= 2
    assert sum(text.endswith("it is about ones") for text in stand_ins) == len(asked) - 1
    assert asked[0].startswith("page 1: 111")


@pytest.mark.parametrize("wrong", [{"tokens": 0}, {"trim_to": 0.0}, {"trim_to": 1.0}])
def test_a_context_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInputError, match="make no sense"):
        Context(**wrong)
