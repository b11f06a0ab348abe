"""Uploads that are tried again."""

from collections.abc import Callable

from waits import wait_before


def upload(send: Callable[[], int], sleep: Callable[[float], None], attempts: int = 4) -> bool:
    """Send until the store takes it; ``sleep`` takes seconds."""
    for attempt in range(1, attempts + 1):
        if send() == 200:
            return True
        if attempt < attempts:
            sleep(wait_before(attempt) / 1000)
    return False
