"""Ctrl-C while the command line is still being loaded: the moment is made by an import that is interrupted."""

import subprocess
import sys
from importlib.metadata import version

INTERRUPTED = """
import sys

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "headway.app.cli.main":
            raise KeyboardInterrupt

sys.meta_path.insert(0, CtrlC())
from headway.app.cli.entry import main
main()
"""


def test_ctrl_c_while_it_loads_ends_it_with_a_line_and_not_a_traceback() -> None:
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)  # noqa: S603 - our own text
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "headway: stopped by Ctrl-C.\n")


def test_it_says_which_version_it_is() -> None:
    code = "from headway.app.cli.entry import main; import sys; sys.argv = ['headway', '--version']; main()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our own text
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"headway {version('headway')}\n", "")


def test_it_runs_the_command_line() -> None:
    code = "from headway.app.cli.entry import main; import sys; sys.argv = ['headway', '--help']; main()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our own text
    assert ran.returncode == 0
    assert "Usage: headway" in ran.stdout
