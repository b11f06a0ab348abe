"""What an engine process does for itself, without its fleet."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from headway.gateway.engine_process import READY, Launch
from headway.gateway.engines import reserve_port


def start(launch: Launch) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "headway.gateway.engine_process"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603 - our own module
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(launch) + b"\n")
    process.stdin.flush()
    return process


def launch_of(weights: Path, folder: Path, *, parent: int, port: int) -> Launch:
    return Launch(
        parent=parent,
        weights=str(weights),
        alias="embedded",
        slots=1,
        context=512,
        threads=1,
        cache_mib=0,
        port=port,
        slot_folder=str(folder),
    )


def test_it_does_not_start_for_a_parent_that_is_gone(tmp_path: Path) -> None:
    weights = tmp_path / "none.gguf"
    _, errors = start(launch_of(weights, tmp_path / "slots", parent=0, port=0)).communicate(timeout=60)
    assert b"the parent died" in errors
    assert not (tmp_path / "slots").exists()


@pytest.mark.model
@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
def test_it_ends_quietly_and_takes_its_folder_along(weights: Path, tmp_path: Path, how: str) -> None:
    folder = tmp_path / "slots"
    with reserve_port() as reserved:
        launch = launch_of(weights, folder, parent=os.getpid(), port=reserved.getsockname()[1])
        with start(launch) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == READY
            assert folder.is_dir()
            if how == "SIGTERM":
                process.terminate()
            _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"")
    assert not folder.exists()
