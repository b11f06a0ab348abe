"""A bug on its way through the stages: each adds what it found out, and a verdict carries the runs that prove it."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from headway.agents.debugging.trial import Trial
from headway.core.errors import BadInputError, HeadwayError, NotFoundError

_MOST: Final = 64 << 10


class Bug(Struct, frozen=True, kw_only=True):
    """What somebody reported."""

    name: str
    report: str


class Analysis(Struct, frozen=True):
    """What a report says."""

    symptom: str
    expected: str


class Analysed(Bug, frozen=True, kw_only=True):
    """A bug whose report was read."""

    analysis: Analysis


class Reproduced(Analysed, frozen=True, kw_only=True):
    """A bug that a test shows."""

    test_path: str
    test: str
    shown: Trial
    """The new test alone: it failed."""
    before: Trial
    """All tests with the new one, before any fix."""


class Located(Reproduced, frozen=True, kw_only=True):
    """A bug whose cause is believed to be known."""

    cause: str
    files: tuple[str, ...]
    """Where it is believed to be, the likeliest first."""
    evidence: str
    """What the logs tell, a line for each claim with its place."""


class Patched(Located, frozen=True, kw_only=True):
    """A bug for which there is a patch, which proves nothing yet."""

    explanation: str
    changed: dict[str, str]
    patch: str
    """With the new test."""


class Fixed(Struct, frozen=True, kw_only=True, tag="fixed"):
    """A bug whose test failed and passes, while all others that passed still pass; the runs are here."""

    bug: str
    cause: str
    explanation: str
    patch: str
    shown: Trial
    """The new test before: it failed."""
    before: Trial
    passes: Trial
    """The new test after: it passed."""
    after: Trial
    """All tests, after."""

    @property
    def failing_still(self) -> tuple[str, ...]:
        """Tests that neither passed before nor pass now."""
        return tuple(sorted(n for n, o in self.after.outcomes.items() if o in {"failed", "error"}))


class NotFixed(Struct, frozen=True, kw_only=True, tag="not fixed"):
    """A bug that is not known to be fixed."""

    bug: str
    why: str
    reached: Bug | Analysed | Reproduced | Located | Patched
    """As far as it came."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that it is through."""
        through = ((Analysed, "analysis"), (Reproduced, "reproduction"), (Located, "root_cause"), (Patched, "fix"))
        return tuple(name for kind, name in through if isinstance(self.reached, kind))


Verdict = Fixed | NotFixed


class NotProvenError(HeadwayError):
    """A test run did not come to what it had to; what it came to is in the message, for the model's next attempt."""


def proven(patched: Patched, passes: Trial, after: Trial) -> Fixed:
    """The verdict that a bug is fixed, from the runs that prove it.

    Raises:
        NotProvenError: they do not.
    """
    own, after_own = passes.of(patched.test_path), after.of(patched.test_path)
    wanted = {name for name, outcome in patched.shown.of(patched.test_path).items() if outcome != "skipped"}
    if "failed" not in patched.shown.of(patched.test_path).values():
        raise NotProvenError("The new test did not fail before.")
    bad = sorted(name for name in wanted if own.get(name) != "passed")
    if bad or not passes.complete:
        raise NotProvenError(f"The new test still does not pass: {_told(passes, bad)}")
    if not patched.before.complete:
        raise NotProvenError(f"Whether the other tests passed before is not known: {patched.before.ended}.")
    broken = sorted(name for name in patched.before.passed if after.outcomes.get(name) != "passed")
    broken += sorted(name for name in wanted if after_own.get(name) != "passed")
    if broken or not after.complete:
        raise NotProvenError(f"Other tests do not pass any more: {_told(after, broken)}")
    return Fixed(
        bug=patched.name,
        cause=patched.cause,
        explanation=patched.explanation,
        patch=patched.patch,
        shown=patched.shown,
        before=patched.before,
        passes=passes,
        after=after,
    )


def _told(trial: Trial, names: list[str]) -> str:
    first = next((trial.failures[name].text for name in names if name in trial.failures), trial.output[-2000:])
    return f"{trial.ended}; {', '.join(names[:10]) or 'no test named'}\n{first}"


def read_report(path: Path, taken: frozenset[str] = frozenset()) -> Bug:
    """A bug from a file.

    Args:
        path: text, e.g. Markdown.
        taken: names that other bugs have.

    Raises:
        NotFoundError: there is no such file.
        BadInputError: it is empty, too long or no text.
    """
    if not path.is_file():
        raise NotFoundError(f"{path} is no file.", fix="Give a bug report with --report.")
    try:
        data = path.read_bytes()
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path} is no text that can be read: {error}.", fix="Give UTF-8 text.") from error
    if not text.strip() or "\0" in text:
        raise BadInputError(f"{path} is empty or no text.", fix="Say in it what happens, and what should.")
    if len(data) > _MOST:
        raise BadInputError(f"{path} has {len(data)} bytes, more than {_MOST}.", fix="Put logs in --logs instead.")
    name = "".join(mark if mark.isascii() and mark.isalnum() else "_" for mark in path.stem).lower() or "bug"
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    return Bug(name=unique, report=text)
