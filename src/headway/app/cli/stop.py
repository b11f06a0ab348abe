"""Being told to stop: Ctrl-C and SIGTERM end a command alike, with one line once all that it started has ended."""

import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from rich.console import Console

_NAMES: Final = {128 + signal.SIGINT: "Ctrl-C", 128 + signal.SIGTERM: "SIGTERM"}
"""By exit status, as a shell tells it."""


@contextmanager
def told() -> Generator[None]:
    """Within, SIGTERM ends the command as Ctrl-C does; whichever it was, it is said on standard error.

    Off the main thread, which alone gets signals, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        yield
    except SystemExit as end:
        if isinstance(end.code, int) and end.code in _NAMES:
            console = Console(stderr=True, highlight=False, soft_wrap=True)
            console.print(f"[bold red]headway:[/] stopped by {_NAMES[end.code]}; all that it had started has ended.")
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminated(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
