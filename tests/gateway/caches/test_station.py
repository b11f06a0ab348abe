"""What is kept, what is given, and what is never kept; on a clock that is moved by hand."""

import json

import pytest
from caching import EVENTS, Reader, Rig, completion, said

from headway.core.usage import Usage
from headway.gateway.caches.outcomes import Given, Ticket
from headway.gateway.responses import failure
from headway.policy.cache.labels import Drop
from headway.policy.cache.rules import CacheRule
from headway.wire.dialect import Dialect
from headway.wire.dialects import COUNT_TOKENS, EMBEDDINGS, MESSAGES, RESPONSES
from headway.wire.openai import Answer

STREAM = (
    b'data: {"choices":[{"index":0,"delta":{"content":"be"}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"content":"cause"},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


def test_an_answer_is_given_again_until_it_is_too_old() -> None:
    rig = Rig(CacheRule(name="all", ttl=60.0))
    first = rig.answer(rig.ask().ticket)
    rig.clock.advance(59.0)
    again = rig.ask()
    reader = Reader()
    again.given.deliver(reader, (b"x-headway-task", b"t"))
    assert (reader.status, reader.body, reader.ended, reader.streamed) == (200, first.body, 1, False)
    assert reader.headers == {
        b"content-type": b"application/json",
        b"age": b"59",
        b"x-headway-cache": b"hit",
        b"x-headway-task": b"t",
    }
    rig.clock.advance(1.0)
    assert isinstance(rig.ask().outcome, Ticket)


def test_a_stream_is_given_again_as_the_stream_that_was_relayed_and_apart_from_whole_answers() -> None:
    rig = Rig()
    ticket = rig.ask(more={"stream": True}).ticket
    copy = ticket.copying(Reader())
    copy.begin(200, EVENTS)
    copy.send(STREAM)
    copy.end()
    rig.cache.answered(ticket, answer=None, seconds=1.0, cost=None)
    reader = Reader()
    rig.ask(more={"stream": True}).given.deliver(reader)
    assert (reader.body, reader.streamed, reader.ended) == (STREAM, True, 1)
    assert reader.headers[b"content-type"] == b"text/event-stream"
    assert rig.ask(more={"stream": True}).given.kept.answer.content == "because"
    assert isinstance(rig.ask().outcome, Ticket)


def test_nothing_at_all_where_no_rule_covers_the_call_or_one_says_off() -> None:
    rig = Rig(CacheRule(name="none", mode="off"), CacheRule(name="other", path="/v1/messages", models=("x*",)))
    assert rig.ask().outcome is None
    assert rig.ask(dialect=MESSAGES).outcome is None
    assert rig.cache.report().rules["other"].misses == 0


@pytest.mark.parametrize(
    ("fields", "more", "reason"),
    [
        ({b"cache-control": b"no-store"}, {}, "no-store"),
        ({b"x-headway-cache-tags": b"two words"}, {}, "tags"),
        ({}, {"n": 2}, "request"),
        ({}, {"conversation": "c"}, "request"),
    ],
)
def test_calls_that_pass_the_cache_by(fields: dict[bytes, bytes], more: dict[str, object], reason: str) -> None:
    rig = Rig()
    assert rig.ask(fields=fields, more=more).outcome is None
    assert rig.cache.report().rules["all"].bypassed == {reason: 1}


def test_no_cache_has_the_answer_made_anew_and_keeps_the_new_one() -> None:
    rig = Rig()
    rig.asked_and_answered(answer="old")
    anew = rig.ask(fields={b"cache-control": b"no-cache"})
    assert said(rig.ask().given) == "old"
    rig.answer(anew.ticket, "new")
    assert said(rig.ask().given) == "new"


@pytest.mark.parametrize("finish", ["length", "content_filter", "made_up"])
def test_an_answer_that_did_not_come_to_its_own_end_is_not_kept(finish: str) -> None:
    rig = Rig()
    rig.answer(rig.ask().ticket, finish=finish)
    assert isinstance(rig.ask().outcome, Ticket)
    assert rig.cache.report().rules["all"].not_kept == {"incomplete": 1}


def test_neither_errors_nor_halves_nor_the_too_large_nor_the_encoded_are_kept() -> None:
    rig = Rig(CacheRule(name="all", largest=len(STREAM)))
    whole = completion("because")

    def kept(ticket: Ticket) -> bool:
        rig.cache.answered(ticket, answer=None, seconds=1.0, cost=None)
        return bool(rig.cache.report().memory.entries)

    ticket = rig.ask().ticket
    ticket.copying(Reader()).respond(500, whole)
    assert not kept(ticket)
    ticket = rig.ask().ticket
    ticket.copying(Reader()).fail(failure("upstream_timeout", 504, "late"))
    assert not kept(ticket)
    assert not kept(rig.ask().ticket)
    for pieces, close in (((STREAM[:70],), False), ((STREAM,), True), ((STREAM, b":\n\n"), False), ((b"{",), False)):
        ticket = rig.ask().ticket
        copy = ticket.copying(Reader())
        copy.begin(200, EVENTS)
        for piece in pieces:
            copy.send(piece)
        copy.end(close=close)
        assert not kept(ticket)
    ticket = rig.ask().ticket
    ticket.copying(Reader()).respond(200, whole, [(b"content-encoding", b"gzip")])
    assert not kept(ticket)
    ticket = rig.ask().ticket
    ticket.copying(Reader()).respond(200, b"no JSON")
    assert not kept(ticket)
    ticket = rig.ask().ticket
    ticket.copying(Reader()).respond(200, whole)
    assert kept(ticket)


@pytest.mark.parametrize(
    ("dialect", "body", "kept"),
    [
        (MESSAGES, {"type": "message", "content": [], "stop_reason": "end_turn"}, True),
        (MESSAGES, {"type": "message", "content": [], "stop_reason": "max_tokens"}, False),
        (RESPONSES, {"object": "response", "status": "completed", "output": []}, True),
        (RESPONSES, {"object": "response", "status": "queued", "output": []}, False),
        (EMBEDDINGS, {"data": [], "usage": {"prompt_tokens": 3}}, True),
        (EMBEDDINGS, {"error": "none"}, False),
        (COUNT_TOKENS, {"input_tokens": 7}, True),
    ],
)
def test_every_dialect_says_in_its_own_words_what_is_complete(
    dialect: Dialect, body: dict[str, object], kept: bool
) -> None:
    rig = Rig(CacheRule(name="all", path=f"/v1{dialect.path.decode()}"))
    ticket = rig.ask(dialect=dialect).ticket
    ticket.copying(Reader()).respond(200, json.dumps(body).encode())
    rig.cache.answered(ticket, answer=None, seconds=1.0, cost=None)
    assert isinstance(rig.ask(dialect=dialect).outcome, Given) == kept


def test_what_was_read_of_the_answer_already_is_not_read_again() -> None:
    rig = Rig()
    ticket = rig.ask().ticket
    ticket.copying(Reader()).respond(200, b"nobody looks into it")
    answer = Answer(content="because", finish_reason="stop", usage=Usage(output_tokens=1))
    rig.cache.answered(ticket, answer=answer, seconds=1.0, cost=None)
    assert rig.ask().given.kept.answer is answer


def test_a_stale_answer_is_given_while_one_call_makes_it_anew() -> None:
    rig = Rig(CacheRule(name="all", ttl=60.0, stale=30.0))
    rig.asked_and_answered(answer="old")
    rig.clock.advance(60.0)
    first, second = rig.ask().given, rig.ask().given
    assert (first.how, second.how, said(first), first.age) == ("stale", "stale", "old", 60)
    assert first.refresh is not None
    assert second.refresh is None
    rig.answer(first.refresh, "new")
    assert (rig.ask().given.how, said(rig.ask().given)) == ("hit", "new")


def test_a_refresh_that_fails_is_tried_again_by_the_next_and_past_stale_the_call_is_made() -> None:
    rig = Rig(CacheRule(name="all", ttl=60.0, stale=30.0))
    rig.asked_and_answered(answer="old")
    rig.clock.advance(60.0)
    refresh = rig.ask().given.refresh
    assert refresh is not None
    rig.cache.failed(refresh)
    again = rig.ask().given
    assert (said(again), again.refresh is None) == ("old", False)
    rig.clock.advance(30.0)
    waiting = rig.ask()
    assert again.refresh is not None
    rig.answer(again.refresh, "new")
    assert said(waiting.given) == "new"


def test_another_version_of_a_rule_knows_nothing_of_the_first() -> None:
    keys = [Rig(CacheRule(name="all", version=version)).ask().ticket.key for version in ("1", "2", "1")]
    assert keys[0] == keys[2] != keys[1]


def test_what_engines_answer_differently_to_is_another_question() -> None:
    rig = Rig(CacheRule(name="all", path="/v1/messages"))
    plain = rig.ask(dialect=MESSAGES).ticket
    beta = rig.ask(dialect=MESSAGES, fields={b"anthropic-beta": b"a"}).ticket
    other = rig.ask(dialect=MESSAGES, fields={b"anthropic-beta": b"b", b"x-other": b"1"}).ticket
    assert len({plain.key, beta.key, other.key}) == 3


@pytest.mark.parametrize(
    ("drop", "left"),
    [
        (Drop(tags=("docs",)), {"a2", "b1"}),
        (Drop(tags=("docs", "v1")), {"b1"}),
        (Drop(tags=("docs",), tenant="b"), {"a1", "a2", "b1"}),
        (Drop(tags=("house",)), set[str]()),
        (Drop(tenant="a"), {"b1", "b2"}),
        (Drop(rule="all"), set[str]()),
        (Drop(rule="all", version="7"), set[str]()),
        (Drop(rule="all", version="6"), {"a1", "a2", "b1", "b2"}),
        (Drop(everything=True), set[str]()),
    ],
)
def test_answers_are_dropped_by_tag_tenant_rule_and_version(drop: Drop, left: set[str]) -> None:
    rig = Rig(CacheRule(name="all", version="7", tags=frozenset({"house"})))
    tags = {"a1": b"docs", "a2": b"v1", "b1": b"other", "b2": b"docs"}
    for name, tag in tags.items():
        rig.asked_and_answered(name, tenant=name[0], fields={b"x-headway-cache-tags": tag})
    assert rig.cache.drop(drop) == 4 - len(left)
    assert {name for name in tags if isinstance(rig.ask(name, tenant=name[0]).outcome, Given)} == left


def test_what_is_being_answered_when_it_is_dropped_reaches_those_who_waited_and_is_not_kept() -> None:
    rig = Rig()
    leader, before = rig.ask(fields={b"x-headway-cache-tags": b"docs"}), rig.ask()
    rig.cache.drop(Drop(tags=("docs",)))
    after = rig.ask()
    rig.answer(leader.ticket, "old")
    assert said(before.given) == "old"
    assert isinstance(rig.ask().outcome, type(before.wait))
    rig.answer(after.ticket, "new")
    assert said(rig.ask().given) == "new"


def test_room_is_bounded_in_bytes() -> None:
    rig = Rig(limit=4000)
    for number in range(20):
        rig.asked_and_answered(f"question {number}")
    memory = rig.cache.report().memory
    assert memory.bytes <= 4000
    assert rig.cache.report().changes.evicted == 20 - memory.entries


def test_callers_without_a_tenant_share_only_with_their_own_credential() -> None:
    rig = Rig()
    mine = {b"authorization": b"Bearer a"}
    rig.asked_and_answered(tenant=None, fields=mine)
    assert isinstance(rig.ask(tenant=None, fields=mine).outcome, Given)
    assert isinstance(rig.ask(tenant=None, fields={b"authorization": b"Bearer b"}).outcome, Ticket)
    assert isinstance(rig.ask(tenant=None).outcome, Ticket)


def test_figures() -> None:
    rig = Rig(CacheRule(name="all", ttl=60.0, stale=60.0))
    leader, waiting = rig.ask(), rig.ask()
    rig.clock.advance(0.5)
    rig.answer(leader.ticket, seconds=2.0)
    rig.ask()
    rig.clock.advance(60.0)
    rig.ask()
    figures, size = rig.cache.report().rules["all"], len(waiting.given.kept.body)
    assert figures.hits == {"flight": 1, "memory": 1, "stale": 1}
    assert (figures.misses, figures.refreshes, figures.kept) == (1, 1, 1)
    assert (figures.bytes_served, figures.seconds_saved, figures.cost_saved) == (3 * size, 5.5, 1500)


def test_telling_twice_is_telling_once() -> None:
    rig = Rig()
    ticket = rig.ask().ticket
    rig.answer(ticket, "one")
    rig.cache.failed(ticket)
    rig.cache.not_kept(ticket)
    rig.cache.answered(ticket, answer=None, seconds=1.0, cost=None)
    assert said(rig.ask().given) == "one"
