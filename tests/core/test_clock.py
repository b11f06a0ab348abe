import time

import pytest

from headway.core.clock import SystemClock, VirtualClock


def test_system_clock_never_runs_backwards_and_looks_like_epoch_seconds() -> None:
    clock = SystemClock()
    readings = [clock.now() for _ in range(1000)]
    assert readings == sorted(readings)
    assert abs(readings[0] - time.time()) < 60


def test_virtual_clock_moves_only_when_told() -> None:
    clock = VirtualClock(10.0)
    assert clock.now() == clock.now() == 10.0
    clock.advance(2.5)
    assert clock.now() == 12.5


def test_virtual_clock_refuses_to_go_back() -> None:
    with pytest.raises(ValueError, match=r"seconds >= 0, got -1"):
        VirtualClock().advance(-1)
