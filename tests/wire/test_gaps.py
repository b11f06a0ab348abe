"""Count, mean and maximum exact; quantiles within one per cent; memory constant."""

import math

from hypothesis import given
from hypothesis import strategies as st

from headway.wire.gaps import Gaps


def test_no_gap_no_summary() -> None:
    assert Gaps().summary() is None


def test_four_gaps_by_hand() -> None:
    gaps = Gaps()
    for gap in (0.01, 0.02, 0.03, 0.1):
        gaps.add(gap)
    itl = gaps.summary()
    assert itl is not None
    assert (itl.count, itl.max) == (4, 0.1)
    assert math.isclose(itl.mean, 0.04)
    assert math.isclose(itl.p50, 0.02, rel_tol=0.01)  # the second of four
    assert math.isclose(itl.p95, 0.1, rel_tol=0.01)  # the fourth of four: 0.95 x 4 = 3.8


def test_tokens_of_one_read_have_no_gap() -> None:
    gaps = Gaps()
    for gap in (0.0, 0.0, 0.5):
        gaps.add(gap)
    itl = gaps.summary()
    assert itl is not None
    assert (itl.p50, itl.max) == (0.0, 0.5)


@given(st.lists(st.floats(1e-5, 1e3), min_size=1, max_size=200))
def test_quantiles_are_within_one_per_cent_of_the_nearest_rank(values: list[float]) -> None:
    gaps = Gaps()
    for value in values:
        gaps.add(value)
    itl = gaps.summary()
    assert itl is not None
    ranked = sorted(values)
    for estimate, q in ((itl.p50, 0.5), (itl.p95, 0.95)):
        exact = ranked[math.ceil(q * len(ranked)) - 1]
        assert math.isclose(estimate, exact, rel_tol=0.0101)
    assert itl.max == ranked[-1]


def test_ten_thousand_gaps_take_no_more_room_than_their_spread() -> None:
    gaps = Gaps()
    for number in range(10_000):
        gaps.add(1e-5 * (1 + number))
    assert len(gaps._buckets) < 500  # pyright: ignore[reportPrivateUsage] - the bound must be seen
