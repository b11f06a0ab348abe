import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.app.report.html_axes import BOTTOM, LEFT, RIGHT, TOP, across, upwards


def test_values_lie_between_the_edges_in_proportion() -> None:
    x = across("seconds", 0.0, 10.0)
    assert (x.at(0.0), x.at(5.0), x.at(10.0)) == (LEFT, (LEFT + RIGHT) / 2, RIGHT)
    y = upwards("tasks", 4.0)
    assert (y.at(0.0), y.at(1.0), y.at(4.0)) == (BOTTOM, BOTTOM - (BOTTOM - TOP) / 4, TOP)
    assert x.at(99.0) == RIGHT
    assert x.at(-1.0) == LEFT


def test_a_logarithmic_axis_gives_each_decade_the_same_room() -> None:
    x = across("seconds", 0.1, 100.0, log=True)
    step = (RIGHT - LEFT) / 3
    assert [x.at(value) for value in (0.1, 1.0, 10.0, 100.0)] == pytest.approx(
        [LEFT, LEFT + step, LEFT + 2 * step, RIGHT]
    )
    assert [tick.label for tick in x.ticks] == ["0.1", "1", "10", "100"]
    assert [tick.label for tick in across("", 3.0, 60.0, log=True).ticks] == ["5", "10", "20", "50"]


def test_marks_are_round_numbers() -> None:
    assert [tick.label for tick in across("", 0.0, 10.0).ticks] == ["0", "2", "4", "6", "8", "10"]
    assert [tick.label for tick in across("", 0.0, 48_000.0).ticks] == ["0", "10,000", "20,000", "30,000", "40,000"]
    assert [tick.label for tick in upwards("", 0.0).ticks] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]


@given(st.floats(0, 1e9), st.floats(1e-6, 1e9))
def test_every_axis_has_a_few_marks_in_order_between_its_edges(low: float, span: float) -> None:
    axis = across("", low, low + max(span, low * 1e-6))
    places = [tick.at for tick in axis.ticks]
    assert 2 <= len(places) <= 8
    assert places == sorted(places)
    assert all(LEFT <= place <= RIGHT for place in places)
