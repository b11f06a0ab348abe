"""What a judge is asked, and what is read of its verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.policy.models.judge import question, score_of


@pytest.mark.parametrize(
    ("verdict", "score"),
    [
        ("85", 0.85),
        (" 100 ", 1.0),
        ("0", 0.0),
        ("The number: 7.", 0.07),
        ("<think>of 3 facts 2 are right</think> 66", 0.66),
        ("62.5", 0.62),
        ("90/100", 1.0),
        ("", None),
        ("no idea", None),
        ("7777", None),
        ("model4", None),
    ],
)
def test_scores(verdict: str, score: float | None) -> None:
    assert score_of(verdict) == score


@given(st.text())
def test_any_verdict_gives_a_share_or_nothing(verdict: str) -> None:
    score = score_of(verdict)
    assert score is None or 0 <= score <= 1


def test_the_judge_is_shown_both_between_marks() -> None:
    system, user = question('[{"role":"user"}]', "forty-two")
    assert (system["role"], user["role"]) == ("system", "user")
    assert '<<<CONVERSATION\n[{"role":"user"}]\nCONVERSATION>>>' in user["content"]
    assert "<<<ANSWER\nforty-two\nANSWER>>>" in user["content"]
