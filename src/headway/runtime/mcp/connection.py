"""One connection to a server: opened and ended in a task of its own, asked by many at once, given up when it hangs.

Nobody who asks waits for the package: it is asked in a task beside, which is told to stop and left behind.
"""

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from importlib.metadata import version
from typing import Any, Final, Protocol, TypeVar, cast

from mcp.client import Client, IncomingMessage, session
from mcp.client._transport import TransportStreams
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Implementation, RequestParamsMeta, Tool, ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from headway.core.errors import HeadwayError, UpstreamError
from headway.runtime.mcp.server import McpServer

R = TypeVar("R")
_ME: Final = Implementation(name="headway", version=version("headway"))
_PAGES: Final = 100
_ALIVE_SECONDS: Final = 5.0
"""For an answer of a server of which a call was given up; one that gives none is taken for stuck."""
_PAUSE: Final = 1.0
"""Seconds between two looks at a list that keeps changing."""
_GRACE: Final = 5.0
"""Seconds for a connection to end."""


class LostError(UpstreamError):
    """The connection ended before the answer came.

    Args:
        what: how.
        undone: the call was not done; otherwise nobody knows.
    """

    def __init__(self, what: str, *, undone: bool = False) -> None:
        super().__init__(what)
        self.undone = undone


class Way(Protocol):
    """How a server is reached; good for one connection."""

    gone: asyncio.Event
    """Set when no further call should take it."""

    @property
    def why(self) -> str:
        """A sentence on why it is gone, as far as is known; empty: nothing is."""
        ...

    def undone(self, data: object) -> bool:
        """Whether the data of an error says that the request was not served."""
        ...

    def open(self) -> AbstractAsyncContextManager[TransportStreams]:
        """Reach it, and let go of it in the end."""
        ...


