from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.bench.lengths import length
from headway.core.errors import BadInputError


@given(st.integers(), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_range_is_never_left(seed: int, one: float, other: float) -> None:
    low, high = sorted((round(one, 3), round(other, 3)))
    drawn = length(f"{low:.3f}..{high:.3f}", "x").draw(Random(seed))
    assert low - 1e-6 <= drawn <= high + 1e-6


def test_a_number_is_itself() -> None:
    assert length("512", "x").draw(Random(1)) == 512
    assert length("0", "x").whole(Random(1)) == 1, "a call of no tokens cannot be sent"


def test_two_thirds_of_a_log_normal_lie_within_its_factor_of_the_median() -> None:
    about, dice = length("~500x3", "x"), Random(7)
    drawn = sorted(about.draw(dice) for _ in range(20_000))
    assert drawn[10_000] == pytest.approx(500, rel=0.03)
    within = sum(500 / 3 <= value <= 1500 for value in drawn) / len(drawn)
    assert within == pytest.approx(0.683, abs=0.01)  # one standard deviation of a normal either side
    assert about.mean == pytest.approx(500 * exp(0.5 * 1.0986**2), rel=1e-3)  # ln 3 = 1.0986


@pytest.mark.parametrize("text", ["", "many", "-5", "9..3", "~0", "~500x0.5", "nan", "inf", "1..", "~", "1...2"])
def test_what_is_no_length_is_said_to_be_none(text: str) -> None:
    with pytest.raises(BadInputError, match="--input is"):
        length(text, "--input")
