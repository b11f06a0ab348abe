"""Limits as people write and read them."""

import pytest

from headway.core.errors import BadInputError
from headway.core.limits import Limit, Measure, read_limit, shown


@pytest.mark.parametrize(
    ("text", "measure", "limit"),
    [
        ("60", "requests", Limit(60)),
        (60, "requests", Limit(60)),
        ("100k", "tokens", Limit(100_000)),
        ("1.5M", "tokens", Limit(1_500_000)),
        ("40_000", "tokens", Limit(40_000)),
        ("0", "concurrency", Limit(0)),
        ("5 USD", "money", Limit(5_000_000)),
        ("$0.02", "money", Limit(20_000)),
        ("0.5", "money", Limit(500_000)),
        (0.000001, "money", Limit(1)),
        ("2 min", "seconds", Limit(120)),
        ("90", "seconds", Limit(90)),
        ("5 USD warn 4 USD", "money", Limit(5_000_000, warn=4_000_000)),
        ("5 USD, warn at 4.50 USD", "money", Limit(5_000_000, warn=4_500_000)),
        ("40 warn 0", "calls", Limit(40, warn=0)),
    ],
)
def test_what_people_write(text: str | float, measure: Measure, limit: Limit) -> None:
    assert read_limit(text, measure, "x") == limit


@pytest.mark.parametrize(
    ("text", "measure", "told"),
    [
        ("many", "requests", "x is 'many', which is no count"),
        ("-1", "requests", "which is no count"),
        (-1, "requests", "which is no count"),
        ("1.5", "requests", "which is no whole number"),
        ("5 EUR", "money", "which is no money"),
        (-5, "money", "which is no money"),
        ("1.5 s", "seconds", "which is no whole number"),
        ("5 USD warn 6 USD", "money", "warn only after it has stopped"),
        ("5 warn 4 warn 3", "calls", "more than two levels"),
        ("9999999999999999999", "tokens", "beyond what can be counted"),
        ("inf", "money", "no money"),
        ("nan", "money", "no money"),
        ("", "calls", "which is no count"),
    ],
)
def test_mistakes_are_told(text: str | float, measure: Measure, told: str) -> None:
    with pytest.raises(BadInputError, match=told):
        read_limit(text, measure, "x")


def test_what_people_read() -> None:
    assert shown(5_000_000, "money") == "5.00 USD"
    assert shown(20_001, "money") == "0.020001 USD"
    assert shown(1, "calls") == "1 call"
    assert shown(100_000, "tokens") == "100,000 tokens"
    assert shown(90, "seconds") == "90 s"
    assert shown(1, "concurrency") == "1 call at once"
