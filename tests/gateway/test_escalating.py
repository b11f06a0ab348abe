"""Answers that are not good enough: real clients of every dialect at a real gateway, before engines of two tiers."""

import asyncio
import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from house import PRICES, House, Opened
from keeping import keeping
from serving import QUESTION, Ids, Served, chat, raw_engine, serving, streamed, whole

from headway.core.clock import SystemClock
from headway.core.config import Limits
from headway.core.fleet import Replica, ReplicaId
from headway.core.limits import CallerLimits, Limit
from headway.core.span import ModelCall, Span
from headway.gateway.breakers import BreakerRules, Breakers
from headway.gateway.fake import FakeEngine, Reply, ToolCall
from headway.gateway.hedging import HedgeRules, Hedging
from headway.gateway.leading import Leading, LeadRules
from headway.gateway.naming import Naming
from headway.gateway.retrying import Retrying
from headway.gateway.scheduling import Scheduling
from headway.gateway.wiring import Passes
from headway.policy.identify import Identifier
from headway.policy.limits.periods import counter_name
from headway.policy.models.catalog import Alias, Tier, catalog
from headway.policy.models.doubts import Doubts
from headway.policy.resend.retry import RetryRules
from headway.policy.routing.expected_seconds import ExpectedSeconds

BASIC = Tier(name="basic", models=("small",))
STANDARD = Tier(name="standard", models=("middle",), tools="none")
PREMIUM = Tier(name="premium", models=("large",))
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
FORM: Any = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
SORRY = "I'm sorry, but I can't help with that."


def naming(
    doubts: Doubts | None = None, judge: str | None = None, ladder: tuple[str, ...] = ("basic", "premium")
) -> Naming:
    auto = Alias(name="auto", tier="basic", escalates=ladder, doubts=doubts or Doubts(), judge=judge)
    return Naming(catalog([auto], [BASIC, STANDARD, PREMIUM]))


def answering(**by_model: Reply | str) -> Callable[[dict[str, Any]], Reply]:
    def script(body: dict[str, Any]) -> Reply:
        reply = by_model[body["model"]]
        return Reply(content=reply) if isinstance(reply, str) else reply

    return script


def serves(engine: FakeEngine | Replica, name: str = "r0", *models: str, speaks: str = "openai-chat") -> Replica:
    return Replica(id=ReplicaId(name), url=engine.url, models=models, speaks=(speaks,))


def asked(engine: FakeEngine) -> list[str]:
    return [request["model"] for request in engine.requests]


def calls(spans: list[Span]) -> list[tuple[Span, ModelCall]]:
    found = [(span, span.work) for span in spans if isinstance(span.work, ModelCall)]
    return sorted(found, key=lambda pair: pair[0].start)


async def create(served: Served, *, streams: bool = False, **options: Any) -> str:  # noqa: ANN401 - the API's options
    async with served.client() as client:
        made: Any = await client.chat.completions.create(
            model="auto", messages=options.pop("messages", QUESTION), stream=streams, **options
        )
        if not streams:
            return made.choices[0].message.content or ""
        return "".join([chunk.choices[0].delta.content or "" async for chunk in made if chunk.choices])


def claude(served: Served) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(verify=False)
    url = served.url.removesuffix("/v1")
    return anthropic.AsyncAnthropic(base_url=url, api_key="caller", max_retries=0, timeout=20, http_client=http)


