"""`headway serve` with several workers, as processes of their own; leaving it proves that none of them was left."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import openai
from msgspec import Struct

HEADWAY = Path(sys.executable).with_name("headway")


class Log:
    """What it says on standard error; a test may wait for a line."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.text = ""
        self._more = asyncio.Event()
        self.task = asyncio.create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            self.text += line.decode()
            self._more.set()
        self._more.set()

    async def until(self, words: str, times: int = 1) -> None:
        async with asyncio.timeout(60):
            while self.text.count(words) < times:
                assert not self.task.done(), self.text
                self._more.clear()
                await self._more.wait()


class Several(Struct):
    process: asyncio.subprocess.Process
    url: str
    log: Log

    @property
    def port(self) -> int:
        return int(self.url.split(":")[2].split("/")[0])

    def client(self, key: str = "k", **headers: str) -> openai.AsyncOpenAI:
        """A client that makes a connection of its own for each call, and does not try again by itself."""
        http = openai.DefaultAsyncHttpxClient(verify=False)
        headers = {"connection": "close", **headers}
        return openai.AsyncOpenAI(
            base_url=self.url, api_key=key, max_retries=0, timeout=60, http_client=http, default_headers=headers
        )

    async def get(self, path: str, method: str = "GET", body: str = "") -> tuple[int, str]:
        """One answer, on a new connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {len(body)}\r\n"
        writer.write(f"{head}\r\n{body}".encode())
        answer, _, text = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
        return int(answer.split()[1]), text.decode()

    async def counted(self, sample: str) -> float:
        """A sample of the page of metrics; 0 where it is not there."""
        _, page = await self.get("/metrics")
        return sum(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(sample))

    def workers(self) -> list[int]:
        """Their process ids."""
        return [pid for pid in children(self.process.pid) if b"headway.app.workers.child" in command_of(pid)]


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextlib.asynccontextmanager
async def several(place: Path, *options: str, environment: dict[str, str] | None = None) -> AsyncGenerator[Several]:
    """It serves, on a free port unless ``options`` name one."""
    process = await asyncio.create_subprocess_exec(
        HEADWAY,
        "serve",
        "--json",
        "--no-admin",
        *options,
        cwd=place,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(environment or {})},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    log = Log(process.stderr)
    family: set[int] = set()
    try:
        line = await process.stdout.readline()
        assert line, log.text
        running = Several(process, json.loads(line)["url"], log)
        yield running
        family |= set(children(process.pid)) if process.returncode is None else set()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()
        await log.task
    assert process.returncode in {0, -signal.SIGKILL}, log.text
    assert not [pid for pid in family if lives(pid)], "a process was left behind"
    assert "Traceback" not in log.text, log.text


class Load:
    """Callers that call without a pause, each time on a connection of their own, and count."""

    def __init__(self, client: openai.AsyncOpenAI, model: str) -> None:
        self.model = model
        self.answered = 0
        self.failed: list[Exception] = []
        self.over = False
        self._one = asyncio.Event()
        self._client = client

    async def run(self) -> None:
        while not self.over:
            try:
                await self._client.chat.completions.create(
                    model=self.model, messages=[{"role": "user", "content": "one two"}], max_tokens=50
                )
            except openai.OpenAIError as error:
                self.failed.append(error)
            else:
                self.answered += 1
                self._one.set()

    async def more(self, calls: int) -> None:
        """Until so many more were answered."""
        until = self.answered + calls
        async with asyncio.timeout(60):
            while self.answered < until:
                self._one.clear()
                await self._one.wait()


@contextlib.asynccontextmanager
async def under_load(served: Several, callers: int = 4, key: str = "k") -> AsyncGenerator[Load]:
    """Calls for the model "m" until the end, or until it is told that it is over."""
    async with served.client(key) as client, asyncio.TaskGroup() as group:
        load = Load(client, "m")
        for _ in range(callers):
            group.create_task(load.run())
        try:
            yield load
        finally:
            load.over = True
