"""What a basket costs."""

from prices import reduced


def total(lines: list[tuple[int, int]], percent: int = 0) -> int:
    """Cents for lines of (pieces, cents each), after a discount in percent."""
    return reduced(sum(pieces * reduced(cents, percent) for pieces, cents in lines), percent)
