"""Prices in cents."""


def reduced(cents: int, percent: int) -> int:
    """A price after a discount, in whole cents."""
    return cents * (100 - percent) // 100
