"""`headway serve`, whole: real engines that fail, real clients, real signals, and nothing left of it afterwards."""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from running import interrupt, served

from headway.app.cli.main import main
from headway.app.running import serve
from headway.app.service import Embedded, Ready, Service
from headway.core.errors import HeadwayError
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.engines import EngineSpec
from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.models import locate
from headway.trace.store import Store

QUESTION: list[Any] = [{"role": "user", "content": "one two"}]


def replica(engine: FakeEngine, name: str, *models: str) -> Replica:
    return Replica(id=ReplicaId(name), url=engine.url, models=models)


class Log(logging.Handler):
    """What the service told the operator so far; a test may wait for a line."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._more = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.text += f"{record.getMessage()}\n"
        self._more.set()

    async def until(self, words: str, times: int = 1) -> None:
        while self.text.count(words) < times:
            self._more.clear()
            await self._more.wait()


@pytest.fixture
async def log() -> AsyncGenerator[Log]:
    one, logger = Log(), logging.getLogger("headway")
    level = logger.level
    logger.addHandler(one)
    logger.setLevel(logging.INFO)
    yield one
    logger.removeHandler(one)
    logger.setLevel(level)


def client_of(ready: Ready) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=ready.url, api_key="k", max_retries=0)


async def ask(client: openai.AsyncOpenAI, model: str = "fake") -> str | None:
    answer = await client.chat.completions.create(model=model, messages=QUESTION)
    return answer.choices[0].message.content


async def fetch(url: str) -> tuple[int, str]:
    host, port = url.split("/")[2].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    path = "/" + "/".join(url.split("/")[3:])
    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return int(head.split()[1]), body.decode()


async def test_calls_are_served_recorded_and_shown_and_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "spans.db"
    async with FakeEngine() as one, FakeEngine() as two:
        service = Service(upstreams=(replica(one, "one"), replica(two, "two")), port=0, store=path)
        async with served(service) as (ready, _), client_of(ready) as client:
            assert [(each.id, each.url, each.pid) for each in ready.replicas] == [
                ("one", one.url, None),
                ("two", two.url, None),
            ]
            assert ready.store == str(path)
            assert [await ask(client) for _ in range(4)] == ["echo: one two"] * 4
            assert (len(one.requests), len(two.requests)) == (2, 2)
            assert ready.admin is not None
            assert (await fetch(ready.admin + "/fleet"))[0] == 200
            assert "headway_requests_total" in (await fetch(ready.url.removesuffix("/v1") + "/metrics"))[1]
        assert (one.open_connections, two.open_connections) == (0, 0)
        for url in (ready.url, ready.admin):
            with pytest.raises(ConnectionRefusedError):
                await fetch(url)
    with Store(path, readonly=True) as store:
        assert [row.calls for row in store.tasks()] == [1, 1, 1, 1]
    assert len(asyncio.all_tasks()) == 1


async def test_the_first_signal_lets_calls_end(log: Log) -> None:
    gate = asyncio.Event()
    async with FakeEngine(lambda _: Reply(content="done", gate=gate)) as engine:
        service = Service(upstreams=(replica(engine, "r"),), port=0, admin_port=None)
        async with served(service) as (ready, serving), client_of(ready) as client:
            assert ready.admin is None
            assert ready.store is None
            call = asyncio.create_task(ask(client))
            await engine.until(lambda: engine.active == 1)
            interrupt()
            await log.until("stopping")
            assert not call.done()
            assert not serving.done()
            gate.set()
            assert await call == "done"


async def test_the_second_signal_ends_calls_at_once(log: Log) -> None:
    async with FakeEngine(lambda _: Reply(fault="stall_before")) as engine:
        service = Service(upstreams=(replica(engine, "r"),), port=0, admin_port=None, drain=600.0)
        async with served(service) as (ready, serving), client_of(ready) as client:
            call = asyncio.create_task(ask(client))
            await engine.until(lambda: engine.active == 1)
            interrupt()
            await log.until("stopping")
            interrupt()
            with pytest.raises(openai.InternalServerError, match="shutting down"):
                await call
            await serving
            await engine.wait_cancelled()


async def test_a_signal_while_it_starts_ends_the_start() -> None:
    asked = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(never, "127.0.0.1", 0)
    async with silent:
        url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}/v1"
        upstream = Replica(id=ReplicaId("silent"), url=url)
        announced: list[Ready] = []
        serving = asyncio.create_task(serve(Service(upstreams=(upstream,), port=0), announced.append))
        await asked.wait()
        interrupt()
        await serving
        assert announced == []


async def test_a_replica_that_goes_down_is_told_and_passed_by(log: Log) -> None:
    async with FakeEngine() as one, FakeEngine() as two:
        service = Service(upstreams=(replica(one, "one"), replica(two, "two")), port=0, admin_port=None)
        async with served(service) as (ready, _), client_of(ready) as client:
            await one.go_down()
            assert [await ask(client) for _ in range(3)] == ["echo: one two"] * 3
            assert len(two.requests) == 3
            assert "replica one is down" in log.text
            await one.come_up()
            await log.until("replica one is up")
    assert "one two" not in log.text


async def test_several_upstreams_are_asked_what_they_serve() -> None:
    async with FakeEngine(models=("small",)) as one, FakeEngine(models=("large",)) as two:
        service = Service(upstreams=(replica(one, "one"), replica(two, "two")), port=0, admin_port=None)
        async with served(service) as (ready, _), client_of(ready) as client:
            await ask(client, "large")
            await ask(client, "large")
            assert (len(one.requests), len(two.requests)) == (0, 2)
            with pytest.raises(openai.NotFoundError, match="small, large"):
                await ask(client, "medium")


async def test_an_upstream_that_is_not_there_is_told_at_once(log: Log) -> None:
    async with FakeEngine() as engine:
        gone = replica(engine, "gone", "m")
    async with served(Service(upstreams=(gone,), port=0, admin_port=None)):
        assert "replica gone is down" in log.text


async def failure_of(service: Service) -> HeadwayError:
    with pytest.raises(HeadwayError) as caught:
        await serve(service, lambda ready: pytest.fail(f"announced {ready}"))
    assert len(asyncio.all_tasks()) == 1
    return caught.value


async def test_what_cannot_be_started_is_one_error_and_leaves_nothing(tmp_path: Path) -> None:
    upstream = Replica(id=ReplicaId("r"), url="http://127.0.0.1:1/v1")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        error = await failure_of(Service(upstreams=(upstream,), port=port, store=tmp_path / "a.db"))
        assert f"Cannot listen on 127.0.0.1:{port}" in error.what
        error = await failure_of(Service(upstreams=(upstream,), port=0, admin_port=port, store=tmp_path / "b.db"))
        assert "--admin-port" in error.fix
    error = await failure_of(Service(port=0))
    assert "--upstream" in error.fix
    assert "--embedded" in error.fix
    assert "least-loaded" in (await failure_of(Service(upstreams=(upstream,), policy="best"))).fix
    (tmp_path / "text.db").write_text("no database, but plain text of some length")
    assert "text.db" in (await failure_of(Service(upstreams=(upstream,), store=tmp_path / "text.db"))).what


@asynccontextmanager
async def command(*arguments: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """`headway serve` in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("headway"),
        "serve",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_the_command_says_where_it_is_to_a_machine_and_ends_with_0(tmp_path: Path) -> None:
    async with FakeEngine() as engine:
        store = str(tmp_path / "deep" / "spans.db")
        options = ("--json", "--port", "0", "--upstream", f"{engine.url},id=r", "--store", store)
        async with command(*options) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            ready = json.loads(await process.stdout.readline())
            assert ready["ready"] is True
            assert ready["store"] == store
            assert ready["replicas"] == [{"id": "r", "url": engine.url, "pid": None}]
            async with openai.AsyncOpenAI(base_url=ready["url"], api_key="sk-hidden", max_retries=0) as client:
                assert await ask(client, "any name") == "echo: one two"
            process.send_signal(signal.SIGTERM)
            out, log = await process.communicate()
            assert process.returncode == 0, log
            assert out == b""
            assert b"stopped" in log
            assert b"Traceback" not in log
            assert b"sk-hidden" not in log
            assert b"one two" not in log


