"""The five stages of a bug. What a model says is never taken for a fact: tests are run, paths and lines looked up."""

import ast
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from msgspec import structs

from headway.agents.debugging.case import (
    Analysed,
    Bug,
    Fixed,
    Located,
    NotProvenError,
    Patched,
    Reproduced,
    proven,
)
from headway.agents.debugging.patch import Edits, applied, diff, is_test
from headway.agents.debugging.questions import Cause, Questions, TestFile, sections
from headway.agents.debugging.repository import Repository
from headway.agents.debugging.trial import Failed, Trial, Trials
from headway.core.errors import BadInputError
from headway.runtime import Run
from headway.runtime.chunking import Chunk, Document, Stamps, by_file, by_time
from headway.runtime.evidence import Claim, merged, written

B = TypeVar("B", bound=Bug)
_WINDOW: Final = 300.0
"""Seconds of the logs that one call reads, where they are not too many lines."""
_MOST_TEST: Final = 32 << 10
_OWN_FAULTS: Final = re.compile(r"(NameError|ImportError|ModuleNotFoundError|SyntaxError|AttributeError: module)\b")
"""Raised in the test itself: it calls for what is not there, and a "fix" would be to invent it."""
_WORD: Final = re.compile(r"[A-Za-z_]\w{3,}")


class Stages:
    """What is done to each bug of a repository.

    Args:
        repository: a copy that nobody changes.
        logs: what was logged when the bugs showed.
        trials: run tests.
        questions: ask the model.
        tokens: that one prompt may give to files or logs.
    """

    def __init__(
        self,
        repository: Repository,
        logs: Sequence[Document],
        trials: Trials,
        questions: Questions,
        tokens: int,
    ) -> None:
        self._repository = repository
        self._logs = logs
        self._trials = trials
        self._ask = questions
        self._tokens = tokens
        self._code = [Document(path, text) for path, text in sorted(repository.texts.items()) if not is_test(path)]
        self.reached: dict[str, Bug] = {}
        """How far each bug came, by its name."""

    async def analysis(self, run: Run, bug: Bug) -> Analysed:
        """What the report says."""
        self.reached[bug.name] = bug
        found = await self._ask.analysis(
            run, self._prompt((("Bug report", bug.report), ("Files", "\n".join(self._repository.texts))))
        )
        return self._reach(Analysed(**_parts(bug), analysis=found))

    async def reproduction(self, run: Run, bug: Analysed) -> Reproduced:
        """A test that fails because of the bug: it is run."""
        path = self._test_path(bug)
        told = "" if run.sent_back is None else str(run.sent_back)
        asked = self._prompt(
            (
                *_reported(bug),
                ("Your file will be", path),
                ("Files", self._likely(bug.report)),
                ("Your last attempt", told),
            )
        )
        test = (await self._ask.test_writer(_check_test)(run, asked)).content
        shown = await self._trials.run(run, {path: test}, [path])
        _look_whether_it_shows(shown, path, test)
        before = await self._trials.run(run, {path: test})
        return self._reach(
            Reproduced(
                **_parts(bug),
                test_path=path,
                test=test,
                shown=shown,
                before=before,
            )
        )

    async def root_cause(self, run: Run, bug: Reproduced) -> Located:
        """What each file and each stretch of the logs tells, and one judgement of all of it."""
        failure = _failure(bug.shown, bug.test_path)
        this_year = datetime.fromtimestamp(run.shared.spans.clock.now(), UTC).year
        stamps = Stamps(year=this_year)  # for logs that name none

        async def relevance(run: Run, chunk: Chunk) -> list[tuple[int, str, str]]:
            asked = self._prompt((*_reported(bug), ("The failing test", failure), ("Files", chunk.text)))
            held = {part.origin.path for part in chunk.parts}
            found = (await self._ask.relevance(run, asked)).files
            return [(min(3, file.score), file.path, file.why) for file in found if file.path in held and file.score > 0]

        async def log_evidence(run: Run, chunk: Chunk) -> list[Claim]:
            asked = self._prompt((*_reported(bug), ("Logs", chunk.text)))
            found = (await self._ask.lines(run, asked)).lines
            return _claims(chunk, [(one.path, one.line, one.says) for one in found], stamps)

        scores = await run.map(relevance, by_file(self._code, self._tokens), tolerate=0.5)
        ranked = sorted({(-score, path, why) for part in scores for score, path, why in part})
        windows = by_time(self._logs, _WINDOW, self._tokens, stamp=stamps)
        told = written(merged(await run.map(log_evidence, windows, tolerate=0.5)))
        rated = "\n".join(f"- {path} ({-score} of 3): {why}" for score, path, why in ranked)
        asked = self._prompt(
            (
                *_reported(bug),
                ("The failing test", failure),
                ("What was found in the files", rated),
                ("What was found in the logs, by time", told),
                ("Files", self._given([path for _, path, _ in ranked] or [document.path for document in self._code])),
            )
        )
        cause = await self._ask.judge(self._check_cause)(run, asked)
        return self._reach(
            Located(**_parts(bug), cause=cause.explanation, files=tuple(dict.fromkeys(cause.files)), evidence=told)
        )

    async def fix(self, run: Run, bug: Located) -> Patched:
        """A patch; whether it is any good, only `validation` tells."""
        told = "" if run.sent_back is None else str(run.sent_back)
        asked = self._prompt(
            (
                *_reported(bug),
                ("The failing test", f"{bug.test}\n{_failure(bug.shown, bug.test_path)}"),
                ("Its cause", bug.cause),
                ("Evidence from the logs", bug.evidence),
                ("Files", self._given(bug.files)),
                ("Your last attempt, which did not do", told),
            )
        )
        found = await self._ask.fixer(self._check_edits)(run, asked)
        changed = applied(self._repository, found.edits)
        return self._reach(
            Patched(
                **_parts(bug),
                explanation=found.explanation,
                changed=changed,
                patch=diff(self._repository, changed | {bug.test_path: bug.test}),
            )
        )

    async def validation(self, run: Run, bug: Patched) -> Fixed:
        """The new test passes, and those that passed still pass: all are run."""
        files = bug.changed | {bug.test_path: bug.test}
        passes = await self._trials.run(run, files, [bug.test_path])
        after = await self._trials.run(run, files)
        try:
            return proven(bug, passes, after)
        except NotProvenError as error:
            raise NotProvenError(f"{error.what}\n\nThis was the patch:\n{bug.patch}") from None

    def _prompt(self, parts: Sequence[tuple[str, str]]) -> str:
        """Files are within the bound of tokens as it is, at 3 bytes each, so only what else grows is ever cut."""
        return sections(parts, 4 * self._tokens)

    def _reach(self, bug: B) -> B:
        self.reached[bug.name] = bug
        return bug

    def _test_path(self, bug: Bug) -> str:
        """A new file beside the other tests."""
        texts = self._repository.texts
        folder = "tests/" if any(path.startswith("tests/") for path in texts) else ""
        path, number = f"{folder}test_reported_{bug.name}.py", 1
        while path in texts or path in self._repository.others:
            number += 1
            path = f"{folder}test_reported_{bug.name}_{number}.py"
        return path

    def _likely(self, report: str) -> str:
        """Whole files up to the bound, those first that have the rarer words of the report in them."""
        words = {word.lower() for word in _WORD.findall(report)}
        having = {d.path: {word.lower() for word in _WORD.findall(f"{d.path} {d.text}")} & words for d in self._code}
        counts = {word: sum(word in held for held in having.values()) for word in words}
        weights = {path: sum(1 / counts[word] for word in held) for path, held in having.items()}
        return self._given(sorted(weights, key=lambda path: (-weights[path], path)))

    def _given(self, paths: Sequence[str]) -> str:
        """Whole files in this order, as many as the bound holds; of one that does not fit alone, its beginning."""
        documents = [Document(path, self._repository.texts[path]) for path in dict.fromkeys(paths)]
        chunks = by_file(documents, self._tokens)
        return chunks[0].text if chunks else ""

    def _check_cause(self, cause: Cause) -> None:
        strange = [path for path in cause.files if path not in self._repository.texts]
        if strange or not cause.files:
            raise BadInputError(f"Name files of the repository; {strange} are none." if strange else "Name a file.")

    def _check_edits(self, edits: Edits) -> None:
        applied(self._repository, edits.edits)


