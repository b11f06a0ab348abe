"""Embeddings pass as they are; what is read of them is who is asked and what it cost."""

from typing import Any

import pytest
from hypothesis import given

from headway.core.errors import BadInputError, UpstreamError
from headway.core.usage import Usage
from headway.wire.embeddings import OpenAIEmbeddings
from headway.wire.openai import NULL, Answer
from wire import JSON, damaged, encode

DIALECT = OpenAIEmbeddings()
ANSWER: dict[str, Any] = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": "AACAPw=="}],
    "model": "e5",
    "usage": {"prompt_tokens": 5, "total_tokens": 5},
}


@pytest.mark.parametrize("given_input", ["text", ["a", "b"], [1, 2], [[1, 2], [3]]])
def test_each_form_of_input_is_taken(given_input: Any) -> None:  # noqa: ANN401 - any JSON
    body = encode({"model": "e5", "input": given_input, "encoding_format": "base64", "dimensions": 4})
    request = DIALECT.read(body)
    assert request.model == "e5"
    assert bytes(request.input) == encode(given_input)
    assert request.messages == request.tools == NULL
    assert (request.output_limit, request.session, request.stream) == (0, None, False)
    assert request.asking_for_usage(body) is None


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not valid JSON"),
        (b'{"input":"x"}', "`model`"),
        (b'{"model":"m"}', "`input`"),
        (b'{"model":"m","input":{}}', "neither a text nor an array"),
        (b'{"model":"m","input":null}', "neither a text nor an array"),
        (b'{"model":"m","input":""}', "`input` is empty"),
        (b'{"model":"m","input":[ ]}', "`input` is empty"),
    ],
)
def test_a_bad_request_is_told_what_and_where(body: bytes, says: str) -> None:
    with pytest.raises(BadInputError, match=says) as caught:
        DIALECT.read(body)
    assert caught.value.fix


def test_what_an_answer_cost() -> None:
    answer = DIALECT.answer(encode(ANSWER))
    assert (answer.usage, answer.model) == (Usage(input_tokens=5, output_tokens=0), "e5")
    assert DIALECT.answer(b'{"data":[]}').usage == Usage()
    with pytest.raises(UpstreamError, match="not valid JSON"):
        DIALECT.answer(b"<html>")


@given(JSON | damaged(ANSWER))
def test_any_json_is_an_answer(value: Any) -> None:  # noqa: ANN401 - any JSON
    assert isinstance(DIALECT.answer(encode(value)), Answer)


@given(JSON | damaged({"model": "m", "input": ["a", [1]]}))
def test_any_json_is_read_or_refused(value: Any) -> None:  # noqa: ANN401 - any JSON
    try:
        assert DIALECT.read(encode(value)).input
    except BadInputError as error:
        assert error.fix  # noqa: PT017 - either is right
