"""Charts: what is drawn lies where its value says."""

import re

import pytest
from tasks import call, step

from headway.app.report.html_axes import BOTTOM, LEFT, RIGHT, TOP
from headway.app.report.html_charts import distribution, fitted, histogram, scatter
from headway.trace.facts import CallPoint, TaskFacts, facts_of
from headway.trace.sets import anatomy_of
from headway.trace.sources.verdict import judge
from headway.trace.stats import fit, quantiles


def test_a_bar_per_n_as_high_as_its_tasks() -> None:
    rows: list[TaskFacts] = []
    for n in (1, 1, 1, 3):
        spans = [step("r", 0, 9), *(call(f"c{i}", i, i + 1, "r") for i in range(n))]
        rows.append(facts_of(spans, judge(spans, "made", "spans")))
    chart = histogram(anatomy_of(rows))
    assert chart is not None
    one, three = chart.boxes
    assert (one.label, one.title) == ("1", "N = 1: 3 tasks, 75.0 %")
    assert (one.y, one.height) == (TOP, BOTTOM - TOP)
    assert three.height == pytest.approx((BOTTOM - TOP) / 3)
    assert histogram(anatomy_of([])) is None


def test_a_dot_per_call_at_the_tokens_it_computed() -> None:
    points = [CallPoint(100, 100, 1.0), CallPoint(200, None, 2.0), CallPoint(1000, 200, 4.0)]
    chart = scatter(points, None)
    assert chart is not None
    assert [dot.known for dot in chart.dots] == [True, False, True]
    assert [dot.x for dot in chart.dots] == pytest.approx([LEFT, LEFT + (RIGHT - LEFT) / 4, RIGHT])  # 0, 200, 800
    assert chart.dots[2].title == "800 tokens computed, 200 of 1,000 from a cache: TTFT 4.000 s"
    assert chart.dots[1].title == "200 in: TTFT 2.000 s"
    assert "hollow" in chart.note
    assert chart.line is None
    assert scatter(points[:2], None) is None


def test_the_line_is_drawn_where_it_was_fitted() -> None:
    points = [CallPoint(tokens, 0, 0.5 + tokens / 1000) for tokens in range(0, 1001, 100)]
    line = fit([(point.input_tokens, point.ttft) for point in points])
    assert line is not None
    assert fitted(line) == "TTFT = 0.500 s + 1.000 s per 1,000 computed tokens [1.000, 1.000], over 11 calls"
    chart = scatter(points, line)
    assert chart is not None
    assert chart.line is not None
    first, last = chart.dots[0], chart.dots[-1]
    assert chart.line == pytest.approx((first.x, first.y, last.x, last.y))


def test_calls_that_waited_far_longer_lie_at_the_edge_and_are_counted() -> None:
    points = [CallPoint(100 + i, 0, 1.0) for i in range(200)] + [CallPoint(400, 0, 60.0)]
    chart = scatter(points, None)
    assert chart is not None
    assert chart.y.high == pytest.approx(1.04)
    assert chart.dots[-1].y == TOP
    assert "1 call waited longer than 1.0 s" in chart.note


def test_many_calls_are_thinned_and_that_is_said() -> None:
    chart = scatter([CallPoint(i, 0, 1.0) for i in range(2000)], None)
    assert chart is not None
    assert len(chart.dots) == 700
    assert chart.note == "700 calls drawn of 2,000."


def test_the_distribution_climbs_a_step_for_each_task() -> None:
    values = [1.0, 3.0, 2.0, 5.0]
    chart = distribution(values, quantiles(values), 1)
    assert chart is not None
    steps = [(float(x), float(y)) for x, y in re.findall(r"H([\d.]+)V([\d.]+)", chart.curve)]
    quarter, up = (RIGHT - LEFT) / 4, (BOTTOM - TOP) / 4
    expected = [(LEFT + i * quarter, BOTTOM - n * up) for n, i in ((1, 0), (2, 1), (3, 2), (4, 4))]
    assert [value for step in steps for value in step] == pytest.approx(
        [value for step in expected for value in step], abs=0.06
    )
    assert [mark.title for mark in chart.marks][:2] == [
        "p50: 2.0 s, of too few tasks to be sure",
        "p95: 5.0 s, of too few tasks to be sure",
    ]


def test_far_apart_times_get_a_logarithmic_axis_and_equal_ones_no_chart() -> None:
    wide = distribution([0.1, 50.0], (), 1)
    assert wide is not None
    assert wide.x.log
    assert wide.x.title == "E2E, seconds, logarithmic"
    assert distribution([2.0, 2.0], (), 1) is None
    assert distribution([], (), 1) is None
    none_at_all = distribution([0.0, 50.0], (), 1)
    assert none_at_all is not None
    assert not none_at_all.x.log


def test_a_thousand_tasks_need_no_thousand_steps() -> None:
    chart = distribution([float(i) for i in range(1, 10_001)], (), 1)
    assert chart is not None
    assert chart.curve.count("H") <= 301
    assert chart.curve.endswith(f"H{RIGHT:.1f}V{TOP:.1f}")
