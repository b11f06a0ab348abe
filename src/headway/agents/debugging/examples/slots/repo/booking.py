"""Rooms and who has them."""


class Taken(Exception):
    """Somebody else has the room."""


class Room:
    """A room; hours are whole, and a booking ends before its last."""

    def __init__(self) -> None:
        self.booked: list[tuple[int, int]] = []

    def book(self, start: int, end: int) -> None:
        """Book from ``start`` to before ``end``."""
        if end <= start:
            raise ValueError("a booking ends after it starts")
        if any(start <= other_end and other_start <= end for other_start, other_end in self.booked):
            raise Taken
        self.booked.append((start, end))
