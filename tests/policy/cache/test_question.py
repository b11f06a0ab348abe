"""Everything but the last words of a person is the setting."""

import msgspec
import pytest

from headway.policy.cache.keys import fields_of
from headway.policy.cache.question import Question, question

ROUTE = "/v1/chat/completions m"
SENT: dict[str, object] = {
    "model": "m",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is X?"}],
}


def question_of(tenant: str, body: bytes) -> Question | None:
    fields = fields_of(body)
    return None if fields is None else question(tenant, ROUTE, fields)


def asked(content: object = "What is X?", role: str = "user", **fields: object) -> Question | None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": role, "content": content}]
    return question_of("t", msgspec.json.encode(SENT | {"messages": messages} | fields))


def test_another_wording_is_asked_in_the_same_setting() -> None:
    one, other = (
        asked("What is X?"),
        asked([{"type": "text", "text": "Tell me X", "cache_control": None}], user="someone"),
    )
    assert one is not None
    assert other is not None
    assert (one.text, other.text) == ("What is X?", "Tell me X")
    assert one.setting == other.setting


@pytest.mark.parametrize("fields", [{"temperature": 1}, {"tools": []}, {"system": "Be rude."}, {"stream": True}])
def test_another_parameter_is_another_setting(fields: dict[str, object]) -> None:
    one, other = asked(), question_of("t", msgspec.json.encode(SENT | fields))
    assert one is not None
    assert other is not None
    assert one.setting != other.setting


def test_another_history_or_tenant_is_another_setting() -> None:
    body = msgspec.json.encode({"messages": [{"role": "user", "content": "hi"}]})
    longer = msgspec.json.encode({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "hi"}]})
    found = [question_of("t", body), question_of("u", body), question_of("t", longer)]
    assert len({one.setting for one in found if one is not None}) == 3


@pytest.mark.parametrize(
    ("content", "role"),
    [
        ("the tool's result", "tool"),
        ("an answer begun", "assistant"),
        ("  ", "user"),
        ([], "user"),
        ([{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "x"}}], "user"),
        ([{"type": "tool_result", "tool_use_id": "a", "content": "b"}], "user"),
        (None, "user"),
    ],
)
def test_what_is_not_a_persons_words_alone_is_no_question(content: object, role: str) -> None:
    assert asked(content, role) is None


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages":[]}', b'{"messages":[1]}', b'{"messages":1}'])
def test_what_is_no_conversation_is_no_question(body: bytes) -> None:
    assert question_of("t", body) is None
