from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unhurried import UNHURRIED

from headway.trace.scaling.curve import Point
from headway.trace.scaling.segments import fit_segments

WIDTHS = (1, 2, 4, 8, 16, 32, 64)


@pytest.mark.parametrize("places", [2, 4, 6, 8, 11, 30])
def test_a_fixed_number_of_places_is_found(places: int) -> None:
    found = fit_segments([Point(n, 5.0 * min(n, places)) for n in WIDTHS])
    assert found is not None
    assert found.bend == pytest.approx(places, rel=1e-4)
    assert found.before == pytest.approx(5)
    assert found.after == pytest.approx(0, abs=1e-3)
    assert found.rate(3) == pytest.approx(5 * min(3, places))
    assert found.rate(50) == pytest.approx(5 * places)


def test_a_curve_that_falls_after_the_bend() -> None:
    found = fit_segments([Point(n, 10.0 * min(n, 8) - 0.5 * max(0, n - 8)) for n in WIDTHS])
    assert found is not None
    assert found.bend == pytest.approx(8)
    assert found.after == pytest.approx(-0.5)


def test_the_bend_is_found_through_noise() -> None:
    dice = Random(3)
    for _ in range(20):
        found = fit_segments([Point(n, 5.0 * min(n, 12) * (1 + 0.03 * dice.gauss())) for n in WIDTHS])
        assert found is not None
        assert 10.5 < found.bend < 13.5


@UNHURRIED
@given(st.floats(0.01, 1e4))
def test_a_straight_line_has_no_bend(slope: float) -> None:
    assert fit_segments([Point(n, slope * n) for n in WIDTHS]) is None


def test_fewer_than_four_widths_tell_no_shape() -> None:
    assert fit_segments([Point(n, 5.0 * min(n, 2)) for n in (1, 2, 4)]) is None
    assert fit_segments([]) is None
