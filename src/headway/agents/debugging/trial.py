"""Test runs, the only thing that proves anything: which tests ran in a sandbox, and what came of each."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from headway.agents.debugging.repository import Repository
from headway.agents.debugging.sandbox import Limits, Ran, run_in_sandbox
from headway.core.errors import BadInputError, NotFoundError
from headway.core.span import ToolUse
from headway.runtime import Run
from headway.trace.sources.digests import arguments_digest

_PLUGIN: Final = Path(__file__).with_name("witness.py")
_INTERPRETER: Final = ("bin", "lib", "lib64", "pyvenv.cfg")
"""What an interpreter needs of its folder, which may be a home folder with much else."""
_ALL_RAN: Final = ("0", "1", "5")
"""Exit codes of pytest that reached its end: all passed, some failed, there were none."""

Outcome = Literal["passed", "failed", "error", "skipped"]
"""``error``: it failed before or after its own code, or could not be read as a test."""


class Failed(Struct, frozen=True):
    """What a test failed of."""

    text: str
    path: str
    """The file that raised; empty where pytest does not say."""
    error: str


class Trial(Struct, frozen=True, kw_only=True):
    """A test run."""

    command: str
    outcomes: dict[str, Outcome]
    """Of each test that was run, by pytest's name for it."""
    failures: dict[str, Failed]
    complete: bool
    """Whether it reached its end: it was not killed, and pytest said so itself."""
    ended: str
    """In words."""
    output: str
    seconds: float

    def of(self, path: str) -> dict[str, Outcome]:
        """The outcomes of a file's tests."""
        return {name: outcome for name, outcome in self.outcomes.items() if name.partition("::")[0] == path}

    @property
    def passed(self) -> frozenset[str]:
        """The tests that passed."""
        return frozenset(name for name, outcome in self.outcomes.items() if outcome == "passed")


class _Told(Struct):
    test: str
    phase: str
    outcome: str
    text: str
    path: str = ""
    error: str = ""


class Trials:
    """Runs tests of a repository, each time in a fresh sandbox; at most ``at_once`` together.

    Args:
        repository: what is tested.
        limits: of each run.
        python: the interpreter that has pytest and what the repository needs; ``None``: Headway's own, and of pytest's
            plugins none.
        at_once: sandboxes at the same time.

    Raises:
        NotFoundError: there is no such interpreter.
        BadInputError: it is not one, or its environment is not in order.
    """

    def __init__(self, repository: Repository, limits: Limits, python: Path | None = None, at_once: int = 2) -> None:
        self.repository = repository
        self.limits = limits
        self._own = python is None
        self._python = Path(sys.executable) if python is None else python.absolute()
        homes = (Path(sys.prefix), Path(sys.base_prefix)) if python is None else _homes(self._python)
        self._readable = tuple(home / part for home in homes for part in _INTERPRETER)
        self._gate = asyncio.Semaphore(at_once)

    async def probe(self) -> None:
        """Look whether foreign code can be isolated here, and whether there is a pytest.

        Raises:
            SandboxError: it cannot.
            BadInputError: the interpreter does not work in the sandbox, or has no pytest.
        """
        ran = await self._run(("-c", "import pytest"), {})
        if ran.code != 0:
            raise BadInputError(
                f"{self._python} cannot import pytest in the sandbox: {ran.output.strip()[-300:]}",
                fix="Name an interpreter that has it, and what the repository needs, with --python.",
            )

    async def run(self, run: Run, written: Mapping[str, str], paths: Sequence[str] = ()) -> Trial:
        """Run tests; recorded as a tool.

        Args:
            run: whose work it is.
            written: files of the repository by their path, which are new or stand for others.
            paths: of the tests; none: all that pytest finds.

        Raises:
            SandboxError: the sandbox failed.
        """
        shown = " ".join(("python -m pytest", *paths))
        digest = arguments_digest(msgspec.json.encode({"written": dict(written), "paths": list(paths)}).decode())
        work = ToolUse(name="pytest", arguments=digest)
        async with self._gate:
            with run.timed("execute_tool pytest", work) as span:
                ran = await self._run(
                    ("-m", "pytest", "-p", "headway_witness", "-p", "no:cacheprovider", "-q", "--tb=short", *paths),
                    written,
                )
                trial = _trial(shown, ran)
                span.work = ToolUse(name="pytest", arguments=digest, failed=not trial.complete)
        return trial

    async def _run(self, arguments: Sequence[str], written: Mapping[str, str]) -> Ran:
        env = {
            "PATH": f"{self._python.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": "/tmp",  # noqa: S108 - the sandbox's own
            "LANG": "C.UTF-8",
            "PYTHONPATH": "/headway:/work/src" if (self.repository.copy / "src").is_dir() else "/headway",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if self._own:  # what else is installed beside Headway is not the repository's, and may cost seconds a run
            env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        return await run_in_sandbox(
            self.repository.copy,
            (str(self._python), *arguments),
            self.limits,
            readable=self._readable,
            written={"headway/headway_witness.py": _PLUGIN.read_text(encoding="utf-8")}
            | {f"work/{path}": text for path, text in written.items()},
            env=env,
            report_in="HEADWAY_WITNESS",
        )


def _homes(python: Path) -> tuple[Path, ...]:
    """The folders of an interpreter, from its environment's own file: it is never run outside of the sandbox."""
    if not python.is_file():
        raise NotFoundError(f"{python} is no interpreter.", fix="Name one with --python, e.g. .venv/bin/python.")
    home = python.parent.parent
    settings = home / "pyvenv.cfg"
    if not settings.is_file():
        return (python.resolve().parent.parent,)
    for line in settings.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home" and value.strip():
            return home, Path(value.strip()).parent, python.resolve().parent.parent
    raise BadInputError(f"{settings} does not say where its interpreter is.", fix="Make the environment anew.")


def _trial(command: str, ran: Ran) -> Trial:
    outcomes: dict[str, Outcome] = {}
    failures: dict[str, Failed] = {}
    end = ""
    for line in ran.report.splitlines():
        try:
            told = msgspec.json.decode(line, type=_Told)
        except msgspec.DecodeError:  # killed in the middle of a word: then it has no end either
            continue
        if told.phase == "end":
            end = told.outcome
            continue
        outcome = _outcome(told)
        if told.phase == "call" or outcome in {"error", "skipped"} or told.test not in outcomes:
            outcomes[told.test] = outcome if told.phase in {"call", "collect"} or outcome != "passed" else "error"
        if outcome in {"failed", "error"}:
            failures.setdefault(told.test, Failed(told.text, told.path, told.error))
    complete = ran.ended == "exited" and ran.code is not None and str(ran.code) == end and end in _ALL_RAN
    return Trial(
        command=command,
        outcomes=outcomes,
        failures=failures,
        complete=complete,
        ended=_ended(ran, end),
        output=ran.output,
        seconds=ran.seconds,
    )


def _outcome(told: _Told) -> Outcome:
    match told.outcome:
        case "passed":
            return "passed"
        case "skipped":
            return "skipped"
        case _:
            return "failed" if told.phase == "call" else "error"


def _ended(ran: Ran, end: str) -> str:
    match ran.ended:
        case "time":
            return "it was killed because it took too long"
        case "memory":
            return "it was killed because it took too much memory"
        case "exited" if end:
            return f"pytest ended with {end}"
        case "exited":
            return f"it left with {ran.code} before pytest was at its end"
