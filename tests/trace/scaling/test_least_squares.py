from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unhurried import UNHURRIED

from headway.trace.scaling.least_squares import fit


def relative(rows: Sequence[tuple[float, ...]], targets: Sequence[float]) -> list[list[float]]:
    return [[value / target for value in row] for row, target in zip(rows, targets, strict=True)]


def test_a_line_by_hand() -> None:
    """Through (0, 1), (1, 3), (2, 5), (3, 8), weighted so that absolute errors count: slope 2.3, intercept 0.8.

    The residuals are .2, -.1, -.4, .3.
    """
    found = fit(relative([(1, 0), (1, 1), (1, 2), (1, 3)], [1, 3, 5, 8]), [1, 9, 25, 64])
    assert found is not None
    assert found.coefficients == pytest.approx((0.8, 2.3))
    assert found.rest == pytest.approx(0.3)


def test_a_coefficient_that_would_be_negative_is_0() -> None:
    """y falls with x, so the best line that does not fall is the mean, 2."""
    found = fit(relative([(1, 0), (1, 1), (1, 2)], [3, 2, 1]), [9, 4, 1], (0, 1))
    assert found is not None
    assert found.coefficients == pytest.approx((2, 0))
    assert found.rest == pytest.approx(2)


def test_a_point_that_counts_for_nothing_changes_nothing() -> None:
    found = fit(relative([(1, 0), (1, 1), (1, 2)], [1, 2, 300]), [1, 1, 0])
    assert found is not None
    assert found.coefficients == pytest.approx((1, 1))


def test_columns_that_tell_the_same_are_not_told_apart() -> None:
    assert fit([(1, 2), (2, 4), (3, 6)], [1, 1, 1]) is None
    assert fit([], []) is None
    assert fit([(1, 2)], [1]) is None


@UNHURRIED
@given(
    st.lists(st.floats(0, 1e3), min_size=3, max_size=3),
    st.lists(st.integers(1, 10_000), min_size=4, max_size=10, unique=True),
)
def test_what_lies_on_a_parabola_is_found(coefficients: list[float], widths: list[int]) -> None:
    rows = [(1.0, float(n), float(n) * n) for n in widths]
    targets = [1e-3 + sum(c * x for c, x in zip(coefficients, row, strict=True)) for row in rows]
    found = fit(relative(rows, targets), [1.0] * len(rows), (0, 1, 2))
    assert found is not None
    assert min(found.coefficients) >= 0
    assert found.rest <= 1e-12
