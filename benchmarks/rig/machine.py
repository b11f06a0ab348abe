"""Where a figure was measured: a figure without its machine is a rumour."""

import os
import platform
import shutil
import subprocess
import sysconfig
import timeit
from pathlib import Path

from msgspec import Struct


class Machine(Struct, frozen=True, kw_only=True):
    """The machine, the versions and the commit of a run."""

    cpu: str
    cores: int
    kernel: str
    python: str
    """Its version, what its build says of itself, and how fast it is."""
    nginx: str | None
    compiler: str
    commit: str

    def line(self) -> str:
        """All of it in one line."""
        nginx = self.nginx or "nginx: not installed"
        place = f"{self.cpu}, {self.cores} cores, Linux {self.kernel}"
        return f"{place} · Python {self.python} · {nginx} · {self.compiler} · commit {self.commit}"


def _output(*command: str) -> str:
    """What a command prints, on either stream; empty when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def nginx_path() -> str | None:
    """Where nginx is, if anywhere; it often lies outside a user's path."""
    return shutil.which("nginx", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin")))


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _python() -> str:
    """A build that was optimised by profile takes about two thirds of the time; not every such build says so."""
    said = "" if "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "") else "not known to be "
    turn = min(timeit.repeat("for _ in range(1000): pass", number=100, repeat=20)) * 1e4
    return (
        f"{platform.python_version()} ({said}built with --enable-optimizations, {turn:.0f} ns an empty turn of a loop)"
    )


def this_machine(compiler: str) -> Machine:
    """Look around."""
    here = str(Path(__file__).parent)
    commit = _output("git", "-C", here, "rev-parse", "--short", "HEAD") or "unknown"
    changed = _output("git", "-C", here, "status", "--porcelain", "--untracked-files=no", "--", "../../src")
    nginx = nginx_path()
    return Machine(
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)),
        kernel=platform.release(),
        python=_python(),
        nginx=_output(nginx, "-v").removeprefix("nginx version: ") if nginx else None,
        compiler=_output(compiler, "--version").splitlines()[0],
        commit=commit + (" with changes" if changed else ""),
    )
