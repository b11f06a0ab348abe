from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unhurried import UNHURRIED

from headway.core.errors import BadInputError
from headway.runtime.chunking import Stamps

NOON = 1_796_040_001.0
"""2026-11-30 12:00:01 UTC: 20,787 days and 43,201 seconds after 1970-01-01."""


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-30T12:00:01Z started",
        "2026-11-30 12:00:01 started",
        "2026/11/30 12:00:01 [error] 7#7: started",
        "2026-11-30T13:00:01+01:00 started",
        "2026-11-30T13:00:01+0100 started",
        "2026-11-30 07:00:01 -0500 started",
        "[2026-11-30 12:00:01] started",
        "INFO 2026-11-30 12:00:01 started",
        "web-1  | 2026-11-30T12:00:01Z started",
        "<34>1 2026-11-30T12:00:01Z host app - - started",
        '10.0.0.1 - frank [30/Nov/2026:12:00:01 +0000] "GET / HTTP/1.1" 200 5',
        "[Mon Nov 30 12:00:01 2026] [error] started",
        'time="2026-11-30T12:00:01Z" level=info msg=started',
        "level=info msg=started well and in order ts=2026-11-30T12:00:01Z",
        '{"ts":"2026-11-30T12:00:01Z","msg":"started"}',
        '{"msg": "due 2020-01-01 00:00:00", "@timestamp": "2026-11-30T12:00:01Z"}',
        '{"level":"info","time":1796040001,"msg":"started"}',
        '{"timestamp": 1796040001000}',
        "1796040001 started",
        "[1796040001] started",
        "1796040001000 started",
        "1796040001000000 started",
        "1796040001000000000 started",
    ],
)
def test_what_programs_write(line: str) -> None:
    assert Stamps()(line) == NOON


@pytest.mark.parametrize(
    "line",
    ["Nov 30 12:00:01 host sshd[1]: started", "<13>Nov 30 12:00:01 host x", "I1130 12:00:01.000000 7 main.go:1] x"],
)
def test_years_that_are_not_written_are_given(line: str) -> None:
    assert Stamps(year=2026)(line) == NOON
    with pytest.raises(BadInputError, match=r"names no year.*Stamps\(year=2026\)"):
        Stamps()(line)


def test_parts_of_a_second() -> None:
    assert Stamps()("2026-11-30 12:00:01,250 INFO x") == NOON + 0.25
    assert Stamps()("2026-11-30T12:00:01.5Z x") == NOON + 0.5
    assert Stamps()("1796040001.75 x") == NOON + 0.75
    assert Stamps(year=2026)("E1130 12:00:01.125000 7 x") == NOON + 0.125


def test_a_clock_without_a_zone_may_be_ahead() -> None:
    seoul = Stamps(utc_offset=9 * 3600.0)
    assert seoul("2026-11-30 21:00:01 x") == NOON
    assert seoul("2026-11-30T12:00:01Z x") == NOON


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\n",
        "  at 2026-11-30 12:00:01",
        "Traceback (most recent call last):",
        "2026-13-30 12:00:01 no such month",
        "2026-02-30 12:00:01 no such day",
        "2026-11-30 25:00:01 no such hour",
        "ValueError: the certificate has expired on the 2026-11-30 12:00:01",
        "12:00:01 no day",
        "12345 no time",
        "10.0.0.1 is no time",
        "x" * 5000,
    ],
)
def test_lines_without_a_time(line: str) -> None:
    assert Stamps()(line) is None


@UNHURRIED
@given(st.text(max_size=200))
def test_no_line_breaks_it(line: str) -> None:
    found = Stamps(year=2026)(line)
    assert found is None or isinstance(found, float)


@UNHURRIED
@given(st.datetimes().filter(lambda when: when.year >= 1000))
def test_every_time_that_is_written_as_the_standard_says_is_read(when: datetime) -> None:
    expected = when.replace(tzinfo=UTC).timestamp()
    found = Stamps()(f"{when} x")
    assert found is not None
    assert abs(found - expected) < 1e-4
