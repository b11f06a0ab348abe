"""Other gateways: installed in environments of their own in the user's cache, and started as their pages say."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from platformdirs import user_cache_path

from rig.processes import ChildFailedError, Cores, child
from rig.servers import Server, await_listener, free_port

INSTALL_SECONDS = 240
START_SECONDS = 90.0
KEY = "sk-bench"


class CannotInstallError(Exception):
    """A peer is not to be had here; the message says why."""


class Peer(Struct, frozen=True, kw_only=True):
    """One of them, pinned."""

    name: str
    requirement: str
    command: Callable[[Path, str, int, Path], list[str]]
    """From the environment's ``bin``, the engine's address, the port to listen on and a folder for files."""
    rewrites: bool = False
    """It writes answers anew, so they cannot be compared byte by byte."""

    @property
    def home(self) -> Path:
        """Where it is installed."""
        return user_cache_path("headway") / "bench" / "peers" / re.sub(r"[^\w.]+", "-", self.requirement)


def _sglang(bin_: Path, engine: str, port: int, _: Path) -> list[str]:
    return [str(bin_ / "python"), "-m", "sglang_router.launch_router", *_router(engine, port), "--log-level", "warn"]


def _vllm(bin_: Path, engine: str, port: int, _: Path) -> list[str]:
    return [str(bin_ / "vllm-router"), *_router(engine, port), "--log-level", "warning"]


def _router(engine: str, port: int) -> list[str]:
    """What both routers take; their levels of logging differ in name. A line for every call would be most of a call."""
    listen = ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(free_port())]
    return ["--worker-urls", engine, "--policy", "cache_aware", *listen]


def _litellm(bin_: Path, engine: str, port: int, folder: Path) -> list[str]:
    model = {"model": "openai/mock", "api_base": f"{engine}/v1", "api_key": "none"}
    config = {
        "model_list": [{"model_name": "mock", "litellm_params": model}],
        "general_settings": {"master_key": KEY},
    }
    path = folder / "litellm.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML
    own_prices = "LITELLM_LOCAL_MODEL_COST_MAP=True"  # else it waits for a network that there may not be
    listen = ["--host", "127.0.0.1", "--port", str(port)]
    # It imports what lies two folders above where it is started before its own packages.
    return ["env", f"--chdir={folder}", own_prices, str(bin_ / "litellm"), "--config", str(path), *listen]


PEERS = (
    Peer(name="sglang-router", requirement="sglang-router==0.3.2", command=_sglang),
    Peer(name="vllm-router", requirement="vllm-router==0.1.17", command=_vllm),
    Peer(name="LiteLLM", requirement="litellm[proxy]==1.108.7", command=_litellm, rewrites=True),
)


def install(peer: Peer) -> Path:
    """The ``bin`` of its environment, which is made if need be; wheels only, so nothing is compiled.

    Raises:
        CannotInstallError: it cannot be had; with what the installer said last.
    """
    done = peer.home / "installed"
    if not done.exists():
        shutil.rmtree(peer.home, ignore_errors=True)
        python = str(peer.home / "bin" / "python")
        uv = shutil.which("uv")
        making = [uv, "venv", "--quiet"] if uv else [sys.executable, "-m", "venv"]
        adding = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
        _run([*making, str(peer.home)])
        _run([*adding, "--quiet", "--only-binary", ":all:", peer.requirement])
        done.touch()
    return peer.home / "bin"


def _run(command: list[str]) -> None:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired as error:
        msg = f"it took longer than {INSTALL_SECONDS} s"
        raise CannotInstallError(msg) from error
    if ended.returncode != 0:
        raise CannotInstallError(" ".join((ended.stderr or ended.stdout).split())[-300:])


@contextmanager
def running(peer: Peer, bin_: Path, engine: Server, cores: Cores, folder: Path) -> Generator[Server]:
    """The peer in front of the mock engine, on one core.

    Raises:
        ChildFailedError: it does not listen.
    """
    port = free_port()
    log = folder / f"{peer.name}.log"
    command = peer.command(bin_, f"http://127.0.0.1:{engine.port}", port, folder)
    with child(command, cores.served, log, talks=False) as process:
        try:
            await_listener(port, process, log, START_SECONDS)
        except ChildFailedError as error:
            msg = f"{peer.name} did not start within {START_SECONDS:g} s, or ended: {log.read_text()[-500:]}"
            raise ChildFailedError(msg) from error
        yield Server(peer.name, port, process.pid, KEY, rewrites=peer.rewrites)
