"""The mock engine and the load generator, compiled and run against each other and against a server of the test's."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rig.build import CannotBuildError, build
from rig.machine import this_machine
from rig.processes import Cores, child, cpu_seconds
from rig.rounds import Loader, WrongAnswerError, interleave
from rig.servers import Pace, Server, mock_engine
from rig.traffic import MARKER, Traffic, agent_traffic, question_traffic, stream_events, stream_traffic


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    try:
        build("mock")
        build("load")
    except CannotBuildError as error:
        pytest.skip(str(error))


@contextmanager
def engine(traffic: Traffic, folder: Path, *, tokens: int = 4, pace: Pace | None = None) -> Generator[Server]:
    with mock_engine(traffic, stream_events(tokens), pace or Pace(), Cores(), folder) as server:
        yield server


@pytest.mark.parametrize(
    "traffic",
    [
        question_traffic(306, conversations=3),
        agent_traffic(27_000, conversations=2, steps=8),
        agent_traffic(221_000, conversations=1, steps=3),
        stream_traffic(306, conversations=3, tokens=4),
    ],
    ids=["306 B", "27 KB", "221 KB", "stream"],
)
def test_the_engine_gives_each_request_the_answer_that_the_generator_expects(traffic: Traffic, tmp_path: Path) -> None:
    with engine(traffic, tmp_path) as server:
        result = Loader(traffic, server, Cores(), tmp_path, requests=200).run(server, connections=7, seconds=30)

    assert result.answers == 200
    assert 0 < result.first_p50_us <= result.p50_us <= result.p99_us
    assert result.cpu_us > 0


def test_a_paced_stream_keeps_its_times(tmp_path: Path) -> None:
    traffic = stream_traffic(306, conversations=3, tokens=4)
    with engine(traffic, tmp_path, pace=Pace(ttft=0.020, itl=0.010)) as server:
        result = Loader(traffic, server, Cores(), tmp_path, requests=6).run(server, connections=3, seconds=30)

    # The first token at 20 ms, three more and the end at 10 ms each: no earlier, however slow the machine.
    assert result.first_p50_us >= 20_000
    assert result.p50_us >= 60_000


def test_an_answer_that_differs_by_one_byte_ends_the_run(tmp_path: Path) -> None:
    traffic = question_traffic(306, conversations=1)
    with engine(traffic, tmp_path) as server:
        wrong = Traffic(traffic.bodies, traffic.turns, traffic.answer[:-2] + b"]}", traffic.mark)
        with pytest.raises(WrongAnswerError, match="differs from the expected one"):
            Loader(wrong, server, Cores(), tmp_path, requests=5).run(server, connections=1, seconds=30)


def test_rounds_take_the_servers_in_turn(tmp_path: Path) -> None:
    traffic = question_traffic(306, conversations=1)
    with engine(traffic, tmp_path) as server:
        other = Server("other", server.port, server.pid)
        loader = Loader(traffic, server, Cores(), tmp_path, requests=5)
        kept = interleave(loader, [server, other], (1, 2), rounds=2, seconds=1)

    order = [(one.server, one.connections) for one in kept]
    assert order[:4] == [("direct", 1), ("other", 1), ("direct", 2), ("other", 2)]
    assert order[4:] == [("other", 1), ("direct", 1), ("other", 2), ("direct", 2)]


def _load(port: int, folder: Path, bodies: list[str], turns: int, answer: str, requests: int) -> list[str]:
    (folder / "corpus").write_text("\n".join(bodies))
    (folder / "expect").write_text(answer)
    options = {"port": port, "connections": 1, "seconds": 30, "requests": requests, "turns": turns, "mark": 1}
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    return [str(build("load")), *flags, "--corpus", str(folder / "corpus"), "--expect", str(folder / "expect")]


async def _answered(replies: list[bytes], bodies: list[str], turns: int, folder: Path) -> tuple[list[str], str, str]:
    """Runs the generator against a server that sends ``replies`` byte by byte; bodies seen, stdout and stderr."""
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for reply in replies:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.split("content-length: ")[1].split("\r\n")[0])
            seen.append((await reader.readexactly(length)).decode())
            for byte in reply:
                writer.write(bytes([byte]))
                await writer.drain()
        await reader.read()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        command = _load(port, folder, bodies, turns, '{"ok":true}', len(replies))
        load = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, errors = await load.communicate()
    return seen, out.decode(), errors.decode()


PLAIN = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}'
CHUNKED = b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{"ok\r\n7;x=y\r\n":true}\r\n0\r\nA: b\r\n\r\n'


async def test_each_conversation_is_played_turn_by_turn_under_an_id_of_its_own(tmp_path: Path) -> None:
    bodies = [f"one {MARKER} first", f"one {MARKER} second", f"two {MARKER} first", f"two {MARKER} second"]

    seen, out, _ = await _answered([PLAIN, CHUNKED] * 3, bodies, 2, tmp_path)

    assert json.loads(out)["answers"] == 6
    words = [body.split() for body in seen]
    assert [word for _, _, word in words] == ["first", "second"] * 3
    assert [name for name, _, _ in words] == ["two", "two", "one", "one", "two", "two"]
    ids = [marker for _, marker, _ in words]
    assert all(len(marker) == 16 for marker in ids)
    assert ids[0::2] == ids[1::2]
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "not 200"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"ok":tru', "9 bytes, expected 11"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", "neither a length nor chunks"),
    ],
)
async def test_a_wrong_answer_ends_the_run_and_is_named(reply: bytes, complaint: str, tmp_path: Path) -> None:
    _, out, errors = await _answered([reply], [MARKER], 1, tmp_path)

    assert out == ""
    assert complaint in errors


def test_cpu_seconds_count_a_process_and_its_children(tmp_path: Path) -> None:
    spin = "import os\npid = os.fork()\nif pid: print(pid, flush=True)\nwhile not pid: pass\nos.wait()"
    with child([sys.executable, "-c", spin], Cores().load, tmp_path / "log") as process:
        assert process.stdout is not None
        spinning = int(process.stdout.readline())
        before = cpu_seconds(process.pid)
        while (alone := cpu_seconds(spinning)) < 0.02:
            pass
        together = cpu_seconds(process.pid)
        os.kill(spinning, signal.SIGKILL)

    assert together > before
    assert together > alone


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rig.build.FLAGS", ("-no-such-flag",))

    with pytest.raises(CannotBuildError, match="no-such-flag"):
        build("mock", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_machine_line_names_what_was_measured_with() -> None:
    line = this_machine("cc").line()

    assert f"Python {sys.version.split()[0]}" in line
    assert "commit " in line
