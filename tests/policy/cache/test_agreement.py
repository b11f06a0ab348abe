import pytest

from headway.policy.cache.agreement import agreement
from headway.wire.openai import Answer, ToolCall


def said(text: str, *calls: tuple[str, str]) -> Answer:
    return Answer(content=text, tool_calls=tuple(ToolCall(f"id{at}", *call) for at, call in enumerate(calls)))


@pytest.mark.parametrize(
    ("kept", "fresh", "found"),
    [
        (said("It takes 30 days."), said("it takes 30 days"), "same"),
        (said("It takes 30 days."), said("You have 30 days for it."), "open"),
        (said("It takes 30 days."), said("You have 14 days for it."), "different"),
        (said("It is allowed."), said("It is not allowed."), "different"),
        (said("", ("find", '{"a": 1, "b": 2}')), said("", ("find", '{"b":2,"a":1}')), "same"),
        (said("", ("find", '{"a": 1}')), said("", ("find", '{"a": 2}')), "different"),
        (said("", ("find", "{")), said("", ("find", "{")), "same"),
        (said("", ("find", "{}")), said(""), "different"),
    ],
)
def test_whether_two_answers_say_the_same(kept: Answer, fresh: Answer, found: str) -> None:
    assert agreement(kept, fresh) == found
    assert agreement(fresh, kept) == found
