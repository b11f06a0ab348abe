from random import Random
from statistics import median

import pytest

from headway.trace.scaling.curve import Point
from headway.trace.scaling.usl import Usl, fit_usl

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)


def points(law: Usl, widths: tuple[int, ...] = WIDTHS, noise: float = 0.0, seed: int = 0) -> list[Point]:
    dice = Random(seed)
    return [Point(n, law.rate(n) * (1 + noise * dice.gauss())) for n in widths]


def law(alone: float, contention: float, crosstalk: float) -> Usl:
    return Usl(alone=alone, contention=contention, crosstalk=crosstalk, error=0)


def test_by_hand() -> None:
    """10 alone; at 10, 100 / (1 + 0.9 + 0.9) = 35.7; the peak is at √(0.9 / 0.01) = 9.49."""
    curve = law(10, 0.1, 0.01)
    assert curve.rate(1) == 10
    assert curve.rate(10) == pytest.approx(100 / 2.8)
    assert curve.peak == pytest.approx(9.4868, abs=1e-4)
    assert law(10, 0.1, 0).peak is None
    assert law(10, 2.0, 0.01).peak == 1


@pytest.mark.parametrize("true", [law(10, 0.1, 0.01), law(0.3, 0, 0.0002), law(55, 0.02, 0.0002), law(3, 0.3, 0)])
def test_an_exact_curve_is_found(true: Usl) -> None:
    found = fit_usl(points(true))
    assert found is not None
    assert found.alone == pytest.approx(true.alone)
    assert found.contention == pytest.approx(true.contention, abs=1e-9)
    assert found.crosstalk == pytest.approx(true.crosstalk, abs=1e-12)
    assert found.peak == pytest.approx(true.peak)
    assert found.error < 1e-15


def test_the_peak_is_found_through_noise_of_3_percent() -> None:
    """N* = √(0.98 / 0.0002) = 70."""
    peaks = [
        found.peak for seed in range(50) if (found := fit_usl(points(law(55, 0.02, 0.0002), noise=0.03, seed=seed)))
    ]
    known = sorted(peak for peak in peaks if peak is not None)
    assert len(known) == len(peaks) == 50
    assert median(known) == pytest.approx(70, rel=0.02)
    assert known[2] > 63
    assert known[-3] < 77


def test_noise_seldom_gives_a_peak_to_a_curve_that_flattens() -> None:
    peaked = [
        found.peak is not None
        for seed in range(200)
        if (found := fit_usl(points(law(10, 0.1, 0), noise=0.03, seed=seed))) is not None
    ]
    assert len(peaked) == 200
    assert sum(peaked) <= 14, "5 % would be 10"


def test_fewer_than_four_widths_tell_no_shape() -> None:
    assert fit_usl(points(law(10, 0.1, 0.01), (1, 2, 4))) is None
    assert fit_usl([Point(4, 10)] * 9) is None
    assert fit_usl([]) is None
