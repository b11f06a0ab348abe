"""What every dialect must do, whichever it is, and the chat that stands behind the same seam."""

import json

import pytest
from msgspec import Struct

from headway.core.errors import BadInputError
from headway.wire.dialect import Dialect
from headway.wire.dialects import ALL, BY_NAME, BY_PATH, CHAT, COUNT_TOKENS, EMBEDDINGS, MESSAGES, RESPONSES
from wire import data_of


class Refused(Struct):
    """A refusal."""

    status: int
    message: str = "No replica. Try again."
    error: str = "no_replica"


EACH = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)


def test_paths_are_those_that_clients_ask() -> None:
    assert BY_PATH == {
        b"/v1/chat/completions": CHAT,
        b"/v1/responses": RESPONSES,
        b"/v1/embeddings": EMBEDDINGS,
        b"/v1/messages": MESSAGES,
        b"/v1/messages/count_tokens": COUNT_TOKENS,
    }
    assert BY_NAME["openai-chat"] is CHAT


@EACH
def test_errors_name_the_reason_and_tell_what_to_do(dialect: Dialect) -> None:
    for status in (400, 503):
        error = json.loads(dialect.error(Refused(status)))["error"]
        assert (error["message"], error["code"]) == ("No replica. Try again.", "no_replica")
        (event,) = data_of(dialect.error_event(Refused(status)))
        assert b"No replica. Try again." in event


@EACH
def test_streams_are_followed_from_nothing(dialect: Dialect) -> None:
    followed = dialect.follow(100)
    assert {followed.done, followed.complete, followed.failed} == {False}
    assert followed.first_token is followed.first_visible is followed.last_token is followed.itl() is None
    assert followed.answer().usage.input_tokens is None
    assert not dialect.only_usage(b"{}")
    assert not dialect.ended(b"data: {}\n\n")


@EACH
def test_keys_are_sent_where_they_may_be_read(dialect: Dialect) -> None:
    fields = dict(dialect.key_header(b"secret"))
    assert any(b"secret" in fields.get(name, b"") for name in dialect.key_fields)
    assert fields.keys() <= {*dialect.key_fields, *dialect.own_fields}


@EACH
def test_models_are_listed(dialect: Dialect) -> None:
    assert [each["id"] for each in json.loads(dialect.models(["a", "b"]))["data"]] == ["a", "b"]


@EACH
def test_nothing_is_read_of_nothing(dialect: Dialect) -> None:
    with pytest.raises(BadInputError):
        dialect.read(b"")


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({}, None),
        ({"max_tokens": 5}, 5),
        ({"max_tokens": 5, "max_completion_tokens": 7}, 7),
        ({"max_completion_tokens": None}, None),
        ({"max_tokens": "many"}, None),
    ],
)
def test_the_limit_of_a_chat(fields: dict[str, object], limit: int | None) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}], **fields}).encode()
    assert CHAT.read(body).output_limit == limit


def test_a_chats_stream_is_asked_for_its_usage_and_says_when_it_ends() -> None:
    body = b'{"model":"m","messages":[{"role":"user"}]}'
    pieces = CHAT.read(body).asking_for_usage(body)
    assert pieces is not None
    assert json.loads(b"".join(map(bytes, pieces)))["stream_options"] == {"include_usage": True}
    assert CHAT.ended(b"data: {}\n\ndata: [DONE]\n\n")
    assert CHAT.only_usage(b'{"choices":[],"usage":{}}')
    assert CHAT.answer(b'{"choices":[{"message":{"content":"hi"}}]}').content == "hi"


@pytest.mark.parametrize(
    ("said", "choices"), [("", 1), (',"n":3', 3), (',"n":null', 1), (',"n":"two"', 1), (',"n":0', 1)]
)
def test_how_many_answers_a_chat_asks_for(said: str, choices: int) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"\\"n\\": 9"}]%b}' % said.encode()
    assert CHAT.read(body).choices == choices
