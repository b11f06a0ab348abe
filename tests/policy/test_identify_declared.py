"""What callers declare: their tasks and sessions, and what no other tenant can reach."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from conversation import QUESTION, SUMMARY, SYSTEM, Chat, World, assistant, result, user

from headway.core.task import SpanId
from headway.policy.messages import IssuedCall

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def world() -> World:
    return World()


def test_headers_name_the_task(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    traced = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    first = world.ask(chat, headers=traced)
    assert (first.task, first.evidence, first.confidence, first.opens_task) == (TRACE, "explicit", 1.0, True)
    assert first.parent == "00f067aa0ba902b7"
    second = world.ask([user("Something else altogether.")], headers=traced)
    assert (second.task, second.session, second.opens_task) == (TRACE, first.session, False)
    named = world.ask(chat, headers={**traced, "x-headway-task": "nightly build"})
    assert (named.task, named.parent) == ("nightly build", "00f067aa0ba902b7")


def test_a_session_header_names_the_session_and_content_the_task(world: World) -> None:
    headers = {"x-claude-code-session-id": "s-1"}
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask(chat, headers=headers)
    aside = world.ask([user("Give this conversation a title.")], headers=headers)
    world.answer("Two flights.", span=SpanId(f"{1:016x}"))
    second = world.ask([*chat, assistant("Two flights."), user("Book the first.")], headers=headers, after=30.0)
    world.answer("Booked.")
    third = world.ask([SYSTEM, user("A new conversation in the same window.")], headers=headers, after=60.0)

    assert {first.session, aside.session, second.session, third.session} == {"s-1"}
    assert (first.evidence, aside.evidence, aside.task) == ("new", "session", first.task)
    assert (second.evidence, second.opens_task, second.human_wait) == ("extends", True, 30.0)
    assert (third.evidence, third.opens_task, third.human_wait) == ("session", True, 60.0)
    assert len({first.task, second.task, third.task}) == 3
    elsewhere = world.ask([*chat, assistant("Two flights."), user("Book it.")], headers={"x-session-id": "s-2"})
    assert (elsewhere.session, elsewhere.evidence) == ("s-2", "new")


ATTACKS: Sequence[dict[str, Any]] = [
    {"headers": {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}},
    {"headers": {"x-headway-task": "build-7"}},
    {"headers": {"x-session-id": "build-7"}},
    {"body_session": "build-7"},
    {},
]


@pytest.mark.parametrize("claim", ATTACKS)
@pytest.mark.parametrize(("victim", "thief"), [("", "b"), ("a", "b"), ("a", "")])
def test_no_tenant_joins_another_tenants_task(world: World, claim: dict[str, Any], victim: str, thief: str) -> None:
    prompt = "Find the cheapest flight from Rome to Oslo in May and report its number and its price."
    chat: Chat = [SYSTEM, user(QUESTION)]
    delegate = IssuedCall("call_1", "task", json.dumps({"prompt": prompt}))
    theirs = [world.ask(chat, tenant=victim, **claim)]
    world.answer(SUMMARY, delegate)
    stolen: list[Chat] = [
        [*chat, assistant(SUMMARY, delegate), result("call_1")],
        [SYSTEM, user(prompt)],
        [SYSTEM, user(SUMMARY)],
        chat,
    ]
    for attempt in stolen:
        mine = world.ask(attempt, tenant=thief, **claim)
        assert mine.task != theirs[0].task
        assert mine.session != theirs[0].session
        assert mine.tools == ()
    assert world.ask(stolen[0], tenant=victim, **claim).tools != ()


def test_no_name_poses_as_another_tenants(world: World) -> None:
    theirs = world.ask([user("hello")], tenant="a", headers={"x-headway-task": "build-7"})
    assert theirs.task.startswith("build-7@")
    mine = world.ask([user("hello")], tenant="", headers={"x-headway-task": theirs.task})
    assert mine.task != theirs.task