async def test_the_command_says_where_it_is_to_a_person() -> None:
    async with command("--no-record", "--no-admin", "--port", "0", "--upstream", "http://127.0.0.1:1") as process:
        assert process.stdout is not None
        assert (await process.stdout.readline()).startswith(b"Headway serves on http://127.0.0.1:")
        assert b"export OPENAI_BASE_URL=http://127.0.0.1:" in await process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, log = await process.communicate()
        assert process.returncode == 0, log
        assert b"recording is off" in out
        assert b"dashboard" not in out
        assert b"replica 127.0.0.1:1 is down" in log


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), b"There is no engine to serve from."),
        (("--upstream", "nonsense"), b"is no URL of an HTTP server"),
        (("--upstream", "http://127.0.0.1:1", "--weights", "x.gguf"), b"Add --embedded 2."),
        (("--upstream", "http://127.0.0.1:1", "--body-bytes", "lots"), b"--body-bytes cannot be 'lots'"),
    ],
)
def test_a_wrong_command_ends_with_one_line_and_the_way_out(
    options: tuple[str, ...], words: bytes, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["headway", "serve", "--no-record", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    said = capsysbinary.readouterr().err
    assert words in said
    assert said.count(b"\n") <= 2


def local_model() -> Path:
    weights = locate()
    if weights is None:
        pytest.skip("the embedded model's weights are not here; fetch them with: headway models pull")
    return weights


async def port_opens(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.sleep(0)
        else:
            writer.close()
            await writer.wait_closed()
            return


@pytest.mark.model
async def test_a_call_that_comes_while_engines_load_is_told_so(log: Log) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    spec = EngineSpec(weights=local_model(), slots=1, context=512, threads=1, cache_mib=0)
    starting = served(Service(embedded=Embedded(spec=spec, count=1), port=port, admin_port=None))
    entering = asyncio.create_task(starting.__aenter__())
    await log.until("starting 1 replica of")
    async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k", max_retries=0) as client:
        await port_opens(port)
        with pytest.raises(openai.InternalServerError, match="embedded-1: starting") as caught:
            await ask(client, "embedded")
        assert caught.value.status_code == 503
        assert caught.value.response.headers["retry-after"] == "2"
        await entering
        await ask(client, "embedded")
    await starting.__aexit__(None, None, None)
    assert log.text.count("replica embedded-1 is up") == 1


@pytest.mark.model
async def test_an_embedded_replica_that_is_killed_is_passed_by_and_comes_back(log: Log) -> None:
    spec = EngineSpec(weights=local_model(), slots=1, context=512, threads=1, cache_mib=0)
    service = Service(embedded=Embedded(spec=spec, count=2), port=0, admin_port=None)
    async with served(service) as (ready, _), client_of(ready) as client:
        pids = [each.pid for each in ready.replicas if each.pid is not None]
        assert len(pids) == 2
        os.kill(pids[0], signal.SIGKILL)
        await log.until("replica embedded-1 is down")
        for _ in range(2):
            answer = await client.chat.completions.create(model="embedded", messages=QUESTION, max_tokens=2)
            assert answer.usage is not None
            assert answer.usage.completion_tokens == 2
        await log.until("replica embedded-1 is up", times=2)  # at its start, and now again
    assert log.text.count("was killed by SIGKILL") == 1
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(
    ("number", "status", "name"), [(signal.SIGINT, 130, b"Ctrl-C"), (signal.SIGTERM, 143, b"SIGTERM")]
)
async def test_the_command_that_is_stopped_before_it_serves_says_so_in_its_status(
    number: signal.Signals, status: int, name: bytes
) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await never.wait()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as engine:
        url = f"http://127.0.0.1:{engine.sockets[0].getsockname()[1]}"
        async with command("--no-record", "--no-admin", "--port", "0", "--upstream", url) as process:
            async with asyncio.timeout(60):
                await asked.wait()  # it waits for what the engine says of its health
            process.send_signal(number)
            out, log = await process.communicate()
        never.set()
    assert (process.returncode, out) == (status, b"")
    assert log.splitlines()[-1] == b"headway: stopped by " + name + b"; all that it had started has ended."
    assert b"Traceback" not in log
