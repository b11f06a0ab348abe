"""Refusals in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.policy.models.declining import declines


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I\u2019m sorry, I can\u2019t assist with that request.",
        "Sorry, I cannot provide medical advice.",
        "I apologize, but I am not able to fulfill this request.",
        "As an AI language model, I cannot answer questions about the future.",
        "Unfortunately, I'm unable to access your files.",
        "I can't answer that.\n\nTry asking a lawyer.",
        "  I won't write that.",
    ],
)
def test_english_refusals(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Berlin.",
        "I'm sorry to hear that your train was late. Here is how to claim a refund: …",
        "I can't believe it: the answer is 42.",
        "The user says: I can't help with that.",
        "Sure. " + "x" * 500 + " I can't help with that.",
        "I cannot stress enough that tests matter.",
        "Sorry for the wait! The build is green.",
    ],
)
def test_what_is_none(text: str) -> None:
    assert not declines(text)


@given(st.text(max_size=2000))
def test_any_text_will_do(text: str) -> None:
    assert declines(text) in {True, False}
