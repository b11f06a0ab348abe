import pytest

from booking import Room, Taken


def test_overlapping_is_refused() -> None:
    room = Room()
    room.book(9, 11)
    with pytest.raises(Taken):
        room.book(10, 12)


def test_backwards_is_refused() -> None:
    with pytest.raises(ValueError):
        Room().book(3, 2)
