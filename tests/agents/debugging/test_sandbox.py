"""What the sandbox keeps from foreign code, each tried by code that wants it."""

import asyncio
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from debugging import needs_sandbox

from headway.agents.debugging.sandbox import Limits, Ran, run_in_sandbox

SMALL = Limits(seconds=30, memory=256 << 20, disk=32 << 20, files=2_000, processes=24)


@pytest.fixture(scope="module", autouse=True)
def sandbox() -> None:
    needs_sandbox()


async def ran(folder: Path, code: str, limits: Limits = SMALL, written: Mapping[str, str] | None = None) -> Ran:
    command = [sys.executable, "-IS", "-c", code]
    readable = [Path(sys.prefix), Path(sys.base_prefix)]
    return await run_in_sandbox(folder, command, limits, readable=readable, written=written, env={"GIVEN": "1"})


async def test_it_works_on_a_copy(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    code = "open('a.txt', 'a').write(open('b/c.txt').read()); print(open('a.txt').read())"
    done = await ran(tmp_path, code, written={"work/b/c.txt": "new"})
    assert (done.ended, done.code, done.output) == ("exited", 0, "anew\n")
    assert (tmp_path / "a.txt").read_text() == "a"
    assert not (tmp_path / "b").exists()


async def test_it_has_no_network_but_its_own(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; print(socket.create_connection(('127.0.0.1', {port}), timeout=5))"
        done = await ran(tmp_path, code)
        assert "ConnectionRefusedError" in done.output
        allowed = await ran(tmp_path, code, Limits(seconds=30, network=True))
        assert allowed.code == 0, allowed.output
    own = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()); print(1)"
    )
    assert (await ran(tmp_path, own)).output == "1\n"


async def test_it_sees_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hush")
    (secret := tmp_path / "secret").write_text("hush")
    (work := tmp_path / "work").mkdir()
    code = f"""if True:
        import os
        print(sorted(os.environ))
        for path in ({str(secret)!r}, {str(Path.home() / ".bashrc")!r}, "/etc/shadow", "/proc/{os.getpid()}/environ"):
            try: print(open(path).read())
            except OSError as error: print(type(error).__name__)"""
    done = await ran(work, code)
    first, *rest = done.output.splitlines()
    assert set(rest) <= {"FileNotFoundError", "PermissionError"}
    assert "OPENAI_API_KEY" not in first
    assert "GIVEN" in first


async def test_it_can_write_nowhere_else_and_is_not_root(tmp_path: Path) -> None:
    code = f"""if True:
        import os
        assert os.getuid() != 0
        for path in ("/usr/x", {sys.prefix!r} + "/x", {sys.base_prefix!r} + "/x"):
            try: open(path, "w"); print("wrote", path)
            except OSError: pass"""
    done = await ran(tmp_path, code)
    assert (done.code, done.output) == (0, "")


async def test_a_fork_bomb_ends_with_it(tmp_path: Path) -> None:
    bomb = "import os, signal\nwhile True:\n    try: os.fork()\n    except OSError: signal.pause()"
    done = await ran(tmp_path, bomb, Limits(seconds=2, processes=24))
    assert done.ended == "time"


async def test_what_it_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    port = 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"""if True:
            import os, socket, signal
            s = socket.create_connection(("127.0.0.1", {port}))
            if os.fork() == 0:
                os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN); os.closerange(0, 3); signal.pause()"""
        done = await ran(tmp_path, code, Limits(seconds=30, network=True))
        assert done.code == 0, done.output
        connection, _ = server.accept()
        connection.settimeout(10)
        assert connection.recv(1) == b""  # the last that held it is gone
        connection.close()


async def test_ten_gigabytes_do_not_fit(tmp_path: Path) -> None:
    one = "f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20))"
    many = "n = 0\nwhile True:\n    n += 1; open(f'/tmp/{n}', 'wb').write(bytes(1 << 20))"
    empty = "n = 0\nwhile True:\n    n += 1; open(f'/dev/shm/{n}', 'wb').close()"
    for code in (one, many, empty):
        done = await ran(tmp_path, code)
        assert "No space left" in done.output or "File too large" in done.output


async def test_memory_is_bounded_for_each_and_for_all(tmp_path: Path) -> None:
    alone = await ran(tmp_path, "bytearray(1 << 30)")
    assert "MemoryError" in alone.output
    together = """if True:
        import os, signal
        for _ in range(8):
            if os.fork() == 0:
                held = bytearray(os.urandom(64 << 20))
                signal.pause()
        signal.pause()"""
    assert (await ran(tmp_path, together)).ended == "memory"


async def test_a_hundred_megabytes_of_output_are_cut(tmp_path: Path) -> None:
    done = await ran(tmp_path, "print('begin')\nfor _ in range(100): print('x' * (1 << 20))\nprint('end')")
    assert done.output.startswith("begin")
    assert done.output.endswith("end\n")
    assert len(done.output) < 40_000
    assert "bytes left out" in done.output


async def test_it_is_killed_when_nobody_waits_any_more(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        port = server.getsockname()[1]
        code = f"import socket, signal; s = socket.create_connection(('127.0.0.1', {port})); signal.pause()"
        work = asyncio.create_task(ran(tmp_path, code, Limits(seconds=300, network=True)))
        connection, _ = await asyncio.to_thread(server.accept)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        connection.settimeout(10)
        assert await asyncio.to_thread(connection.recv, 1) == b""
        connection.close()


async def test_it_cannot_undo_its_own_limits(tmp_path: Path) -> None:
    code = """if True:
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        libc.unshare(0x10000000 | 0x20000)
        print(libc.mount(b"none", b"/usr", b"", 32 | 4096, None))
        try: open("/usr/x", "w"); print("wrote")
        except OSError: print("refused")"""
    done = await ran(tmp_path, code)
    assert done.output == "-1\nrefused\n"
