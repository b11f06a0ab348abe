"""Guessing is slowed by address, in bounded memory, and counted to the last."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.policy.guard import SECONDS, TRIES, Guard, network


def test_an_address_is_believed_again_after_a_minute() -> None:
    guard = Guard()
    verdicts = [guard.wrong("192.0.2.1", 100.0 + n) for n in range(TRIES + 1)]
    assert [verdict.answer for verdict in verdicts] == ["unknown"] * TRIES + ["wait"]
    assert verdicts[-1].wait == SECONDS - TRIES
    assert guard.wrong("192.0.2.1", 100.0 + SECONDS - 0.1).answer == "wait"
    assert guard.wrong("192.0.2.1", 100.0 + SECONDS).answer == "unknown"


@given(st.lists(st.floats(0, 30), max_size=200))
def test_every_try_is_recorded_sooner_or_later(waits: list[float]) -> None:
    guard, now, recorded = Guard(), 0.0, 0
    for wait in waits:
        now += wait
        recorded += guard.wrong("192.0.2.1", now).record
    recorded += guard.wrong("192.0.2.1", now + SECONDS).record
    assert recorded == len(waits) + 1


def test_memory_is_bounded() -> None:
    guard = Guard()
    for n in range(30_000):
        guard.wrong(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", 0.0)
    assert len(guard) == 10_000


@pytest.mark.parametrize(
    ("address", "one"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1%eth0", "2001:db8:1:2::"),
        ("unknown", "unknown"),
    ],
)
def test_what_counts_as_one_address(address: str, one: str) -> None:
    assert network(address) == one
