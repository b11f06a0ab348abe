"""A line between two processes of one gateway, over sockets that nobody else has: news, and questions with answers."""

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Final, Literal, cast

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError, HeadwayError, WorkerError

_LOG: Final = logging.getLogger(__name__)
_LENGTH: Final = struct.Struct("<I")
_FULL_BYTES: Final = 16 << 20
"""Waiting for a process that does not read: further news are not sent to it."""

HearsNews = Callable[[bytes], None]
Answers = Callable[[bytes], Awaitable[bytes]]
"""May raise `HeadwayError`, which whoever asked gets."""


class _Frame(Struct, frozen=True, array_like=True):
    kind: Literal["news", "question", "answer", "refusal"]
    number: int
    """Of the question; 0 for news."""
    topic: str
    payload: bytes


class _Refusal(Struct, frozen=True, array_like=True):
    what: str
    fix: str
    bad_input: bool = False


class Line(asyncio.Protocol):
    """One end. Made on a running event loop; what is to be heard is said before `open`."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._read = bytearray()
        self._news: dict[str, HearsNews] = {}
        self._answers: dict[str, Answers] = {}
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._last = 0
        self._answering: set[asyncio.Task[None]] = set()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once the other end is gone, or this one was closed."""
        self.dropped = 0
        """News that were not sent, since the other end does not read."""

    def on_news(self, topic: str, hears: HearsNews) -> None:
        """Have news of a topic told."""
        self._news[topic] = hears

    def on_question(self, topic: str, answers: Answers) -> None:
        """Have questions of a topic answered."""
        self._answers[topic] = answers

    async def open(self, end: socket.socket) -> None:
        """Begin, on one end of a pair of sockets, which is the line's from now on."""
        end.setblocking(False)  # noqa: FBT003 - the socket's signature
        await asyncio.get_running_loop().create_connection(lambda: self, sock=end)

    def tell(self, topic: str, payload: bytes) -> None:
        """Send news; whether it arrives is not known."""
        transport = self._transport
        if transport is None or transport.get_write_buffer_size() > _FULL_BYTES:
            self.dropped += 1
            return
        self._send(_Frame("news", 0, topic, payload))

    async def ask(self, topic: str, payload: bytes, seconds: float | None = None) -> bytes:
        """What the other end answers.

        Raises:
            WorkerError: it is gone, or did not answer within ``seconds``.
            HeadwayError: as it was raised there.
        """
        if self._transport is None:
            raise _gone()
        self._last += 1
        number = self._last
        future = self._asked[number] = asyncio.get_running_loop().create_future()
        self._send(_Frame("question", number, topic, payload))
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            raise WorkerError(f"Another process of the gateway did not answer within {seconds:g} s.") from None
        finally:
            del self._asked[number]

    async def close(self) -> None:
        """End it, and what is being answered."""
        for task in self._answering:
            task.cancel()
        if self._answering:
            await asyncio.wait(self._answering)
        if self._transport is not None:
            self._transport.close()
            await self.ended

    # --- what the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The line stands."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other end is gone."""
        del exc
        self._transport = None
        for future in self._asked.values():
            if not future.done():
                future.set_exception(_gone())
        if not self.ended.done():
            self.ended.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Some of what was sent."""
        read = self._read
        read += data
        at = 0
        while len(read) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(read, at)
            end = at + _LENGTH.size + length
            if len(read) < end:
                break
            frame = _decoder.decode(memoryview(read)[at + _LENGTH.size : end].tobytes())
            at = end
            self._take(frame)
        del read[:at]

    # --- within

    def _send(self, frame: _Frame) -> None:
        if self._transport is not None:
            body = _encoder.encode(frame)
            self._transport.write(_LENGTH.pack(len(body)) + body)

    def _take(self, frame: _Frame) -> None:
        match frame.kind:
            case "news":
                hears = self._news.get(frame.topic)
                if hears is not None:
                    hears(frame.payload)
            case "question":
                task = asyncio.get_running_loop().create_task(self._answer(frame))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)
            case "answer" | "refusal":
                self._settle(frame)

    def _settle(self, frame: _Frame) -> None:
        future = self._asked.get(frame.number)
        if future is None or future.done():
            return  # it came too late
        if frame.kind == "answer":
            future.set_result(frame.payload)
        else:
            refusal = msgspec.msgpack.decode(frame.payload, type=_Refusal)
            kind = BadInputError if refusal.bad_input else HeadwayError
            future.set_exception(kind(refusal.what, fix=refusal.fix))

    async def _answer(self, question: _Frame) -> None:
        answers = self._answers.get(question.topic)
        refusal = _Refusal(f"Nobody answers questions of {question.topic!r}.", "")
        if answers is not None:
            try:
                answer = await answers(question.payload)
            except HeadwayError as error:
                refusal = _Refusal(error.what, error.fix, isinstance(error, BadInputError))
            except Exception as error:  # noqa: BLE001 - whoever asked must not wait for ever
                _LOG.exception("a question of %s could not be answered", question.topic)
                refusal = _Refusal(
                    f"Another process of the gateway failed with {type(error).__name__}.", "See its log."
                )
            else:
                self._send(_Frame("answer", question.number, "", answer))
                return
        self._send(_Frame("refusal", question.number, "", _encoder.encode(refusal)))


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_Frame)


def _gone() -> WorkerError:
    return WorkerError("Another process of the gateway is gone.", fix="See its log.")
