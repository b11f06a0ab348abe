"""Why an address cannot be listened on, and which of its two parts to change."""

import errno
import socket

from headway.core.errors import BadInputError


def cannot_listen(host: str, port: int, error: OSError | UnicodeError) -> BadInputError:
    """The error for a person who chose ``host`` and ``port``."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return BadInputError(f"Cannot listen on {host}:{port}: {why}.", fix=_fix(error))


def _fix(error: OSError | UnicodeError) -> str:
    if isinstance(error, UnicodeError | socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return "Give an address of this machine with --host: 127.0.0.1, or 0.0.0.0 for all that it has."
    if error.errno == errno.EACCES:
        return "Choose a --port from 1024 on, or run with the right to use lower ones."
    return "Choose another --port (0 for a free one), or stop what listens there."