@pytest.mark.parametrize("streams", [False, True])
async def test_an_answer_that_will_do_is_the_only_one(streams: bool) -> None:
    async with (
        FakeEngine(answering(small="Berlin it is.")) as engine,
        serving(serves(engine), naming=naming()) as served,
    ):
        assert await create(served, streams=streams) == "Berlin it is."
        _, call = await served.call()
    assert asked(engine) == ["small"]
    assert call.route is not None
    assert call.route.notes == ("small is asked: 'auto' is of this tier.",)


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("reply", "options", "why"),
    [
        (Reply(content=SORRY), {}, "the model declined to answer"),
        (Reply(content="", finish_reason="content_filter"), {}, "the model declined to answer"),
        (Reply(content='{"town":"Bonn"}'), {"response_format": FORM}, "it breaks the schema that was asked for"),
        (Reply(content="Bonn"), {"response_format": {"type": "json_object"}}, "it breaks the schema that was asked"),
        (Reply(content="Bonn perhaps", logprob=-0.9), {}, "its tokens were less probable than allowed"),
    ],
)
async def test_an_answer_that_will_not_do_is_never_seen_and_the_better_tier_answers(
    streams: bool, reply: Reply, options: dict[str, Any], why: str
) -> None:
    good = '{"city":"Bonn"}'
    names = naming(Doubts(mean_logprob=-0.5))
    async with (
        FakeEngine(answering(small=reply, large=good)) as engine,
        serving(serves(engine), naming=names) as served,
    ):
        assert await create(served, streams=streams, **options) == good
        (first, dropped), (second, final) = calls(await served.spans(calls=2))
        page = await served.raw(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert asked(engine) == ["small", "large"]
    assert (dropped.model, final.model) == ("small", "large")
    assert (first.task, first.parent, first.error) == (second.task, second.parent, None)
    assert first.end is not None
    assert first.start < first.end <= second.start, "each attempt has its own time"
    assert dropped.first_visible is None
    assert dropped.usage.input_tokens == final.usage.input_tokens == 3, "both are told of"
    assert dropped.route is not None
    assert final.route is not None
    assert why in dropped.route.notes[-1]
    assert final.route.notes[-1].startswith("The answer of the tier 'basic' was not used: ")
    assert final.route.notes[-1].endswith("so large of 'premium' is asked.")
    assert b'headway_escalations_total{name="auto",from="basic",to="premium",signal=' in page


async def test_what_was_held_back_counts_as_seen_when_it_was_let_go() -> None:
    gate = asyncio.Event()
    judge = Reply(content="90", gate=gate)
    async with (
        FakeEngine(answering(small="Bonn, I think", judge=judge)) as engine,
        serving(serves(engine), naming=naming(Doubts(judge=0.5), "judge")) as served,
    ):
        call = asyncio.create_task(create(served, streams=True))
        await engine.until(lambda: len(engine.requests) == 2)
        gate.set()
        assert await call == "Bonn, I think"
        (_, answer), (_, grading) = calls(await served.spans(calls=2))
    assert (answer.model, grading.model) == ("small", "judge")
    assert answer.first_visible is not None
    assert grading.sent is not None
    assert answer.last_token is not None
    assert answer.last_token <= grading.sent <= answer.first_visible


async def test_the_last_tier_is_passed_on_as_it_comes() -> None:
    gate = asyncio.Event()
    slow = Reply(chunks=("a", "b"), itl=0.0, fault="stall_mid_stream")
    async with (
        FakeEngine(answering(small=SORRY, large=slow)) as engine,
        serving(serves(engine), naming=naming()) as served,
        served.connect() as (reader, writer),
        asyncio.timeout(10),
    ):
        writer.write(chat(model="auto", stream=True))
        while b'"content":"a"' not in await reader.readline():
            pass
    gate.set()
    assert asked(engine) == ["small", "large"]


@pytest.mark.parametrize(("grade", "models"), [("35", ["small", "judge", "large"]), ("88", ["small", "judge"])])
async def test_a_judge_decides_where_nothing_else_does(grade: str, models: list[str]) -> None:
    names = naming(Doubts(judge=0.7), "judge")
    async with (
        FakeEngine(answering(small="Bonn", judge=grade, large="Berlin")) as engine,
        serving(serves(engine), naming=names) as served,
    ):
        assert await create(served) == ("Berlin" if "large" in models else "Bonn")
        spans = await served.spans(calls=len(models))
    assert asked(engine) == models
    assert {span.task for span in spans} == {spans[0].task}
    first = next(call for _, call in calls(spans) if call.model == "small")
    assert first.route is not None
    assert f"The judge judge gave it 0.{grade}." in first.route.notes
    times = [(span.start, span.end or 0.0) for span, _ in calls(spans)]
    if "large" in models:
        assert sorted(times) == times
        assert all(one[1] <= after[0] for one, after in pairwise(times)), "one after the other"
    shown = engine.requests[1]["messages"][1]["content"]
    assert '[{"role":"user","content":"one two three"}]' in shown
    assert "<<<ANSWER\nBonn\nANSWER>>>" in shown


@pytest.mark.parametrize("verdict", [Reply(content="no idea"), Reply(status=503, error="busy"), Reply(content="7777")])
async def test_a_judge_without_a_verdict_costs_nobody_the_answer(verdict: Reply) -> None:
    async with (
        FakeEngine(answering(small="Bonn", judge=verdict)) as engine,
        serving(serves(engine), naming=naming(Doubts(judge=0.7), "judge")) as served,
    ):
        assert await create(served) == "Bonn"
        spans = await served.spans(calls=2)
    assert asked(engine) == ["small", "judge"]
    call = next(call for _, call in calls(spans) if call.model == "small")
    assert call.route is not None
    assert "The judge judge gave no score." in call.route.notes


@pytest.mark.parametrize("streams", [False, True])
async def test_logprobs_that_the_client_did_not_ask_for_are_not_shown_to_it(streams: bool) -> None:
    async with (
        FakeEngine(answering(small=Reply(content="sure thing", logprob=-0.1))) as engine,
        serving(serves(engine), naming=naming(Doubts(mean_logprob=-0.5))) as served,
    ):
        plain = await served.raw(chat("connection: close\r\n", model="auto", stream=streams))
        shown = await served.raw(chat("connection: close\r\n", model="auto", stream=streams, logprobs=True))
    assert engine.requests[0]["logprobs"] is True
    assert b"-0.1" not in plain
    assert b"sure" in plain
    assert b"-0.1" in shown


async def test_an_engine_that_refuses_to_tell_logprobs_is_asked_without_and_not_again() -> None:
    def script(body: dict[str, Any]) -> Reply:
        return Reply(status=400, error="logprobs are not supported") if "logprobs" in body else Reply(content="Bonn")

    async with (
        FakeEngine(script) as engine,
        serving(serves(engine), naming=naming(Doubts(mean_logprob=-0.5))) as served,
    ):
        assert await create(served) == "Bonn"
        _, call = await served.call()
        assert await create(served) == "Bonn"
    assert ["logprobs" in request for request in engine.requests] == [True, False, False]
    assert [setback.error for setback in call.setbacks] == ["logprobs_refused"]


@pytest.mark.parametrize("streams", [False, True])
async def test_where_the_better_tier_cannot_answer_the_answer_that_there_is_will_do(streams: bool) -> None:
    broken = Reply(status=503, error="overloaded")
    async with (
        FakeEngine(answering(small=SORRY, large=broken)) as engine,
        serving(serves(engine), naming=naming()) as served,
    ):
        assert await create(served, streams=streams) == SORRY
        found = {call.model: (span, call) for span, call in calls(await served.spans(calls=2))}
    span, call = found["small"]
    assert (span.error, found["large"][0].error) == (None, "http_503")
    assert call.route is not None
    assert call.route.notes[-1] == "It was used all the same: the tier 'premium' could not answer (http_503)."


async def test_a_tier_that_cannot_answer_is_followed_by_the_next() -> None:
    async with (
        FakeEngine(answering(small=Reply(status=503, error="down"), large="Bonn")) as engine,
        serving(serves(engine), naming=naming()) as served,
    ):
        assert await create(served) == "Bonn"
    assert asked(engine) == ["small", "large"]


async def test_a_request_that_is_wrong_is_refused_once() -> None:
    async with (
        FakeEngine(answering(small=Reply(status=400, error="no such thing"))) as engine,
        serving(serves(engine), naming=naming()) as served,
    ):
        with pytest.raises(openai.BadRequestError, match="no such thing"):
            await create(served)
    assert asked(engine) == ["small"]


async def test_tiers_that_do_not_permit_the_call_are_left_out_and_all_others_tried_in_turn() -> None:
    ladder = ("basic", "standard", "premium")
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    async with (
        FakeEngine(answering(small=SORRY, middle=SORRY, large="Bonn")) as engine,
        serving(serves(engine), naming=naming(ladder=ladder)) as served,
    ):
        assert await create(served) == "Bonn"
        assert asked(engine) == ["small", "middle", "large"]
        assert await create(served, tools=tools, messages=[{"role": "user", "content": "again"}]) == "Bonn"
        spans = await served.spans(calls=5)
    assert asked(engine)[3:] == ["small", "large"]
    final = calls(spans)[-1][1]
    assert final.route is not None
    assert any("'standard': the tier 'standard' does not permit the tools weather" in n for n in final.route.notes)


async def test_tool_calls_are_no_text_and_break_no_schema() -> None:
    calling = Reply(tool_calls=(ToolCall("c1", "weather", "{}"),))
    async with (
        FakeEngine(answering(small=calling)) as engine,
        serving(serves(engine), naming=naming()) as served,
    ):
        assert await create(served, response_format=FORM) == ""
    assert asked(engine) == ["small"]


@pytest.mark.parametrize("streams", [False, True])
async def test_callers_of_anthropics_api_are_served_so_too_translated(streams: bool) -> None:
    names = naming(Doubts(mean_logprob=-0.5))
    small = Reply(content="Bonn", logprob=-2.0)
    async with (
        FakeEngine(answering(small=small, large="Berlin")) as engine,
        serving(serves(engine), naming=names) as served,
        claude(served) as client,
    ):
        options: dict[str, Any] = {"model": "auto", "max_tokens": 50, "messages": QUESTION}
        asking: Any = client.messages
        if streams:
            async with asking.stream(**options) as stream:
                message = await stream.get_final_message()
        else:
            message = await asking.create(**options)
        assert [block.text for block in message.content] == ["Berlin"]
    assert asked(engine) == ["small", "large"]


@pytest.mark.parametrize("streams", [False, True])
async def test_callers_of_the_responses_api_are_served_so_too_translated(streams: bool) -> None:
    wanted: Any = {"format": {"type": "json_schema", "name": "place", "schema": SCHEMA}}
    async with (
        FakeEngine(answering(small="Bonn", large='{"city":"Bonn"}')) as engine,
        serving(serves(engine), naming=naming()) as served,
        served.client() as client,
    ):
        if streams:
            async with client.responses.stream(model="auto", input="where?", text=wanted) as stream:
                answer = await stream.get_final_response()
        else:
            answer = await client.responses.create(model="auto", input="where?", text=wanted)
        assert answer.output_text == '{"city":"Bonn"}'
    assert asked(engine) == ["small", "large"]


async def test_anthropics_engines_mark_refusals_in_their_own_way() -> None:
    def message(reason: str, text: str) -> bytes:
        content = [{"type": "text", "text": text}]
        usage = {"input_tokens": 3, "output_tokens": 1}
        said = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": content, "usage": usage}
        return whole(json.dumps({**said, "stop_reason": reason, "stop_sequence": None}).encode())

    answers = message("refusal", "No."), message("end_turn", "Bonn")
    async with raw_engine(*answers) as engine:
        replica = serves(engine, speaks="anthropic-messages")
        async with serving(replica, naming=naming()) as served, claude(served) as client:
            made = await client.messages.create(model="auto", max_tokens=9, messages=QUESTION)
    assert made.content[0].type == "text"
    assert made.content[0].text == "Bonn"


@pytest.mark.parametrize("streams", [False, True])
async def test_engines_of_the_responses_api_tell_logprobs_where_they_are_asked(streams: bool) -> None:
    def response(text: str, logprob: float) -> bytes:
        told: list[Any] = [{"token": text, "logprob": logprob, "bytes": [], "top_logprobs": []}]
        part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": told}
        item: dict[str, Any] = {
            "type": "message",
            "id": "i",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        body: dict[str, Any] = {
            "id": "r", "object": "response", "created_at": 1, "model": "x", "status": "completed", "output": [item],
            "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
        }  # fmt: skip
        if not streams:
            return whole(json.dumps(body).encode())
        event = {"type": "response.completed", "sequence_number": 1, "response": body}
        return streamed(b"event: response.completed\ndata: %b\n\n" % json.dumps(event).encode())

    seen: list[bytes] = []
    answers = response("Bonn", -3.0), response("Berlin", -0.125), response("Paris", -0.125)
    async with raw_engine(*answers, seen=seen) as engine:
        replica = serves(engine, speaks="openai-responses")
        names = naming(Doubts(mean_logprob=-0.5))
        async with serving(replica, naming=names) as served, served.client() as client:
            for expected in ("Berlin", "Paris"):
                if streams:
                    events = await client.responses.create(model="auto", input="where?", stream=True)
                    (answer,) = [event.response async for event in events if event.type == "response.completed"]
                else:
                    answer = await client.responses.create(model="auto", input="where?")
                assert answer.output_text == expected
                assert "-0.125" not in answer.to_json() or expected == "Berlin", "the last tier was asked nothing more"
    assert b'"include":["message.output_text.logprobs"]' in seen[0]


async def test_what_was_spent_on_all_attempts_is_settled_and_no_more(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.tenant("acme")
    key = house.key("acme", CallerLimits(money_per_day=Limit(1_000_000)))
    house.door.tariff.adopt(dict.fromkeys(("small", "large", "judge"), PRICES["m"]))
    async with Opened(house) as door, FakeEngine(answering(small="Bonn", judge="10", large="two words")) as engine:
        names = naming(Doubts(judge=0.7), "judge")
        async with serving(serves(engine), naming=names, door=door) as served:
            raw = await served.ask(chat(f"authorization: Bearer {key}\r\n", model="auto"))
            assert raw.status == 200
            found = {call.model: call.usage for _, call in calls(await served.spans(calls=3))}
            (owner,) = house.registry.keys("acme")
            spent = sum((one.input_tokens or 0) + 2 * (one.output_tokens or 0) for one in found.values())
            assert found["small"].input_tokens == found["large"].input_tokens == 3
            await house.until_used(counter_name("key", owner.id, "money", "day", time.time()), spent)
    house.registry.close()


async def test_what_may_be_spent_is_reserved_for_all_attempts(tmp_path: Path) -> None:
    """A call of 100 bytes and 10 tokens of output may use some 45 tokens; at two tiers some 90."""
    house = House(tmp_path)
    house.tenant("acme")
    key = house.key("acme", CallerLimits(tokens_per_minute=Limit(60)))
    async with (
        Opened(house) as door,
        FakeEngine(answering(small=SORRY, large="Bonn")) as engine,
        serving(serves(engine), naming=naming(), door=door) as served,
    ):
        head = f"authorization: Bearer {key}\r\n"
        refused = await served.ask(chat(head, model="auto", max_tokens=10))
        alone = await served.ask(chat(head, model="small", max_tokens=10))
    assert (refused.status, alone.status) == (429, 200)
    assert asked(engine) == ["small"]
    house.registry.close()


async def test_what_a_judge_may_use_is_reserved_by_what_it_is_shown_and_may_write(tmp_path: Path) -> None:
    """It may write 256 tokens and is shown the answer, however few tokens the caller asks for."""
    house = House(tmp_path)
    house.tenant("acme")
    key = house.key("acme", CallerLimits(tokens_per_minute=Limit(300)))
    async with (
        Opened(house) as door,
        FakeEngine(answering(small="Bonn", judge="100", large="Berlin")) as engine,
        serving(serves(engine), naming=naming(Doubts(judge=0.7), "judge"), door=door) as served,
    ):
        refused = await served.ask(chat(f"authorization: Bearer {key}\r\n", model="auto", max_tokens=10))
    assert refused.status == 429  # 45 tokens a tier, and for the judge more than 256
    assert asked(engine) == []
    house.registry.close()


async def test_an_answer_that_was_found_wanting_is_not_given_again() -> None:
    replies = {"small": [SORRY, SORRY], "large": [Reply(status=503, error="overloaded"), Reply(content="Berlin")]}

    def script(body: dict[str, Any]) -> Reply:
        said = replies[body["model"]].pop(0)
        return said if isinstance(said, Reply) else Reply(content=said)

    async with FakeEngine(script) as engine, serving(serves(engine), naming=naming(), cache=keeping()) as served:
        assert [await create(served) for _ in range(2)] == [SORRY, "Berlin"]
    assert asked(engine) == ["small", "large"] * 2


async def test_only_what_the_tier_that_was_asked_first_says_is_kept() -> None:
    replies = {"small": ["Bonn", SORRY], "large": ["Berlin", "Paris"]}

    def script(body: dict[str, Any]) -> Reply:
        return Reply(content=replies[body["model"]].pop(0))

    other: Any = [{"role": "user", "content": "another"}]
    async with (
        FakeEngine(script) as engine,
        serving(serves(engine), naming=naming(), cache=keeping()) as served,
    ):
        assert [await create(served) for _ in range(2)] == ["Bonn", "Bonn"]
        assert await create(served, messages=other) == "Berlin"
    assert asked(engine) == ["small", "small", "large"]


@pytest.mark.parametrize("when", ["first", "judge", "second"])
async def test_a_client_that_leaves_leaves_nothing_at_work(when: str) -> None:
    held = Reply(content="x", gate=asyncio.Event())
    small = held if when == "first" else "Bonn"
    judge = held if when == "judge" else "10"
    count = {"first": 1, "judge": 2, "second": 3}[when]
    async with (
        FakeEngine(answering(small=small, judge=judge, large=held)) as engine,
        serving(serves(engine), naming=naming(Doubts(judge=0.7), "judge")) as served,
    ):
        async with served.connect() as (_, writer):
            writer.write(chat(model="auto"))
            await engine.until(lambda: len(engine.requests) == count)
        await engine.wait_cancelled()
        spans = await served.spans(calls=count)
    expected = {"first": {"small"}, "judge": {"small", "judge"}, "second": {"large"}}[when]
    assert {call.model for span, call in calls(spans) if span.error == "client_gone"} == expected


async def test_a_stream_that_is_too_long_to_be_held_is_passed_on() -> None:
    long = Reply(chunks=tuple(["word "] * 400))
    async with (
        FakeEngine(answering(small=long)) as engine,
        serving(serves(engine), naming=naming(), limits=Limits(response_bytes=4096)) as served,
    ):
        assert await create(served, streams=True) == "word " * 400
        _, call = await served.call()
    assert call.route is not None
    assert "too long to be held back" in call.route.notes[-1]


async def test_when_time_is_up_the_answer_that_there_is_will_do() -> None:
    slow = Reply(content="late", fault="stall_before")
    async with (
        FakeEngine(answering(small=SORRY, large=slow)) as engine,
        serving(serves(engine), naming=naming()) as served,
    ):
        answer = await served.ask(chat("x-headway-deadline: 0.5\r\n", model="auto"))
        await engine.wait_cancelled()
        assert (answer.status, SORRY in answer.body.decode()) == (200, True)


@pytest.mark.parametrize("streams", [False, True])
async def test_it_gets_on_with_all_else_that_a_gateway_does_about_calls(streams: bool) -> None:
    names = naming(Doubts(mean_logprob=-0.5, judge=0.7), "judge", ladder=("basic", "standard", "premium"))
    identifier = Identifier(Ids(), measure=True)
    passes = Passes(
        naming=names,
        cache=keeping(),
        retries=Retrying(RetryRules(base=0.0)),
        breakers=Breakers(BreakerRules()),
        hedging=Hedging(HedgeRules()),
        leading=Leading(LeadRules(), identifier.prompt, SystemClock()),
    )
    fails = [Reply(status=503, error="busy")]

    def script(body: dict[str, Any]) -> Reply:
        match body["model"]:
            case "small":
                return fails.pop() if fails else Reply(content="unsure", logprob=-2.0)
            case "middle":
                return Reply(content="so so", logprob=-0.1)
            case "judge":
                return Reply(content="40")
            case _:
                return Reply(content="well")

    long: Any = [{"role": "user", "content": "word " * 3000}]
    async with (
        FakeEngine(script) as engine,
        serving(
            serves(engine), passes=passes, identifier=identifier, scheduling=Scheduling(), policy=ExpectedSeconds()
        ) as served,
    ):
        assert await asyncio.gather(*[create(served, streams=streams, messages=long) for _ in range(3)]) == ["well"] * 3
        spans = await served.spans(calls=4)
    assert asked(engine)[:2] == ["small", "small"], "the first was busy, and was asked again"
    assert asked(engine).count("large") == asked(engine).count("judge") == asked(engine).count("middle") >= 1
    assert all(span.error is None for span, _ in calls(spans))
