"""A pytest plugin that runs in the sandbox and says what came of each test: a line of JSON on a descriptor.

Standard library and pytest only. Exit codes and printed summaries are not taken for proof: a program that leaves by
``os._exit(0)`` in mid-test has passed nothing.
"""

import json
import os
from typing import Any

_MOST = 4000
"""Characters of a failure that are told."""


class Witness:
    """Tells of each test, on ``descriptor``."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def _say(self, **words: object) -> None:
        rest = json.dumps(words).encode() + b"\n"
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def pytest_collectreport(self, report: Any) -> None:  # noqa: ANN401 - pytest is not installed with Headway
        """A file that could not be read as tests."""
        if report.failed:
            self._say(test=report.nodeid, phase="collect", outcome="failed", text=str(report.longrepr)[-_MOST:])

    def pytest_runtest_logreport(self, report: Any) -> None:  # noqa: ANN401 - as above
        """A phase of a test."""
        text = "" if report.passed else str(report.longrepr)[-_MOST:]
        crash = getattr(report.longrepr, "reprcrash", None)
        where = {} if crash is None else {"path": str(crash.path), "error": str(crash.message)[:_MOST]}
        self._say(test=report.nodeid, phase=report.when, outcome=report.outcome, text=text, **where)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """The end, which has to have been reached."""
        self._say(test="", phase="end", outcome=str(int(exitstatus)), text="")


def pytest_configure(config: Any) -> None:  # noqa: ANN401 - as above
    """Take the descriptor out of the environment, so that no test has it by accident."""
    descriptor = int(os.environ.pop("HEADWAY_WITNESS"))
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - the standard library's own
    config.pluginmanager.register(Witness(descriptor))