def _parts(bug: Bug) -> dict[str, Any]:
    return structs.asdict(bug)


def _reported(bug: Analysed) -> tuple[tuple[str, str], ...]:
    known = f"Symptom: {bug.analysis.symptom}\nExpected: {bug.analysis.expected}"
    return ("Bug report", bug.report), ("In short", known)


def _check_test(test: TestFile) -> None:
    if len(test.content.encode(errors="replace")) > _MOST_TEST:
        raise BadInputError(f"The test is longer than {_MOST_TEST} bytes.")
    try:
        tree = ast.parse(test.content)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadInputError(f"The test is no Python: {error}.") from error
    if not any(isinstance(n, ast.FunctionDef) and n.name.startswith("test") for n in ast.walk(tree)):
        raise BadInputError("The file has no function whose name begins with test_.")


def _look_whether_it_shows(trial: Trial, path: str, test: str) -> None:
    """Refuse a test that does not fail, or fails of itself."""
    outcomes = trial.of(path)
    failed = [name for name, outcome in outcomes.items() if outcome == "failed"]
    wrong = [name for name, outcome in outcomes.items() if outcome == "error"]
    why = ""
    if not trial.complete or wrong:
        why = f"it could not be run ({trial.ended})"
    elif not failed:
        why = "it does not fail, so it does not show the bug"
    elif any(_own_fault(trial.failures[name], path) for name in failed):
        why = "it fails of a fault of its own"
    if why:
        told = (trial.failures[name].text for name in [*wrong, *failed] if name in trial.failures)
        seen = next(told, trial.output[-2000:])
        raise NotProvenError(f"The test does not reproduce the bug: {why}.\n\n{seen}\n\nThis was the test:\n{test}")


def _own_fault(failure: Failed, path: str) -> bool:
    return failure.path.endswith(path) and bool(_OWN_FAULTS.match(failure.error))


def _failure(trial: Trial, path: str) -> str:
    return "\n\n".join(failure.text for name, failure in trial.failures.items() if name.partition("::")[0] == path)


def _claims(chunk: Chunk, lines: Sequence[tuple[str, int, str]], stamps: Stamps) -> list[Claim]:
    """What a model says that lines say, where there are such lines; the time is the line's own."""
    found = list[Claim]()
    for path, number, says in lines:
        source = chunk.origin(path, number)
        if source is None:
            continue
        part = next(
            p for p in chunk.parts if p.origin.path == path and p.origin.first_line <= number <= p.origin.last_line
        )
        own = part.text.split("\n")[number - part.origin.first_line]
        service = path.rpartition("/")[2].removesuffix(".log")
        found.append(Claim(text=says, sources=(source,), at=stamps(own), service=service))
    return found
