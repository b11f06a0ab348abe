from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unhurried import UNHURRIED

from headway.trace.scaling.curve import Point
from headway.trace.scaling.knee import knee
from headway.trace.scaling.segments import Segments
from headway.trace.scaling.usl import Usl

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)


def test_a_peak_within_the_range() -> None:
    """N* = √(0.98 / 0.0002) = 70; 95 % of what is reached there is reached at 46, not yet at 45.

    X(70) = 55·70 / (1 + 0.02·69 + 0.0002·70·69) = 3850 / 3.346 = 1150.6, of which 95 % are 1093.1.
    X(45) = 2475 / (1.88 + 0.396) = 1087.4; X(46) = 2530 / (1.9 + 0.414) = 1093.3.
    """
    law = Usl(alone=55, contention=0.02, crosstalk=0.0002, error=0)
    found = knee([Point(n, law.rate(n)) for n in WIDTHS])
    assert found is not None
    assert found.peak == pytest.approx(70)
    assert found.width == 46
    assert str(found) == "1 to 128 at once were measured; the peak is at 70; 46 at once reach 95% of the most"


def test_a_fixed_number_of_places() -> None:
    """95 % of 8 places are 7.6, so 8."""
    found = knee([Point(n, 3.0 * min(n, 8)) for n in WIDTHS])
    assert found is not None
    assert isinstance(found.fit, Segments)
    assert (found.width, found.peak) == (8, None)
    assert found.rate == pytest.approx(24)
    assert "from 8 on, as where there are so many places; 8 at once" in str(found)


def test_no_peak_in_range_is_said() -> None:
    """It grows without bound, so nearly all of the range is needed: 95 % of 128 is 121.6."""
    found = knee([Point(n, 2.0 * n) for n in WIDTHS])
    assert found is not None
    assert (found.width, found.peak) == (122, None)
    assert "no peak in range" in str(found)


def test_a_peak_beyond_what_was_measured_is_not_claimed() -> None:
    """N* = 70, and 32 at once is the most that was measured."""
    law = Usl(alone=55, contention=0.02, crosstalk=0.0002, error=0)
    found = knee([Point(n, law.rate(n)) for n in (1, 2, 4, 8, 16, 32)])
    assert found is not None
    assert found.peak is None
    assert found.width <= 32
    assert "no peak in range" in str(found)


def test_more_workers_are_not_chosen_where_they_bring_nothing() -> None:
    """X(N) = N / (1 + 0.2 (N - 1)) never falls. 128 reach 4.848, of which 95 % are 4.606.

    From there N = 4.606·0.8 / (1 - 4.606·0.2) = 46.8.
    """
    law = Usl(alone=1, contention=0.2, crosstalk=0, error=0)
    found = knee([Point(n, law.rate(n)) for n in WIDTHS])
    assert found is not None
    assert (found.width, found.peak) == (47, None)


def test_what_is_expected_at_the_knee_is_what_was_to_be_had() -> None:
    """Of 30 noisy curves of each kind, the width that is picked gives 90 % of the best that there is in the range."""
    dice = Random(11)
    law = Usl(alone=20, contention=0.05, crosstalk=0.001, error=0)

    def places(count: int) -> Callable[[float], float]:
        return lambda n: 6.0 * min(n, count)

    for true in (law.rate, places(24), places(5)):
        best = max(true(n) for n in range(1, 129))
        for _ in range(30):
            found = knee([Point(n, true(n) * (1 + 0.03 * dice.gauss())) for n in WIDTHS])
            assert found is not None
            assert true(found.width) >= 0.9 * best


@UNHURRIED
@given(st.lists(st.tuples(st.integers(1, 300), st.floats(1e-3, 1e6)), max_size=20))
def test_the_width_is_never_beyond_what_was_measured(drawn: list[tuple[int, float]]) -> None:
    found = knee([Point(width, rate) for width, rate in drawn])
    if len({width for width, _ in drawn}) < 4:
        assert found is None
    if found is not None:
        assert min(width for width, _ in drawn) <= found.width <= max(width for width, _ in drawn)
        assert found.rate > 0
