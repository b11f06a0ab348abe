"""`headway mcp` as a program: how it ends, and what it says when it cannot begin."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.parametrize("number", [0, 15], ids=["end of input", "SIGTERM"])
def test_it_ends_when_it_is_told_to(tmp_path: Path, number: int) -> None:
    command = [sys.executable, "-m", "headway", "mcp", "--store", str(tmp_path / "s.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603 - our own
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        if number:
            process.send_signal(number)
        else:
            process.stdin.close()
        assert process.wait(60) == (128 + number if number else 0)


def test_without_the_package_it_says_what_to_install(headway: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("headway.app.mcp.serving", "headway.app.mcp.server"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    ran = headway("mcp")
    assert ran.code == 1
    assert "pip install 'headway[mcp]'" in ran.err


def test_a_port_that_is_taken(headway: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        taken.listen()
        ran = headway("mcp", "--port", str(port))
    assert ran.code == 1
    assert f"127.0.0.1:{port} cannot be listened on" in ran.err


def test_its_help_has_an_example(headway: Run) -> None:
    ran = headway("mcp", "--help")
    assert ran.code == 0
    assert "claude mcp add headway -- headway mcp" in ran.out
