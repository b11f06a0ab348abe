import os
import pty
import subprocess
import sys
from pathlib import Path

from files import otlp_task, written

MAIN = "from headway.app.cli.main import main; main()"


def explained(path: Path, *, watched: bool) -> tuple[str, str]:
    """What comes out on standard output, and on standard error, which somebody watches or not."""
    ours, theirs = pty.openpty() if watched else os.pipe()
    ran = subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-c", MAIN, "explain", str(path)],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(theirs)
    said = bytearray()
    with ran, os.fdopen(ours, "rb", buffering=0) as screen:
        try:
            while block := screen.read(4096):
                said += block
        except OSError:
            pass  # how a terminal ends on Linux when nobody is left to write to it
        assert ran.stdout is not None
        out = ran.stdout.read().decode()
    assert ran.returncode == 0
    return out, said.decode()


def test_who_watches_sees_how_far_the_reading_has_got_and_nothing_stays(tmp_path: Path) -> None:
    path = written(tmp_path / "many.jsonl", (otlp_task(number) for number in range(300)))
    out, screen = explained(path, watched=True)
    assert "reading" in screen
    assert "300 tasks worked out" in screen
    assert "working out levers and findings" in screen
    assert "\x1b[2K" in screen.rpartition("worked out")[2], "its line is erased"
    assert "tasks worked out" not in out


def test_where_nobody_watches_nothing_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "many.jsonl", (otlp_task(number) for number in range(300)))
    assert explained(path, watched=False)[1] == ""
