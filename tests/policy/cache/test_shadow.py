"""Wilson's interval as tables of it give it."""

import pytest

from headway.policy.cache.shadow import ShadowFigures


def test_nothing_compared_is_nothing_known() -> None:
    figures = ShadowFigures(asked=10, would_serve=3)
    assert figures.error() is None
    assert not figures.may_serve(1.0)


def test_the_interval() -> None:
    assert ShadowFigures(agreed=9, differed=1).error() == pytest.approx((0.1, 0.0179, 0.4042), abs=5e-5)
    assert ShadowFigures(agreed=100).error() == pytest.approx((0.0, 0.0, 0.0370), abs=5e-5)
    assert ShadowFigures(differed=5).error() == pytest.approx((1.0, 0.5655, 1.0), abs=5e-5)


def test_it_may_serve_when_even_the_upper_bound_is_below_what_is_allowed() -> None:
    figures = ShadowFigures(agreed=100)
    assert figures.may_serve(0.04)
    assert not figures.may_serve(0.03)
