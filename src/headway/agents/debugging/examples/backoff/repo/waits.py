"""How long to wait."""

LONGEST = 30.0


def wait_before(attempt: int) -> float:
    """Seconds to wait after a failed attempt; attempts count from 1."""
    return min(LONGEST, 2.0 ** (attempt - 1))
