"""How late the client reads: measured against an engine that says when it sent, before every campaign."""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from headway.bench.connection import Client, Received
from headway.bench.endpoint import endpoint
from headway.core.errors import WorkerError
from headway.trace.stats import quantiles
from headway.wire.sse import EventScanner

STREAMS: Final = 8
_PATIENCE: Final = 20.0


class Calibration(Struct, frozen=True, kw_only=True):
    """Seconds from a chunk's being sent to its being read, on this machine before the load."""

    p50: float
    p99: float
    worst: float
    chunks: int


async def calibrate(streams: int = STREAMS) -> Calibration:
    """Read ``streams`` streams at once from an engine in a process of its own.

    Raises:
        WorkerError: the engine could not be started, or its answers did not come whole.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "headway.bench.known", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        said = b"" if process.stdout is None else await asyncio.wait_for(process.stdout.readline(), _PATIENCE)
        if not said.strip().isdigit():
            raise WorkerError("The engine that the client is measured against did not start.", fix="Try again.")
        known = endpoint(f"http://127.0.0.1:{int(said)}/v1", "known")
        client = Client(known, time.monotonic, _PATIENCE)
        request = known.request([{"role": "user", "content": "go"}], 1)
        try:
            answers = await asyncio.gather(*[client.ask(request) for _ in range(streams)])
        finally:
            await client.close()
    finally:
        if process.stdin is not None:
            process.stdin.close()  # the sign to end
        await process.wait()
    return told(answers)


def told(answers: Sequence[Received]) -> Calibration:
    """What answers of the known engine say of who read them.

    Raises:
        WorkerError: one did not come whole.
    """
    delays: list[float] = []
    for answer in answers:
        if answer.error is not None:
            raise WorkerError(
                f"A stream of the engine that the client is measured against broke: {answer.error}.", fix="Try again."
            )
        scanner = EventScanner()
        for at, piece in answer.reads:
            for event in scanner.feed(piece):
                content = b"" if event == b"[DONE]" else json.loads(event)["choices"][0]["delta"]["content"]
                if content:
                    delays.append(at - float(content))
    p50, p99 = quantiles(delays, (0.5, 0.99))
    return Calibration(p50=p50.value, p99=p99.value, worst=max(delays), chunks=len(delays))
