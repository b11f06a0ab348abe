"""Pairs of questions as a person judges them: may the answer to one serve the other?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.policy.cache.guards import disagreement, marks

SAME = [
    ("What is the capital of France?", "Tell me the capital of France"),
    ("How do I turn on logs", "How can I turn on logs?"),
    ("What happened on March 3, 2024?", "what happened 2024-03-03"),
    ("What happened on 3rd of March 2024?", "what happened on Mar 3 2024"),
    ("Support 1,000 users", "support for 1000 users"),
    ("two cats", "2 cats"),
    ("Is 5 % enough?", "is 5 percent enough"),
    ("Is 1.50 right?", "is 1.5 right"),
    ("서울의 인구는 얼마인가요?", "서울 인구가 얼마야?"),
    ("2023년 3월 매출", "2023-03 매출"),
]
OTHER = [
    ("What was revenue in 2023?", "What was revenue in 2024?", "numbers"),
    ("What was revenue in March 2023?", "What was revenue in April 2023?", "dates"),
    ("What did we sell last week?", "What did we sell this week?", "dates"),
    ("Is 5% fine?", "Is 5 fine?", "numbers"),
    ("What is -3 plus 1?", "What is 3 plus 1?", "numbers"),
    ("Upgrade to 1.2.10", "Upgrade to 1.2.1", "numbers"),
    ("Ping 10.0.0.1", "Ping 10.0.0.2", "numbers"),
    ("Which flights do not stop?", "Which flights stop?", "negation"),
    ("I can't log in", "I can log in", "negation"),
    ("Coffee without milk", "Coffee plus milk", "negation"),
    ("How do I enable logs?", "How do I disable logs?", "opposites"),
    ("List files", "List all files", "opposites"),
    ("What is the capital of France?", "What is the capital of Spain?", "names"),
    ("Where is parse_args defined?", "Where is parse_known defined?", "names"),
    ("Mail anna@red.example", "Mail anna@blue.example", "names"),
    ("Read /etc/hosts", "Read /etc/passwd", "names"),
    ("Explain `foo`", "Explain `bar`", "quoted"),
    ("서울 인구는 2023년 3월 얼마인가", "서울 인구는 2023년 4월 얼마인가", "dates"),
    ("로그를 켜는 법", "로그를 끄는 법", "opposites"),
    ("문이 열리지 않아", "문이 열려", "negation"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_answer_may_serve_both(one: str, other: str) -> None:
    assert disagreement(marks(one), marks(other)) is None


@pytest.mark.parametrize(("one", "other", "guard"), OTHER)
def test_one_answer_may_not_serve_both(one: str, other: str, guard: str) -> None:
    assert disagreement(marks(one), marks(other)) == guard
    assert disagreement(marks(other), marks(one)) == guard


@given(st.text(max_size=80))
def test_any_question_agrees_with_itself(question: str) -> None:
    assert disagreement(marks(question), marks(question)) is None


@given(st.sampled_from([one for pair in SAME for one in pair]), st.integers(13, 10**6), st.integers(13, 10**6))
def test_another_number_is_another_question(question: str, one: int, other: int) -> None:
    found = disagreement(marks(f"{question} for {one} users"), marks(f"{question} for {other} users"))
    assert (found is None) == (one == other)
