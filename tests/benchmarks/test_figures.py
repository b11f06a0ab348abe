import pytest

from rig.figures import Spread, added, figure, table
from rig.rounds import Round


def one(server: str, cpu_us: float = 1.0, p99_us: float = 1.0) -> Round:
    return Round(
        server=server,
        connections=16,
        answers=10,
        seconds=1.0,
        p50_us=1.0,
        p99_us=p99_us,
        first_p50_us=1.0,
        first_p99_us=1.0,
        cpu_us=cpu_us,
        load_share=0.1,
    )


def test_a_figure_is_the_median_of_its_rounds_with_their_range() -> None:
    rounds = [one("headway", cpu_us=cpu) for cpu in (50.0, 70.0, 40.0)] + [one("direct", cpu_us=1.0)]

    assert figure("CPU", "µs", rounds, lambda r: r.cpu_us).values == {"headway": Spread(50.0, 40.0, 70.0)}


def test_added_latency_is_taken_within_each_round() -> None:
    # Direct drifts from 1 to 9 ms; the server stays 2, 3 and 1 ms above it, and so does the median: 2.
    rounds = [one("direct", p99_us=t) for t in (1_000, 5_000, 9_000)]
    rounds += [one("headway", p99_us=t) for t in (3_000, 8_000, 10_000)]

    assert added("p99", "ms", rounds, lambda r: r.p99_us / 1000).values == {"headway": Spread(2.0, 1.0, 3.0)}


def test_a_server_that_missed_a_round_is_not_compared() -> None:
    with pytest.raises(ValueError, match="zip"):
        added("p99", "ms", [one("direct"), one("direct"), one("headway")], lambda r: r.p99_us)


def test_the_table_says_ratio_and_verdict() -> None:
    rounds = [one("headway", cpu_us=60.0), one("bare", cpu_us=30.0), one("nginx", cpu_us=20.0)]
    over = figure("CPU", "µs", rounds, lambda r: r.cpu_us, targets={"headway": 55})
    passed = figure("CPU", "µs", rounds, lambda r: r.cpu_us, targets={"headway": 60})

    text = table([over, passed], [("headway", "bare"), ("headway", "nginx")])

    assert "2.00x" in text
    assert "3.00x" in text
    assert "≤55 over" in text
    assert "≤60 PASS" in text


def test_a_target_is_also_told_in_terms_of_nginx_where_it_was_set() -> None:
    rounds = [one("headway", cpu_us=60.0), one("nginx", cpu_us=20.0)]
    row = figure("CPU", "µs", rounds, lambda r: r.cpu_us, targets={"headway": 55}, nginx_then=16)

    assert "≤55 (3.44x nginx) over" in table([row], [])


def test_a_rate_has_to_be_as_high_as_its_target() -> None:
    rounds = [one("headway", cpu_us=60.0)]
    rates = [
        figure("rate", "/s", rounds, lambda r: r.cpu_us, targets={"headway": least}, higher_is_better=True)
        for least in (60, 61)
    ]

    text = table(rates, [])

    assert "≥60 PASS" in text
    assert "≥61 short" in text


def test_each_server_has_the_column_of_its_name_and_the_engine_itself_has_none() -> None:
    rounds = [one("direct"), one("peer", cpu_us=7.0), one("nginx", cpu_us=20.0), one("everything", cpu_us=60.0)]

    head, row = table([figure("CPU", "µs", rounds, lambda r: r.cpu_us)], [("everything", "peer")]).splitlines()

    assert head.split() == ["all", "features", "on", "nginx", "peer", "everything/peer"]
    assert row.split() == [
        "CPU,",
        "µs",
        "60.0",
        "(60.0..60.0)",
        "20.0",
        "(20.0..20.0)",
        "7.00",
        "(7.00..7.00)",
        "8.57x",
    ]


def test_a_ratio_to_a_server_that_is_not_there_is_left_empty() -> None:
    rows = [figure("CPU", "µs", [one("headway", cpu_us=60.0)], lambda r: r.cpu_us)]

    assert table(rows, [("headway", "nginx")]).splitlines()[-1].split()[-1] == "-"
