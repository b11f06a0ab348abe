from itertools import islice, pairwise, takewhile
from random import Random
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.bench.arrivals import FORMS, Closed, Open, arrivals, replayed
from headway.core.errors import BadInputError


def opened(text: str) -> Open:
    found = arrivals(text)
    assert isinstance(found, Open)
    return found


def gaps(text: str, count: int) -> list[float]:
    times = list(islice(opened(text).times(Random(3)), count))
    return [later - earlier for earlier, later in pairwise(times)]


def rate_between(text: str, begin: float, end: float) -> float:
    times = takewhile(lambda at: at < end, opened(text).times(Random(3)))
    return sum(at >= begin for at in times) / (end - begin)


def test_every_form_that_is_shown_can_be_read() -> None:
    assert isinstance(arrivals(FORMS[0]), Closed)
    assert all(isinstance(arrivals(form), Open) for form in FORMS[1:])


@given(st.sampled_from(FORMS[1:]), st.integers())
def test_no_arrival_is_before_the_one_before_it(form: str, seed: int) -> None:
    times = list(islice(opened(form).times(Random(seed)), 200))
    assert times == sorted(times)
    assert times[0] >= 0


def test_a_constant_load_has_equal_gaps_and_no_drift() -> None:
    times = list(islice(opened("constant 3/s").times(Random(0)), 3001))
    assert times[0] == 0
    assert times[3000] == 1000


def test_gaps_of_a_poisson_load_vary_as_much_as_they_last() -> None:
    found = gaps("poisson 5/s", 20_000)
    assert mean(found) == pytest.approx(0.2, rel=0.03)
    assert stdev(found) / mean(found) == pytest.approx(1.0, abs=0.03)


def test_gaps_of_a_gamma_load_vary_as_asked() -> None:
    found = gaps("gamma 5/s cv 3", 60_000)
    assert mean(found) == pytest.approx(0.2, rel=0.06)
    assert stdev(found) / mean(found) == pytest.approx(3.0, rel=0.06)


def test_a_spike_is_where_it_was_asked_for() -> None:
    spike = "spike 5/s 400/s at 30s for 10s"
    assert rate_between(spike, 0, 30) == pytest.approx(5, rel=0.25)
    assert rate_between(spike, 30, 40) == pytest.approx(400, rel=0.06)
    assert rate_between(spike, 40, 100) == pytest.approx(5, rel=0.25)


def test_a_ramp_climbs_and_stays() -> None:
    ramp = "ramp 10/s 110/s over 100s"
    assert rate_between(ramp, 0, 100) == pytest.approx(60, rel=0.06)  # the mean of both ends
    assert rate_between(ramp, 100, 120) == pytest.approx(110, rel=0.1)


def test_a_day_is_quiet_at_its_ends_and_busy_in_the_middle() -> None:
    day = "diurnal 1/s 101/s period 100s"
    assert rate_between(day, 0, 5) < 10
    assert rate_between(day, 45, 55) == pytest.approx(100, rel=0.1)
    assert rate_between(day, 0, 100) == pytest.approx(51, rel=0.06)


def test_recorded_arrivals_begin_with_the_first() -> None:
    assert list(replayed((7.0, 7.5, 9.0), "a trace").times(Random(0))) == [0.0, 0.5, 2.0]
    with pytest.raises(BadInputError, match="run backwards"):
        replayed((7.0, 6.0), "a trace")


@pytest.mark.parametrize("text", ["", "5/s", "closed 0", "closed -1", "poisson 0/s", "constant five/s", "ramp 1/s 2/s"])
def test_what_says_no_arrivals_is_refused(text: str) -> None:
    with pytest.raises(BadInputError) as caught:
        arrivals(text)
    assert "closed 8" in caught.value.fix
