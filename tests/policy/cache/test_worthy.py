import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.usage import Usage
from headway.policy.cache.keys import fields_of
from headway.policy.cache.worthy import MOST_TAGS, TAGS_HEADER, is_complete, is_tag, stands_alone, tags_of, wish_of
from headway.wire.openai import Answer


@pytest.mark.parametrize(
    ("header", "wish"),
    [
        (None, "usual"),
        (b"max-age=60", "usual"),
        (b"no-cache", "anew"),
        (b"max-age=0, No-Cache", "anew"),
        (b"no-cache, no-store", "never"),
        (b'no-store="x"', "never"),
        (b"no-storefront", "usual"),
    ],
)
def test_what_the_request_asks_of_the_cache(header: bytes | None, wish: str) -> None:
    assert wish_of({} if header is None else {b"cache-control": header}) == wish


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        (None, set[str]()),
        (b"", set[str]()),
        (b"docs, v1.2 ,docs,", {"docs", "v1.2"}),
        (b"two words", None),
        (b"a\0b", None),
        (b"x" * 65, None),
        (b",".join(b"%d" % number for number in range(MOST_TAGS)), {str(number) for number in range(MOST_TAGS)}),
        (b",".join(b"%d" % number for number in range(MOST_TAGS + 1)), None),
    ],
)
def test_tags_of_a_request(header: bytes | None, tags: set[str] | None) -> None:
    assert tags_of({} if header is None else {TAGS_HEADER: header}) == tags


@given(st.binary(max_size=80))
def test_whatever_the_header_holds_only_tags_come_of_it(header: bytes) -> None:
    found = tags_of({TAGS_HEADER: header})
    assert found is None or all(map(is_tag, found))


@pytest.mark.parametrize(
    ("extra", "alone"),
    [
        ({}, True),
        ({"n": 1}, True),
        ({"n": None}, True),
        ({"n": 2}, False),
        ({"conversation": "conv_1"}, False),
        ({"conversation": None}, True),
        ({"container": {"id": "c"}}, False),
        ({"background": True}, False),
        ({"background": False}, True),
        ({"tools": [{"properties": {"n": {"type": "integer"}}}]}, True),
        ({"n": "two"}, False),
    ],
)
def test_requests_whose_answer_hangs_on_more_than_themselves(extra: dict[str, object], alone: bool) -> None:
    fields = fields_of(json.dumps({"model": "m", **extra}).encode())
    assert fields is not None
    assert stands_alone(fields) == alone


@pytest.mark.parametrize(
    ("dialect", "finish", "complete"),
    [
        ("openai-chat", "stop", True),
        ("openai-chat", "tool_calls", True),
        ("openai-chat", "length", False),
        ("openai-chat", "content_filter", False),
        ("openai-chat", None, False),
        ("anthropic-messages", "end_turn", True),
        ("anthropic-messages", "tool_use", True),
        ("anthropic-messages", "max_tokens", False),
        ("anthropic-messages", "pause_turn", False),
        ("anthropic-messages", "refusal", False),
        ("openai-responses", "completed", True),
        ("openai-responses", "failed", False),
        ("openai-responses", "cancelled", False),
        ("openai-responses", "max_output_tokens", False),
        ("openai-embeddings", None, False),
        ("anthropic-count-tokens", None, True),
    ],
)
def test_only_what_came_to_its_own_end_is_complete(dialect: str, finish: str | None, complete: bool) -> None:
    assert is_complete(dialect, Answer(finish_reason=finish)) == complete


def test_vectors_have_no_finish_but_tell_their_input() -> None:
    assert is_complete("openai-embeddings", Answer(usage=Usage(input_tokens=3)))
