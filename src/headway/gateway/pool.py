"""The connections to one replica that are open and idle, and how to open another."""

import asyncio
import ssl
from collections import deque
from urllib.parse import urlsplit

from headway.core.clock import Clock
from headway.core.config import Limits
from headway.core.errors import BadInputError, UpstreamError
from headway.core.fleet import Replica
from headway.gateway.connection import UpstreamConnection
from headway.gateway.deadlines import Deadlines
from headway.gateway.way import Way, way_to
from headway.wire.dialect import Dialect
from headway.wire.openai import Answer

_PORTS = {"http": 80, "https": 443}


class Pool:
    """Connections to ``replica``; the one that was used last is used first, so that the rest can grow old and close.

    Raises:
        BadInputError: the replica's URL is not an http(s) URL with a host.
    """

    def __init__(self, replica: Replica, limits: Limits, clock: Clock, deadlines: Deadlines) -> None:
        url = urlsplit(replica.url)
        if url.scheme not in _PORTS or not url.hostname:
            raise BadInputError(
                f"The URL of replica {replica.id!r} is not an http or https URL with a host.",
                fix="Give the base URL up to and including /v1, e.g. http://127.0.0.1:8001/v1.",
            )
        self.replica = replica
        self.base_path = url.path.rstrip("/").encode()
        self.host = url.netloc.rpartition("@")[2].encode()
        self._ways: dict[str, Way] = {}
        self.provider = None if replica.engine == "openai" else replica.engine
        self.shown_as = (b"x-headway-replica", replica.id.encode("latin-1", "replace"))
        self.asked_for_usage: bool | None = False if replica.engine == "llama.cpp" else None
        """Whether streams are asked for their usage: ``None`` until one was answered. llama.cpp tells it unasked."""
        self._address = (url.hostname, url.port or _PORTS[url.scheme])
        self._tls = ssl.create_default_context() if url.scheme == "https" else None
        self._limits = limits
        self._clock = clock
        self._deadlines = deadlines
        self._idle: deque[UpstreamConnection] = deque()
        self._open: set[UpstreamConnection] = set()
        self._closed = False
        self._emptied = asyncio.Event()

    @property
    def open_connections(self) -> int:
        """How many there are, idle or busy."""
        return len(self._open)

    @property
    def idle_connections(self) -> int:
        """How many wait for an exchange."""
        return len(self._idle)

    def way(self, caller: Dialect) -> Way:
        """How callers of this dialect are served.

        Raises:
            BadInputError: they cannot be.
        """
        try:
            return self._ways[caller.name]
        except KeyError:
            way = self._ways[caller.name] = way_to(self.replica, caller, self.base_path, self.host)
            return way

    def minds_being_asked(self, refusal: bytes | None) -> bool:
        """Whether the engine took offence at being asked for a stream's usage; ``refusal``: what it said, if it did.

        Until a replica has answered such a request, every refusal may be for that; later only one that names the field.
        """
        return refusal is not None and (self.asked_for_usage is None or b"stream_options" in refusal)

    def heard(self, answer: Answer | None) -> None:
        """What an answer of the replica's teaches about how to ask it.

        An engine that sends timings with its tokens, as llama.cpp does, need not be asked for them again: asked, it
        moves its timings into the event that the client is not shown.
        """
        if answer is not None and answer.engine is not None and answer.engine.cached_tokens is not None:
            self.asked_for_usage = False

    def take(self) -> UpstreamConnection | None:
        """An idle connection that is not known to be dead."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closing:
                return connection
        return None

    async def connect(self) -> UpstreamConnection:
        """A new connection.

        Raises:
            UpstreamError: the replica cannot be reached, or not within ``connect_seconds``.
        """
        seconds = self._limits.connect_seconds
        try:
            async with asyncio.timeout(seconds):
                connection = await self._open_one()
        except TimeoutError:
            raise self._unreachable(f"no connection within {seconds:g} s") from None
        except ssl.SSLError as error:
            raise self._unreachable(f"TLS failed: {error.reason or error}") from error
        except OSError as error:
            raise self._unreachable(error.strerror or str(error)) from error
        if self._closed:
            connection.abort()
            raise self._unreachable("it was replaced or removed")
        if connection.is_closing:
            raise self._unreachable("it closed the connection at once")
        return connection

    async def _open_one(self) -> UpstreamConnection:
        connection = UpstreamConnection(self, self._limits, self._clock, self._deadlines)
        host, port = self._address
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: connection, host, port, ssl=self._tls)
        except BaseException:
            connection.give_up()
            raise
        return connection

    def close(self) -> None:
        """Close what is idle; what is busy ends when its exchange does."""
        self._closed = True
        while self._idle:
            self._idle.pop().abort()

    async def abort(self) -> None:
        """Cut everything, and wait until it is gone."""
        self.close()
        for connection in self._open:
            connection.abort()
        if self._open:
            self._emptied.clear()
            await self._emptied.wait()

    # --- what its connections tell

    def opened(self, connection: UpstreamConnection) -> None:
        """The connection stands."""
        self._open.add(connection)

    def freed(self, connection: UpstreamConnection) -> None:
        """The connection may carry another exchange."""
        if self._closed:
            connection.abort()
            return
        connection.rest(self._deadlines.recent + self._limits.idle_seconds)
        self._idle.append(connection)

    def lost(self, connection: UpstreamConnection) -> None:
        """The connection is gone."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if not self._open:
            self._emptied.set()

    def _unreachable(self, why: str) -> UpstreamError:
        return UpstreamError(
            f"Replica {self.replica.id!r} cannot be reached: {why}.",
            fix="Check that it runs and that its URL is right.",
        )
