import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.trace.sources.digests import arguments_digest, part, span_id, task_id


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Today is 2026-11-30.", "Today is 2026-12-01."),
        ("It is 2026-11-30T10:02:03.123Z now", "It is 2026-11-30T10:02:04Z now"),
        ("The time is 9:15 AM, Monday", "The time is 11:59 PM, Tuesday"),
        ("On Nov 3, 2026 we met", "On December 14th, 2025 we met"),
        ("run 7f3c2f0a-9d7e-4a55-8a1e-0c6f7f2b9e10", "run 11111111-2222-4333-8444-555555555555"),
        ("id 9f86d081884c7d659a2feaa0", "id 60303ae22b998861bce3b28f"),
        ("call_9xk2mQ41ab said", "call_b71ZZ0cd12 said"),
        ("at 1790000000", "at 1790000999"),
    ],
)
def test_what_differs_in_times_or_ids_only_has_one_shape(one: str, other: str) -> None:
    a, b = part("system", one), part("system", other)
    assert a.digest != b.digest
    assert a.shape == b.shape


@pytest.mark.parametrize(
    ("one", "other"),
    [("You are helpful.", "You are harmful."), ("use 5 tools", "use 6 tools"), ("Montag", "Dienstag")],
)
def test_what_differs_in_words_has_two(one: str, other: str) -> None:
    assert part("system", one).shape != part("system", other).shape


def test_the_role_counts() -> None:
    assert part("user", "a").digest != part("system", "a").digest


def test_arguments_are_compared_by_meaning() -> None:
    assert arguments_digest('{"a": 1, "b": [2]}') == arguments_digest({"b": [2], "a": 1})
    assert arguments_digest('{"a": 1}') != arguments_digest('{"a": 2}')
    assert arguments_digest("ls -la") == arguments_digest("ls -la")


def test_ids_are_stable_and_of_the_right_length() -> None:
    assert span_id("s", "1") == span_id("s", "1") != span_id("s1", "")
    assert (len(span_id("a")), len(task_id("a"))) == (16, 32)


@given(st.text())
def test_any_text_has_a_digest(text: str) -> None:
    made = part("user", text)
    assert made.chars == len(text)
    assert len(made.digest) == len(made.shape) == 16
    assert len(arguments_digest(text)) == 16
