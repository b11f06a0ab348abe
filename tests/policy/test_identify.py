"""Which task does a call belong to? Whole conversations, as a gateway would see them."""

import json
from typing import Any

import pytest
from conversation import QUESTION, SUMMARY, SYSTEM, Chat, World, assistant, result, search, user

from headway.core.task import SpanId
from headway.policy.headers import RETRY_HEADER
from headway.policy.identify import CallOpening
from headway.policy.messages import IssuedCall

AGAIN = {RETRY_HEADER: "1"}


@pytest.fixture
def world() -> World:
    return World()


def test_a_tool_result_belongs_to_the_task_that_asked_for_it(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask(chat)
    asked = world.span
    world.answer("", search())
    answered_at = world.now
    second = world.ask([*chat, assistant(None, search()), result("call_0")], after=3.0)

    assert (first.evidence, first.opens_task, first.confidence, first.session) == ("new", True, 1.0, first.task)
    assert (second.task, second.session, second.evidence, second.confidence) == (
        first.task, first.session, "tool_result", 1.0,
    )  # fmt: skip
    assert not second.opens_task
    (tool,) = second.tools
    assert (tool.call_id, tool.name, tool.issued_by, tool.issued_at) == ("call_0", "search", asked, answered_at)
    assert tool.failed is None
    assert len(tool.span_id) == 16


def test_anthropic_tool_results_count_and_say_whether_they_failed(world: World) -> None:
    chat: Chat = [user(QUESTION)]
    first = world.ask(chat)
    world.answer("", search("toolu_1"))
    used = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"q": "FCO OSL"}}],
    }
    brought = user("")
    brought["content"] = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no such airport", "is_error": True}
    ]
    second = world.ask([*chat, used, brought])

    assert (second.task, second.evidence, second.confidence) == (first.task, "tool_result", 1.0)
    assert [(tool.call_id, tool.failed) for tool in second.tools] == [("toolu_1", True)]


def test_pictures_are_part_of_a_history(world: World) -> None:
    def seen(picture: str) -> Chat:
        return [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": picture}}, {"type": "text", "text": QUESTION}],
            }
        ]

    first = world.ask(seen("data:image/png;base64,AAAA"))
    world.answer("A flight.")
    second = world.ask(seen("data:image/png;base64,BBBB"))
    world.answer("A flight.")
    more = [assistant("A flight."), user("Book it.")]
    assert world.ask([*seen("data:image/png;base64,BBBB"), *more], after=9.0).session == second.session
    assert world.ask([*seen("data:image/png;base64,AAAA"), *more], after=9.0, spaced=True).session == first.session


def test_reused_tool_call_ids_are_no_proof(world: World) -> None:
    """Two users' first calls differ, their engines both say call_0: each result goes where its history is."""
    mine, yours = [SYSTEM, user(QUESTION)], [SYSTEM, user("Please cancel my reservation with the number ZX81QL today.")]
    first = world.ask(mine)
    mine_span = world.span
    second = world.ask(yours)
    world.answer("", search(), span=world.span)
    world.answer("", search(), span=mine_span)
    assert first.session != second.session
    assert world.ask([*mine, assistant(None, search()), result("call_0")]).task == first.task
    assert world.ask([*yours, assistant(None, search()), result("call_0")]).task == second.task
    stranger = world.ask(
        [SYSTEM, user("Somebody else's question, of any kind."), assistant(None, search()), result("call_0")]
    )
    assert stranger.task not in (first.task, second.task)
    assert stranger.tools == ()


