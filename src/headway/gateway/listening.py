"""An address to listen on: kept for several processes; and why it cannot be had, and which of its parts to change."""

import errno
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

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


@contextmanager
def reserve(host: str, port: int) -> Generator[socket.socket]:
    """Within, a port is kept for processes that share it, whichever of them live; this socket itself takes no calls.

    Args:
        host: an address of this machine, or a name of one.
        port: 0 is a free one.

    Raises:
        BadInputError: somebody else listens there, or it is no address of this machine.
    """
    with ExitStack() as stack:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            if port:  # sockets that share a port would not mind somebody else's that do
                with socket.socket(family, kind, protocol) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(address)
            kept = stack.enter_context(socket.socket(family, kind, protocol))
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            kept.bind(address)
        except (OSError, UnicodeError) as error:
            raise cannot_listen(host, port, error) from error
        yield kept
