"""Stands between Headway and a server that it starts, and ends the server and all that this started when told to.

It is told by the end of a pipe whose other end only Headway holds; so also when Headway is killed. Run as a script that
loads nothing of the package, it is there in some milliseconds: ``python -I -S guard.py PIPE SECONDS COMMAND…``. It and
the server are one process group, of which it is the leader.
"""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress


def main() -> None:
    """Run the command, and leave nothing of its process group, this process included."""
    lifeline, patience, command = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, _wake)
    try:
        server = subprocess.Popen(command)  # noqa: S603 - what the user named
    except OSError as error:
        sys.exit(f"The server could not be started: {error}.")
    # The pipes are the server's: held here too, they would seem open after it has gone.
    os.close(0)
    os.close(1)
    while server.poll() is None:
        if lifeline in select.select([lifeline, ended], [], [])[0]:
            _end(server, patience, ended)
            break
        os.read(ended, 4096)
    _say(server.poll())
    os.killpg(0, signal.SIGKILL)


def _wake(_number: int, _frame: object) -> None:
    """To be woken is all."""


def _end(server: "subprocess.Popen[bytes]", patience: float, ended: int) -> None:
    """Its input has ended too, which is MCP's way to say good-bye; then it is asked, and at last not asked."""
    for last in (None, signal.SIGTERM):
        if last is not None:
            os.killpg(0, last)
        until = time.monotonic() + patience
        while server.poll() is None and (left := until - time.monotonic()) > 0:
            if select.select([ended], [], [], left)[0]:
                os.read(ended, 4096)


def _say(status: int | None) -> None:
    if status is None:
        return
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    with suppress(OSError):  # nobody reads it any more
        os.write(2, f"\nThe server {how}.".encode())


if __name__ == "__main__":
    main()
