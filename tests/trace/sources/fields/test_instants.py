import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.trace.sources.fields.instants import instant

NOON = 1_767_614_400.25
"""2026-01-05 12:00:00.25 UTC."""


@pytest.mark.parametrize(
    "written",
    [
        "2026-01-05T12:00:00.25Z",
        "2026-01-05T12:00:00.250+00:00",
        "2026-01-05T13:00:00.250+01:00",
        "2026-01-05T12:00:00.250",  # no zone: UTC
        "2026-01-05 12:00:00.250000",
        " 2026-01-05T12:00:00.250000000Z",  # nanoseconds
        NOON,
        NOON * 1e3,
        int(NOON * 1e3),
        NOON * 1e6,
        NOON * 1e9,
    ],
)
def test_one_moment_in_many_spellings(written: object) -> None:
    assert instant(written) == pytest.approx(NOON, abs=1e-6)


@pytest.mark.parametrize("written", [None, "", "soon", True, 0, -5, math.inf, math.nan, 1e30, 10**400, [], {}, "12:00"])
def test_what_is_no_time(written: object) -> None:
    assert instant(written) is None


@given(st.one_of(st.text(), st.integers(), st.floats(), st.datetimes().map(str), st.none()))
def test_it_never_raises_and_is_finite(written: object) -> None:
    found = instant(written)
    assert found is None or math.isfinite(found)
