"""Pages of several workers as one."""

from hypothesis import given
from hypothesis import strategies as st

from headway.gateway.exposition import Histogram, family, histograms
from headway.gateway.summing import counted, summed


def page(calls: int, up: int, resident: float, *seen: float) -> bytes:
    histogram = Histogram((1.0, 2.0))
    histogram.observe(seen)
    lines = [
        *family("calls_total", "counter", "Calls.", [({"status": "ok"}, calls)]),
        *family("headway_replica_up", "gauge", "Up.", [({"replica": "a"}, up)]),
        *family("memory_bytes", "gauge", "Memory.", [({}, resident)]),
        *histograms("took_seconds", "Took.", [({"model": "m"}, histogram)]),
    ]
    return ("\n".join(lines) + "\n").encode()


def test_samples_are_summed_and_what_all_agree_on_is_told_once() -> None:
    whole = summed([page(3, 1, 10.5, 0.5, 1.5), page(4, 1, 20, 3.0)], b"").decode()
    assert 'calls_total{status="ok"} 7\n' in whole
    assert 'headway_replica_up{replica="a"} 1\n' in whole
    assert "memory_bytes 30.5\n" in whole
    assert 'took_seconds_bucket{model="m",le="1.0"} 1\n' in whole
    assert 'took_seconds_bucket{model="m",le="2.0"} 2\n' in whole
    assert 'took_seconds_bucket{model="m",le="+Inf"} 3\n' in whole
    assert 'took_seconds_sum{model="m"} 5.0\n' in whole
    assert 'took_seconds_count{model="m"} 3\n' in whole
    assert whole.count("# TYPE calls_total counter") == whole.count("# HELP calls_total Calls.") == 1


def test_of_a_state_that_workers_see_differently_the_worst_is_told() -> None:
    """An open breaker is 2: two workers with one do not make it 4."""
    pages = [
        "\n".join([*family("headway_replica_breaker", "gauge", "B.", [({"replica": "a"}, state)]), ""]).encode()
        for state in (2, 0, 2, 1)
    ]
    assert 'headway_replica_breaker{replica="a"} 2\n' in summed(pages, b"").decode()


def test_one_page_alone_is_itself() -> None:
    assert summed([page(3, 1, 10, 0.5)], b"") == page(3, 1, 10, 0.5)
    assert summed([], b"") == b""


def test_of_those_that_are_gone_only_what_they_counted_stays() -> None:
    departed = counted(counted(b"", page(3, 1, 10, 0.5)), page(2, 0, 10, 0.5))
    whole = summed([page(1, 1, 7)], departed).decode()
    assert 'calls_total{status="ok"} 6\n' in whole
    assert 'took_seconds_count{model="m"} 2\n' in whole
    assert "memory_bytes 7\n" in whole
    assert 'headway_replica_up{replica="a"} 1\n' in whole


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.booleans()), max_size=20))
def test_no_counter_goes_back_whoever_dies_when(steps: list[tuple[int, int, bool]]) -> None:
    """Workers count, tell, and die after having told; one that was killed begins anew at 0."""
    counts, departed, before = [0] * 4, b"", 0.0
    for worker, more, dies in steps:
        counts[worker] += more
        if dies:
            departed, counts[worker] = counted(departed, page(counts[worker], 1, 1)), 0
        told = summed([page(count, 1, 1) for count in counts], departed).decode()
        now = next(float(line.rpartition(" ")[2]) for line in told.splitlines() if line.startswith("calls_total{"))
        assert now == before + more
        before = now
