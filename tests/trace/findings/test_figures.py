import pytest

from headway.trace.findings.figures import named, ranked, seconds, share, times


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 ms"),
        (0.00002, "under 0.1 ms"),
        (0.000173, "0.2 ms"),
        (0.0042, "4.2 ms"),
        (0.0412, "41 ms"),
        (0.25, "250 ms"),
        (1, "1.00 s"),
        (42.25, "42.2 s"),
        (1234.5, "1,234 s"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 5, "0 %"),
        (0.01, 5, "under 1 %"),
        (1, 3, "33 %"),
        (4.97, 5, "99 %"),
        (4.99, 5, "over 99 %"),
        (5, 5, "100 %"),
        (0, 0, "0 %"),
    ],
)
def test_shares_that_are_not_all_or_nothing_do_not_read_so(part: float, whole: float, text: str) -> None:
    assert share(part, whole) == text


def test_ratios() -> None:
    assert (times(2.46), times(24.6)) == ("2.5", "25")


def test_the_largest_first_and_the_rest_together() -> None:
    assert ranked({"a": 1, "b": 4, "c": 2}) == "b 4.00 s, c 2.00 s, a 1.00 s"
    assert ranked({"a": 1, "b": 4, "c": 2, "d": 3, "e": 0.5}) == "b 4.00 s, d 3.00 s, c 2.00 s and 2 more 1.50 s"


def test_names_once_each() -> None:
    assert named(["a", "b", "a"]) == "a (2 times), b"
    assert named("abcde") == "a, b, c and 2 more"