def test_parallel_tools_are_each_delivered_once_even_if_the_request_is_sent_again(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    world.ask(chat)
    calls = search("a", "FCO OSL"), search("b", "CIA OSL")
    world.answer("", *calls)
    more = [*chat, assistant(None, *calls), result("b"), result("a")]
    sent = world.ask(more)
    world.fail()
    again = world.ask(more)

    assert [tool.call_id for tool in sent.tools] == ["b", "a"]
    assert again.tools == ()
    assert (again.task, again.opens_task) == (sent.task, False)


def test_the_next_question_of_a_person_opens_the_next_task_of_the_session(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask(chat)
    world.answer("There are two flights.")
    second = world.ask([*chat, assistant("There are two flights."), user("Book the earlier one.")], after=12.5)

    assert second.session == first.session
    assert second.task != first.task
    assert (second.evidence, second.opens_task, second.human_wait) == ("extends", True, 12.5)
    assert second.confidence < 1.0


def test_an_observation_sent_as_a_user_message_continues_the_task(world: World) -> None:
    """A text protocol: quick at first, and slow once a command takes its time."""
    chat: Chat = [user("Fix the bug in the parser of this repository, one command at a time.")]
    first = world.ask(chat)
    for command, wait in (("ls", 0.2), ("pytest", 95.0)):
        world.answer(f"Let me run {command}")
        chat += [assistant(f"Let me run {command}"), user(f"<returncode>0</returncode>\n{command} is done")]
        identity = world.ask(chat, after=wait)
        assert (identity.task, identity.opens_task, identity.human_wait) == (first.task, False, None)
        assert identity.confidence < 1.0


def test_other_white_space_and_moved_cache_marks_change_nothing(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask([SYSTEM, {**user(QUESTION), "cache_control": {"type": "ephemeral"}}])
    world.answer("", search())
    marked = {**result("call_0"), "cache_control": {"type": "ephemeral"}}
    second = world.ask([*chat, assistant(None, search()), marked], spaced=True)
    assert (second.task, second.evidence, second.confidence) == (first.task, "tool_result", 1.0)


def test_re_encoded_arguments_and_stripped_reasoning_are_the_same_answer(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask(chat)
    world.answer("<think>Which airport?</think>\n\nLet me look.", IssuedCall("c1", "search", '{"q":"FCO","max":3}'))
    copied = IssuedCall("c1", "search", '{"max": 3, "q": "FCO"}')
    second = world.ask([*chat, assistant("Let me look.", copied), result("c1")])
    assert (second.task, second.confidence) == (first.task, 1.0)
    assert len(second.tools) == 1


def test_a_client_that_drops_answers_is_followed_with_less_confidence(world: World) -> None:
    first = world.ask([SYSTEM, user(QUESTION)])
    world.answer("There are two flights.")
    second = world.ask([SYSTEM, user(QUESTION), user("And back again?")], after=20.0)
    assert (second.session, second.evidence) == (first.session, "extends")
    assert second.confidence == pytest.approx(0.9)


def test_a_short_history_without_its_answer_proves_nothing(world: World) -> None:
    first = world.ask([SYSTEM, user("hi")])
    world.answer("Hello!")
    second = world.ask([SYSTEM, user("hi"), assistant("Good day."), user("What can you do for me?")], after=20.0)
    assert second.session != first.session


def test_two_users_with_the_same_first_words_are_two_sessions(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    one = world.ask(chat)
    one_span = world.span
    two = world.ask(chat, after=0.0)
    two_span = world.span
    assert one.session != two.session
    world.answer("Two flights, at nine and at noon.", span=one_span)
    world.answer("Three flights: nine, noon, and six.", span=two_span)
    chat_two = [*chat, assistant("Three flights: nine, noon, and six."), user("The last.")]
    chat_one = [*chat, assistant("Two flights, at nine and at noon."), user("The first.")]
    assert world.ask(chat_two, after=9.0).session == two.session
    assert world.ask(chat_one, after=9.0).session == one.session


def test_users_answered_alike_each_get_one_continuation(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    spans: list[SpanId] = []
    sessions: set[str] = set()
    for _ in range(2):
        sessions.add(world.ask(chat).session)
        spans.append(world.span)
    for span in spans:
        world.answer("Two flights.", span=span)
    chat += [assistant("Two flights."), user("The first one, please.")]
    both = [world.ask(chat, after=8.0) for _ in range(2)]
    assert {identity.session for identity in both} == sessions
    assert both[0].confidence == pytest.approx(0.5)
    assert [identity.rivals for identity in both] == [1, 0]


def test_a_failed_call_sent_again_is_the_same_task_but_only_once(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask(chat)
    world.fail()
    again = world.ask(chat, headers=AGAIN)
    assert (again.task, again.opens_task) == (first.task, False)
    other = world.ask(chat, headers=AGAIN)
    assert other.task != first.task


def test_equal_questions_that_failed_are_two_tasks_where_nothing_says_that_one_caller_asked_them(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask(chat)
    world.fail()
    second = world.ask(chat)
    assert second.task != first.task
    assert second.opens_task
    assert world.ask(chat, headers={RETRY_HEADER: "0"}).task not in {first.task, second.task}


def test_a_failed_call_sent_again_in_its_declared_session_is_the_same_task(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask(chat, body_session="s-1")
    world.fail()
    assert world.ask(chat, body_session="s-2").task != first.task
    assert world.ask(chat, body_session="s-1").task == first.task


def test_a_failed_call_with_a_history_that_nobody_else_has_is_the_same_task(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask(chat)
    world.answer("", search())
    chat += [assistant(None, search()), result("call_0")]
    world.ask(chat)
    world.fail()
    assert world.ask(chat).task == first.task


def test_a_known_history_sent_again_while_in_flight_is_the_same_task(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    world.ask(chat)
    world.answer("", search())
    chat += [assistant(None, search()), result("call_0")]
    first = world.ask(chat)
    hedge = world.ask(chat, after=2.0)
    assert (hedge.task, hedge.session) == (first.task, first.session)


def test_a_fork_and_a_rewind_stay_in_the_session(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask(chat)
    world.answer("Two flights.")
    asked = [*chat, assistant("Two flights."), user("The first one, please.")]
    second = world.ask(asked, after=8.0)
    world.answer("Booked.")
    third = world.ask([*asked, assistant("Booked."), user("Thank you, and a hotel?")], after=9.0)
    world.answer("Which one?")
    rewound = world.ask([*chat, assistant("Two flights."), user("No, the second one.")], after=15.0)
    assert {second.session, third.session, rewound.session} == {first.session}
    assert len({first.task, second.task, third.task, rewound.task}) == 4


def test_a_sub_agent_belongs_under_the_tool_call_that_opened_it(world: World) -> None:
    prompt = "Find the cheapest flight from Rome to Oslo in May and report its number and its price."
    chat: Chat = [SYSTEM, user(QUESTION)]
    parent = world.ask(chat)
    delegate = IssuedCall("call_1", "task", json.dumps({"description": "flights", "prompt": prompt}))
    world.answer("", delegate)
    inner: Chat = [{"role": "system", "content": "You search."}, user(f"Your task follows.\n{prompt}\nBe brief.")]
    child = world.ask(inner)
    world.answer("", search("call_0"))
    deeper = world.ask([*inner, assistant(None, search("call_0")), result("call_0")])
    world.answer("AZ 88 for 120 euros.")
    back = world.ask([*chat, assistant(None, delegate), result("call_1", "AZ 88 for 120 euros.")])

    assert (child.task, child.session, child.evidence) == (parent.task, parent.session, "sub_agent")
    assert not child.opens_task
    assert child.confidence < 1.0
    assert [child.parent, deeper.parent] == [back.tools[0].span_id] * 2
    assert back.parent is None
    late = world.ask([{"role": "system", "content": "You search."}, user(prompt)])
    assert late.evidence != "sub_agent"


def test_somebody_who_asks_what_an_agent_delegates_word_for_word_is_not_its_sub_agent(world: World) -> None:
    first = world.ask([SYSTEM, user(QUESTION)])
    world.answer("", search("call_0", QUESTION))
    assert world.ask([SYSTEM, user(QUESTION)]).task != first.task


@pytest.mark.parametrize(
    ("system", "evidence"), [(SYSTEM, "compaction"), ({"role": "system", "content": "You plan."}, "hand_over")]
)
def test_an_answer_carried_into_a_new_history_ties_it(world: World, system: dict[str, Any], evidence: str) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask(chat)
    world.answer(f"<summary>{SUMMARY}</summary>")
    carried = world.ask([system, user(f"So far:\n{SUMMARY}\n\nGo on.")], after=2.0)
    assert (carried.task, carried.session, carried.evidence, carried.opens_task) == (
        first.task, first.session, evidence, False,
    )  # fmt: skip
    assert 0.5 < carried.confidence < 1.0


def test_what_two_sessions_were_answered_alike_ties_nothing(world: World) -> None:
    sessions = set[str]()
    for question in ("Tell me about the weather on the moon this week.", "Which horse will win the race on Sunday?"):
        sessions.add(world.ask([SYSTEM, user(question)]).session)
        world.answer("I am sorry, but I can only help with flights and reservations.")
    quoting = "What does it mean: I am sorry, but I can only help with flights and reservations."
    assert world.ask([SYSTEM, user(quoting)]).session not in sessions


def test_a_condensed_history_that_keeps_the_first_question_is_a_compaction(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask(chat)
    world.answer("Two flights.")
    second = world.ask([*chat, assistant("Two flights."), user("Book the first.")], after=9.0)
    world.answer("", search())
    condensed = world.ask([*chat, assistant("Earlier: two flights found."), user("Go on with the booking.")], after=2.0)
    assert (condensed.task, condensed.session, condensed.evidence) == (second.task, first.session, "compaction")


def test_a_history_from_before_the_gateway_started_is_nobodys(world: World) -> None:
    """The same agent with the same tools, in mid-task: yet nothing says that it is the one that we know."""
    tools = b'[{"type":"function"}]'
    world.ask([SYSTEM, user(QUESTION)], tools=tools)
    world.answer("", search())
    unknown: Chat = [SYSTEM, user("Another question."), assistant("Looking."), user("Go on.")]
    assert world.ask(unknown, tools=tools).evidence == "new"


@pytest.mark.parametrize(
    "raw", [b"", b"[", b"{}", b"null", b'[{"role":1}]', b'[{"role":"user","content":{}}]', b"[]", b"\xff"]
)
def test_what_cannot_be_read_is_a_new_task(world: World, raw: bytes) -> None:
    for number in range(2):
        opening = CallOpening(span=SpanId(f"{number}"), tenant="", model="m", messages=raw)
        assert world.identifier.decide(opening, float(number)).evidence == "new"


def test_an_answer_quoted_long_after_its_task_opens_the_sessions_next(world: World) -> None:
    first = world.ask([SYSTEM, user(QUESTION)])
    world.answer(SUMMARY)
    quoted = world.ask([SYSTEM, user(f"You told me this:\n{SUMMARY}\nIs it still so?")], after=3600.0)
    assert (quoted.session, quoted.opens_task, quoted.human_wait) == (first.session, True, 3600.0)
    assert quoted.task != first.task


def test_a_prefilled_answer_continues_the_task(world: World) -> None:
    chat: Chat = [SYSTEM, user(QUESTION)]
    first = world.ask(chat)
    world.answer("Two flights.")
    more = [*chat, assistant("Two flights."), assistant("The first leaves")]
    assert (world.ask(more, after=60.0).task, world.ask(more).opens_task) == (first.task, False)
