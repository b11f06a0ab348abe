import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.core.errors import WorkerError
from headway.trace.workers import hired

_ASKS = """
import time
from headway.trace.workers import hired

if __name__ == "__main__":
    with hired(2) as workers:
        for done in workers.map(time.sleep, [0, 0, 600, 600]):
            print("busy", flush=True)
"""

_STARTS = """
import os
import signal
import sys
from headway.trace.workers import hired

if __name__ == "__mp_main__":  # a helper that has begun to start, and has not yet learnt to leave Ctrl-C to who asks
    try:
        os.close(os.open(sys.argv[0] + ".pressed", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        pass
    else:
        os.killpg(0, signal.SIGINT)  # as a terminal sends it: to all of them

if __name__ == "__main__":
    try:
        with hired(2) as workers:
            list(workers.map(abs, range(10_000_000)))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


class StoppedError(Exception):
    """Who asks has had enough."""


def test_results_come_in_the_order_of_the_work() -> None:
    with hired(2) as workers:
        assert list(workers.map(abs, range(-20, 0))) == list(range(20, 0, -1))
    assert not multiprocessing.active_children()


def test_shared_work_comes_back_in_order_whoever_did_it() -> None:
    with hired(1) as workers:
        assert workers.share(abs, range(-40, 0)).results() == list(range(40, 0, -1))


def test_work_is_asked_for_as_it_is_needed() -> None:
    asked: list[int] = []

    def work() -> Iterator[int]:
        for number in range(100):
            asked.append(number)
            yield number

    with hired(1) as workers:
        assert next(workers.map(abs, work())) == 0
        assert len(asked) == 3


def test_a_process_that_dies_is_told_and_none_is_left() -> None:
    with pytest.raises(WorkerError, match="--jobs 1"), hired(2) as workers:
        list(workers.map(os._exit, [3]))
    assert not multiprocessing.active_children()


def test_an_error_in_the_work_is_the_askers() -> None:
    with pytest.raises(ValueError, match="seven"), hired(1) as workers:
        list(workers.map(int, ["seven"]))
    assert not multiprocessing.active_children()


def test_who_leaves_early_leaves_nobody_at_work() -> None:
    def leave() -> None:
        with hired(2) as workers:
            for _ in workers.map(time.sleep, [0, 600, 600]):
                raise StoppedError

    with pytest.raises(StoppedError):
        leave()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_whoever_ends_the_asker_ends_the_processes(number: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "asks.py"
    script.write_text(_ASKS)
    asker = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
    with asker:
        assert asker.stdout is not None
        assert asker.stdout.readline() == b"busy\n"
        asker.send_signal(number)
        # The processes hold the other end of this pipe: it ends when the last of them has.
        assert asker.stdout.read().replace(b"busy\n", b"") == b""
    assert asker.returncode != 0


def test_ctrl_c_while_they_start_reaches_the_asker_alone(tmp_path: Path) -> None:
    script = tmp_path / "starts.py"
    script.write_text(_STARTS)
    ran = subprocess.run(  # noqa: S603 - ours
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=60, start_new_session=True
    )
    assert (tmp_path / "starts.py.pressed").exists()
    assert (ran.stdout, ran.stderr, ran.returncode) == ("interrupted\n", "", 0)
