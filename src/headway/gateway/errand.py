"""What one call has to get answered, as everybody knows it who works on that."""

from typing import Protocol

from msgspec import Struct

from headway.gateway.front import Reader, Request
from headway.gateway.journal import CallRecord
from headway.gateway.naming import Chain
from headway.gateway.probe import Probe
from headway.gateway.wiring import Wiring
from headway.wire.dialect import Asked, Dialect


class Errand(Struct, eq=False, kw_only=True):
    """Who asks what, and where the account of it is kept."""

    wiring: Wiring
    request: Request
    client: Reader
    """Who gets the answer."""
    dialect: Dialect
    """The caller's."""
    asks: Asked
    record: CallRecord
    chain: Chain | None
    """The models that may answer; ``None``: the one that was asked for."""
    probe: Probe | None = None
    """Looks into what the engine says; ``None``: nobody does but for the record."""

    @property
    def body(self) -> bytes:
        """The request's, in which the model is the one that is asked now."""
        return self.request.body if self.chain is None else self.chain.body


class Sender(Protocol):
    """Whose call it is."""

    def done(self) -> None:
        """The client has its answer, or a failure for one. Told once."""
        ...

    def met(self, error: Exception) -> None:
        """A fault of our own that nobody foresaw."""
        ...
