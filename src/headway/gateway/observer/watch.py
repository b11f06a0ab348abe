"""What the observer is told, and what it tells: each one line of JSON on a pipe."""

from msgspec import Struct

from headway.core.log_lines import LogFormat
from headway.core.money import Price
from headway.gateway.observer.endpoint import Endpoint
from headway.trace.follow import Place


class Watch(Struct, frozen=True, kw_only=True):
    """What to watch, and what to do with it. It may hold a key, so it goes over a pipe and never into arguments."""

    store: str
    begin: Place
    """Where to begin."""
    export: Endpoint | None = None
    calls: bool = False
    """Write the log of calls."""
    log_format: LogFormat = "text"
    prices: dict[str, Price] = {}
    """Own prices, before the list's."""


class Told(Struct, frozen=True, kw_only=True):
    """News for the gateway."""

    page: str
    """Its part of the page of metrics."""
    place: Place
    """Where to begin if it has to be started again."""
