"""The protocol's official conformance suite, both ways, where npm is: `headway mcp`, and `McpServers` as a client.

Of its scenarios those run that a server of four tools that only read, and a client of tools alone, can be asked. The
others are of what neither offers (resources, prompts, sampling, elicitation, authorization), or call tools by the names
that the suite's own example has.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

SUITE = "@modelcontextprotocol/conformance@0.1.16"
NODE = 22
"""Which the suite needs; npm has it as a package too."""
CLIENT = Path(__file__).parents[1] / "support" / "mcp_client.py"
SERVER_SCENARIOS = ("server-initialize", "ping", "tools-list", "dns-rebinding-protection")
CLIENT_SCENARIOS = ("initialize", "tools_call")

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def npx() -> list[str]:
    """What runs a line of shell with the suite at hand; skips where it cannot be had."""
    found, node = shutil.which("npx"), shutil.which("node")
    if found is None or node is None:
        pytest.skip("there is no npx: install Node.js to run the conformance suite")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout  # noqa: S603 - found
    packages = [SUITE] if int(version.removeprefix("v").partition(".")[0]) >= NODE else [SUITE, f"node@{NODE}"]
    command = [found, "--yes", *(word for package in packages for word in ("--package", package)), "-c"]
    try:
        subprocess.run([*command, "conformance list"], capture_output=True, check=True, timeout=400)  # noqa: S603 - as above
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip(f"npm cannot get {SUITE} here")
    return command


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    store = tmp_path_factory.mktemp("conformance") / "s.db"
    command = [sys.executable, "-m", "headway", "mcp", "--port", "0", "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix("MCP server: ").strip()
        finally:
            process.terminate()


def run(npx: list[str], lines: list[str], folder: Path) -> str:
    """Run the scenarios one after the other, for npx takes seconds to begin; it writes its results where it is run."""
    ran = subprocess.run([*npx, " && ".join(lines)], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def passed(said: str) -> list[tuple[int, int]]:
    """Of each scenario, how many checks passed and how many there were."""
    return [(int(one), int(of)) for one, of in re.findall(r"Passed: (\d+)/(\d+), 0 failed, 0 warnings", said)]


def test_the_server_passes(npx: list[str], url: str, tmp_path: Path) -> None:
    lines = [f"conformance server --url {url} --scenario {scenario}" for scenario in SERVER_SCENARIOS]
    assert passed(run(npx, lines, tmp_path)) == [(1, 1), (1, 1), (1, 1), (2, 2)]


def test_the_client_passes(npx: list[str], tmp_path: Path) -> None:
    command = f"{sys.executable} {CLIENT}"
    lines = [f"conformance client --command '{command}' --scenario {scenario}" for scenario in CLIENT_SCENARIOS]
    assert passed(run(npx, lines, tmp_path)) == [(1, 1), (1, 1)]
