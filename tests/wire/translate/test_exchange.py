"""Who can be served by whom, and what an answer repeats of its request."""

import json

from interpreting import CREATED

from headway.wire.dialects import ALL, CHAT, COUNT_TOKENS, EMBEDDINGS, MESSAGES, RESPONSES
from headway.wire.translate.exchange import Exchange, asked_in, translates
from wire import encode


def test_what_translates_into_what() -> None:
    pairs = {(caller.name, engine.name) for caller in ALL for engine in ALL if translates(caller, engine)}
    assert pairs == {
        (MESSAGES.name, CHAT.name),
        (COUNT_TOKENS.name, CHAT.name),
        (COUNT_TOKENS.name, MESSAGES.name),
        (RESPONSES.name, CHAT.name),
        (RESPONSES.name, MESSAGES.name),
        (CHAT.name, MESSAGES.name),
    }


def test_engines_are_asked_in_the_callers_own_dialect_where_they_speak_it() -> None:
    assert asked_in(CHAT, [MESSAGES, CHAT]) is CHAT
    assert asked_in(COUNT_TOKENS, [MESSAGES, COUNT_TOKENS]) is COUNT_TOKENS
    assert asked_in(RESPONSES, [EMBEDDINGS, CHAT, MESSAGES]) is CHAT
    assert asked_in(EMBEDDINGS, [CHAT, MESSAGES]) is None


def test_a_responses_answer_repeats_its_request() -> None:
    body = {"model": "m", "input": "x", "metadata": {"a": "b"}, "temperature": 0.5, "tools": None}
    exchange = Exchange(RESPONSES, CHAT, encode(body), created=CREATED)
    told = json.loads(exchange.answer(b'{"id":"c","choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}'))
    assert (told["metadata"], told["temperature"], told["tools"]) == ({"a": "b"}, 0.5, [])
    assert (told["created_at"], told["id"], told["model"]) == (CREATED, "resp_c", "m")
