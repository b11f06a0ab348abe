"""How callers of one dialect are served by one replica: what it is asked in, and what its requests begin with."""

from typing import Final

from msgspec import Struct

from headway.core.errors import BadInputError
from headway.core.fleet import Replica
from headway.gateway.credentials import KEY_FIELDS
from headway.gateway.fleet import spoken_by
from headway.gateway.responses import HOP_BY_HOP, Headers
from headway.wire.dialect import Dialect
from headway.wire.translate.exchange import asked_in

# Answers are asked for uncompressed: compressed ones could not be looked into.
_NOT_SENT: Final = HOP_BY_HOP | {b"host", b"expect", b"accept-encoding", b"traceparent"}


class Way(Struct, frozen=True, eq=False):
    """From callers of one dialect to one replica."""

    engine: Dialect
    """What it is asked in."""
    line: bytes
    """The request's first line, and the host."""
    not_sent: frozenset[bytes]
    """Headers of the caller's that it does not get."""
    own: Headers
    """Headers that it gets of ours: its key, and what its API insists on."""
    translated: bool
    """The caller speaks another dialect."""


def way_to(replica: Replica, caller: Dialect, base_path: bytes, host: bytes) -> Way:
    """The way to ``replica``.

    Raises:
        BadInputError: it cannot be asked on behalf of such callers.
    """
    engine = asked_in(caller, spoken_by(replica))
    if engine is None:
        raise BadInputError(
            f"Replica {replica.id!r} cannot be asked on behalf of callers of {caller.name}.",
            fix="Say with `speaks` in the configuration what it speaks.",
        )
    translated = engine.name != caller.name
    not_sent = _NOT_SENT
    if translated:
        not_sent |= KEY_FIELDS | (caller.own_fields - engine.own_fields)
    elif replica.api_key is not None:
        not_sent |= KEY_FIELDS
    key = None if replica.api_key is None else replica.api_key.encode()
    return Way(
        engine=engine,
        line=b"POST %b%b HTTP/1.1\r\nhost: %b\r\n" % (base_path, engine.path, host),
        not_sent=not_sent,
        own=[] if key is None else list(engine.key_header(key)),
        translated=translated,
    )