class Connection:
    """A connection; `open` it before anything else, and `close` it.

    Args:
        server: to whom.
        way: how.
    """

    def __init__(self, server: McpServer, way: Way) -> None:
        self.tools: tuple[Tool, ...] = ()
        """What the server offers now."""
        self.calls = 0
        """Under way."""
        self._server = server
        self._way = way
        self._stuck = False
        self._leave = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._stale = asyncio.Event()
        self._asking: set[asyncio.Task[Any]] = set()
        self._checking: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(), name=f"mcp {server.name}")

    @property
    def ended(self) -> bool:
        """Whether nothing of it is left."""
        return self._life.done()

    @property
    def usable(self) -> bool:
        """Whether calls may take it."""
        return not (self._way.gone.is_set() or self._leave.is_set() or self.ended)

    async def open(self) -> None:
        """Wait until it is there and the tools are known.

        Raises:
            UpstreamError: it was not there in time, or the server failed or made no sense.
            BadInputError: there is no such program.
        """
        try:
            async with asyncio.timeout(self._server.start_timeout):
                await asyncio.shield(self._ready)
                await self._list()
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError):
                what = f"{self._server.name} was not ready in {self._server.start_timeout:g} s.{self._words}"
                raise UpstreamError(what, fix="Start it by hand to see why, or raise start_timeout.") from error
            raise

    async def close(self) -> None:
        """End it, and what asks over it."""
        self._leave.set()
        if not self._ready.done():
            self._life.cancel()
        _, late = await asyncio.wait({self._life}, timeout=_GRACE)
        for task in late:
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE)

    async def call(self, tool: str, arguments: dict[str, Any], meta: dict[str, Any]) -> CallToolResult:
        """Call a tool.

        Raises:
            LostError: the connection ended before the answer came.
            UpstreamError: the server refused, or its answer makes no sense.
        """
        client = self._ready.result()
        self.calls += 1
        self._idle.clear()
        try:
            return await self._ask(client.call_tool(tool, arguments, meta=cast("RequestParamsMeta", meta)))
        finally:
            self.calls -= 1
            if not self.calls:
                self._idle.set()

    async def _ask(self, question: Coroutine[Any, Any, R]) -> R:
        work = asyncio.create_task(question)
        self._asking.add(work)
        work.add_done_callback(self._asked)
        try:
            await asyncio.wait({work, self._life}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            work.cancel()
            self._doubt()
            raise
        if not work.done():
            work.cancel()
            raise self._lost()
        return self._answer(work)

    def _answer(self, work: "asyncio.Task[R]") -> R:
        name = self._server.name
        try:
            return work.result()
        except MCPError as error:
            if not self.usable:
                raise self._lost(undone=self._way.undone(error.data)) from error
            raise UpstreamError(f"{name} refused: {error.message}") from error
        except ValidationError as error:
            raise UpstreamError(f"{name} gave an answer that is none by the protocol: {_first_of(error)}") from error
        except RuntimeError as error:  # how the package says that a result is not as its schema
            raise UpstreamError(f"{name} gave an answer that is not as it declared: {error}") from error
        except asyncio.CancelledError:
            raise self._lost() from None

    def _asked(self, work: "asyncio.Task[Any]") -> None:
        self._asking.discard(work)
        if not work.cancelled():
            work.exception()  # seen, also where nobody waits for it any more

    def _lost(self, *, undone: bool = False) -> LostError:
        if self._stuck:
            return LostError(f"{self._server.name} answered nothing for {_ALIVE_SECONDS:g} s and was ended.")
        return LostError(f"{self._server.name} went away before it answered.{self._words}", undone=undone)

    @property
    def _words(self) -> str:
        return f" {self._way.why}" if self._way.why else ""

    def _doubt(self) -> None:
        """A call was given up: is it the tool that hangs, or the server?"""
        if self.usable and (self._checking is None or self._checking.done()):
            self._checking = asyncio.create_task(self._check())

    async def _check(self) -> None:
        try:
            async with asyncio.timeout(_ALIVE_SECONDS):
                await self._ask(self._ready.result().list_tools())
        except TimeoutError:
            self._stuck = True
            self._leave.set()
        except Exception:  # noqa: BLE001, S110 - an error is an answer
            pass

    async def _live(self) -> None:
        # Of a program that is being fetched first, the package gives up too soon to learn whether it knows the newest
        # protocol, takes its silence for a no, and is refused. Half of the time is for servers that ignore it.
        patience = max(session.DISCOVER_TIMEOUT_SECONDS, self._server.start_timeout / 2)
        session.DISCOVER_TIMEOUT_SECONDS = patience
        client = Client(self._way.open(), cache=None, message_handler=self._notice, client_info=_ME)
        beside: list[asyncio.Task[None]] = []
        try:
            async with client:
                self._ready.set_result(client)
                beside = [asyncio.create_task(self._relist()), asyncio.create_task(self._listen(client))]
                await _first(self._leave.wait(), self._way.gone.wait())
                await _first(self._leave.wait(), self._idle.wait())
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever ends it, those who wait are told
            if not self._ready.done():
                self._ready.set_exception(self._unopened(error))
                self._ready.exception()  # seen, also where nobody waits for it any more
        finally:
            self._ready.cancel()
            for task in (*beside, *self._asking):
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    def _unopened(self, error: BaseException) -> Exception:
        if isinstance(error, BaseExceptionGroup):
            return self._unopened(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
        if isinstance(error, HeadwayError):
            return error
        match error:
            case MCPError():
                why = error.message
            case ValidationError():
                why = _first_of(error)
            case _:
                why = f"{type(error).__name__}: {error}"
        return UpstreamError(
            f"{self._server.name} cannot be spoken to: {why.rstrip('.')}.{'' if self._way.why == why else self._words}",
            fix="Check that it is an MCP server, and start it by hand to see what it says.",
        )

    async def _list(self) -> None:
        client = self._ready.result()
        found: list[Tool] = []
        seen: set[str] = set()
        cursor: str | None = None
        while True:
            page = await self._ask(client.list_tools(cursor=cursor))
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
            if cursor in seen or len(seen) >= _PAGES:
                raise UpstreamError(f"{self._server.name} lists its tools without end.")
            seen.add(cursor)
        self.tools = tuple(found)

    async def _notice(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._stale.set()

    async def _listen(self, client: Client) -> None:
        """By the newest protocol a server tells of changes only who listens."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            return
        with suppress(MCPError):
            while True:
                with suppress(SubscriptionLost):
                    async with client.listen(tools_list_changed=True) as changes:
                        async for _ in changes:
                            self._stale.set()
                await asyncio.sleep(_PAUSE)
                self._stale.set()  # what was missed meanwhile nobody says

    async def _relist(self) -> None:
        while True:
            await self._stale.wait()
            self._stale.clear()
            with suppress(UpstreamError):  # the list that is known stays
                await self._list()
            await asyncio.sleep(_PAUSE)


def _first_of(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


async def _first(*waits: Awaitable[object]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
