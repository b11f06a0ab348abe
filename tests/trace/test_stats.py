import random
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.trace.stats import Bootstrap, fit, quantile, quantiles


def test_a_quantile_is_a_value_that_occurred() -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5).value == 2.0  # two of four do not exceed 2
    assert quantile([1.0, 2.0, 3.0], 0.5).value == 2.0
    assert quantile([float(i) for i in range(1, 101)], 0.95).value == 95.0
    assert quantile([7.0], 0.99).value == 7.0


@pytest.mark.parametrize(("q", "enough"), [(0.5, 6), (0.95, 72), (0.99, 368)])
def test_too_few_values_bound_nothing(q: float, enough: int) -> None:
    # 0.5^6 = .0156, 0.95^72 = .0249, 0.99^368 = .0248: the first below .025
    assert not quantile([float(i) for i in range(enough - 1)], q).supported
    assert quantile([float(i) for i in range(enough)], q).supported


def test_the_interval_of_a_median_of_ten_is_the_tables() -> None:
    # Binomial(10, .5): P(X <= 1) = .0107, P(X <= 2) = .0547, so ranks 2 and 9
    found = quantile([float(i) for i in range(1, 11)], 0.5)
    assert (found.low, found.high) == (2.0, 9.0)


def test_failures_may_be_infinite() -> None:
    p50, p95, _ = quantiles([1.0] * 90 + [inf] * 10)
    assert (p50.value, p95.value, p95.high) == (1.0, inf, inf)
    assert quantiles([]) == ()
    with pytest.raises(ValueError, match="0 < q < 1"):
        quantile([1.0], 1.0)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    dice = random.Random(7)
    held = 0
    for _ in range(400):
        found = quantile(sorted(dice.expovariate(1.0) for _ in range(120)), 0.9)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 2.302585 <= found.high  # -ln(0.1)
    assert held >= 372  # 95 % of 400, less two standard deviations


def test_a_shift_is_shown_and_noise_is_not() -> None:
    dice = random.Random(1)
    before = sorted(dice.gauss(10, 1) for _ in range(300))
    after = sorted(dice.gauss(12, 1) for _ in range(300))
    again = sorted(dice.gauss(10, 1) for _ in range(300))
    moved = Bootstrap(random.Random(2).betavariate).difference(before, after, 0.5)
    assert moved.shown
    assert 1.0 < moved.low < moved.delta < moved.high < 3.0
    assert not Bootstrap(random.Random(2).betavariate).difference(before, again, 0.5).shown
    assert not Bootstrap(random.Random(2).betavariate).difference(before[:5], after[:5], 0.5).shown  # too few to say


def test_the_interval_of_a_difference_agrees_with_resampling() -> None:
    dice = random.Random(3)
    before, after = (sorted(dice.expovariate(1 / mean) for _ in range(150)) for mean in (1.0, 1.5))
    found = Bootstrap(random.Random(4).betavariate).difference(before, after, 0.95)

    def p95(sample: list[float]) -> float:
        return quantile(sorted(dice.choices(sample, k=len(sample))), 0.95).value

    resampled = sorted(p95(after) - p95(before) for _ in range(2000))
    assert found.low == pytest.approx(resampled[49], abs=0.35)
    assert found.high == pytest.approx(resampled[1949], abs=0.35)


def test_a_line_is_found_through_outliers_and_not_through_a_cloud() -> None:
    points = [(float(x), 0.2 + 0.001 * x) for x in range(0, 2000, 100)] + [(500.0, 9.0), (900.0, 7.0)]
    line = fit(points)
    assert line is not None
    assert line.slope == pytest.approx(0.001, rel=0.05)
    assert line.intercept == pytest.approx(0.2, abs=0.05)
    assert line.slope_low > 0
    dice = random.Random(5)
    cloud = fit([(dice.random(), dice.random()) for _ in range(100)])
    assert cloud is not None
    assert cloud.slope_low < 0 < cloud.slope_high
    assert fit(points[:7]) is None
    assert fit([(1.0, float(y)) for y in range(20)]) is None


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_a_quantile_lies_in_its_interval(values: list[float], q: float) -> None:
    ordered = sorted(values)
    found = quantile(ordered, q)
    assert found.low is None or found.low <= found.value
    assert found.high is None or found.value <= found.high
    assert sum(value <= found.value for value in ordered) >= q * len(ordered) - 1e-6
