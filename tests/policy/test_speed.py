"""A replica's pace is learnt from what it does, whatever the noise."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from routing import A

from headway.policy.regression import Regression
from headway.policy.speed import GUESS, Speeds


def test_until_something_is_seen_it_is_a_guess() -> None:
    pace = Speeds().pace(A)
    assert pace == GUESS
    assert not pace.known
    assert pace.first_token(1000, 2) == pytest.approx(0.02 + 0.2 + 0.02)
    assert pace.answer(10, 5) == pytest.approx(10 * (0.02 + 0.005))


def test_one_observation_against_a_prior_of_equal_weight_is_met_half_way() -> None:
    line = Regression((0.0,), (1.0,))
    line.observe((1.0,), 1.0)
    # A variance of 1 against a noise of 1, of which 0.99 is left when it is weighed.
    assert line.coefficients == pytest.approx([1 / 1.99])
    assert line.count == 1


@settings(max_examples=30)
@given(st.floats(0.005, 0.2), st.floats(0.01, 5.0), st.floats(0.0, 0.1), st.integers(0, 2**32))
def test_coefficients_are_found_through_noise_and_outliers(
    overhead: float, prefill: float, beside: float, seed: int
) -> None:
    dice, speeds = Random(seed), Speeds()
    for turn in range(200):
        work, others = dice.randrange(0, 4000), dice.randrange(0, 8)
        seconds = overhead + prefill * work / 1000 + beside * others
        seconds *= dice.uniform(0.95, 1.05)
        if turn % 20 == 19:
            seconds += 10  # something else held it up
        speeds.first_token(A, seconds, work, others)
    pace = speeds.pace(A)
    assert pace.known
    expected = overhead + prefill * 2 + beside * 4
    assert pace.first_token(2000, 4) == pytest.approx(expected, rel=0.25, abs=0.05)


def test_a_replica_that_changes_is_learnt_anew() -> None:
    speeds = Speeds()
    for _ in range(50):
        speeds.first_token(A, 0.2, 1000, 0)
        speeds.first_token(A, 0.02, 0, 0)
    for _ in range(300):
        speeds.first_token(A, 2.0, 1000, 0)
        speeds.first_token(A, 0.02, 0, 0)
    assert speeds.pace(A).first_token(1000, 0) == pytest.approx(2.0, rel=0.1)


def test_calls_that_are_not_streamed_teach_the_whole() -> None:
    speeds = Speeds()
    for turn in range(300):
        work, tokens = (turn * 37) % 3000, 10 + (turn * 13) % 90
        speeds.whole(A, 0.05 + 0.001 * work + 0.01 * tokens, work, 0, tokens)
    pace = speeds.pace(A)
    assert pace.first_token(2000, 0) + pace.answer(50, 0) == pytest.approx(2.55, rel=0.2)


def test_what_the_engine_measured_is_taken_and_forgotten() -> None:
    speeds = Speeds()
    for _ in range(10):
        speeds.prefill(A, 2000, 4.0)
    assert speeds.pace(A).prefill == pytest.approx(0.002, rel=0.02)
    speeds.forget(A)
    assert speeds.pace(A) == GUESS
