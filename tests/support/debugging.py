"""Bugs of the shipped repositories, and a model that knows how to fix them."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from headway.agents.debugging.agent import Debugger, How
from headway.agents.debugging.case import Bug, Verdict, read_report
from headway.agents.debugging.repository import read_logs, take_copy
from headway.agents.debugging.sandbox import Limits, run_in_sandbox
from headway.agents.debugging.shipped import example
from headway.agents.debugging.trial import Trials
from headway.core.errors import SandboxError
from headway.gateway.fake import FakeEngine, Reply
from headway.runtime import Budget, Models, Runtime

Script = Callable[[str, str], object]
"""What the model says to a question, given which agent is asked and what."""

TESTS: Final = {
    "basket": "from basket import total\n\n\ndef test_it():\n    assert total([(2, 300)], 10) == 540\n",
    "pages": "from paging import pages\n\n\ndef test_it():\n    assert pages(7, 3) == 3\n",
    "backoff": "from uploader import upload\n\n\ndef test_it():\n    waits = []\n"
    "    upload(lambda: 503, waits.append)\n    assert waits == [1, 2, 4]\n",
    "slots": "from booking import Room\n\n\ndef test_it():\n    room = Room()\n    room.book(9, 10)\n"
    "    room.book(10, 11)\n",
    "rows": "from rows import cells\n\n\ndef test_it():\n    assert cells('\"Kim, Joon\",42') == ['Kim, Joon', '42']\n",
}
FIXES: Final = {
    "basket": ("basket.py", "reduced(cents, percent) for", "cents for"),
    "pages": ("paging.py", "articles // size", "-(-articles // size)"),
    "backoff": ("uploader.py", "wait_before(attempt) / 1000", "wait_before(attempt)"),
    "slots": ("booking.py", "start <= other_end and other_start <= end", "start < other_end and other_start < end"),
    "rows": (
        "rows.py",
        """return [cell.strip('"') for cell in line.rstrip("\\n").split(",")]""",
        'import csv\n\n    return next(csv.reader([line.rstrip("\\n")]))',
    ),
}
_ASKED: Final = {
    "Say what a bug report": "analyst",
    "Say which of these files": "reader",
    "Say which lines": "log_reader",
    "Write one pytest": "test_writer",
    "From the evidence": "judge",
    "Fix the cause": "fixer",
}


def needs_sandbox() -> None:
    """Skip where the machine cannot isolate."""
    try:
        asyncio.run(run_in_sandbox(Path(__file__).parent, ["/bin/true"], Limits(seconds=30)))
    except SandboxError as error:
        pytest.skip(str(error))


def which(question: str) -> str:
    """The bug that a question is about."""
    return next(
        name
        for name, word in (
            ("basket", "Discount is taken"),
            ("pages", "last page is missing"),
            ("backoff", "uploader hammers"),
            ("slots", "only touch"),
            ("rows", "comma break"),
        )
        if word in question
    )


def knowing(asked: str, question: str) -> object:
    """A model that knows the five bugs."""
    bug = which(question)
    path, search, replace = FIXES[bug]
    match asked:
        case "analyst":
            return {"symptom": "wrong", "expected": "right"}
        case "reader":
            return {"files": [{"path": path, "score": 3, "why": "it decides"}]}
        case "log_reader":
            return {"lines": [{"path": "nowhere.log", "line": 1, "says": "made up"}]}
        case "test_writer":
            return {"content": TESTS[bug]}
        case "judge":
            return {"explanation": "a slip", "files": [path]}
        case _:
            edits = [{"path": path, "search": search, "replace": replace}]
            return {"explanation": "mended", "edits": edits}


def scripted(script: Script) -> Callable[[dict[str, Any]], Reply]:
    """A script of a `FakeEngine`; text is said as it is, all else as JSON."""

    def reply(body: dict[str, Any]) -> Reply:
        system, question = body["messages"][0]["content"], body["messages"][1]["content"]
        said = script(next(name for words, name in _ASKED.items() if words in system), question)
        return Reply(content=said if isinstance(said, str) else json.dumps(said))

    return reply


async def debugged(  # noqa: PLR0913 - each is what a test may be about
    tmp_path: Path,
    names: Sequence[str],
    script: Script = knowing,
    *,
    repo: Path | None = None,
    budget: Budget | None = None,
    store: Path | None = None,
    seconds: float = 60,
    how: How | None = None,
    logs: Sequence[str] = (),
) -> tuple[Verdict, ...]:
    """Verdicts on the bugs of shipped repositories, which are in one repository here."""
    source = repo or together(tmp_path / "source", names)
    (copy := tmp_path / "copy").mkdir()
    bugs: list[Bug] = []
    for name in names:
        bugs.append(read_report(example(name).report, frozenset(bug.name for bug in bugs)))
    trials = Trials(take_copy(source, copy), Limits(seconds=seconds))
    documents = read_logs(source, [*logs, *(log for name in names for log in example(name).logs)])
    async with (
        FakeEngine(scripted(script)) as engine,
        Models(engine.url) as models,
        Runtime(models=models, store=store) as runtime,
    ):
        debugger = Debugger(trials.repository, documents, trials, "fake", how=how)
        return await debugger.verdicts(runtime.start(debugger.task(budget or Budget()), bugs), bugs)


def together(folder: Path, names: Sequence[str]) -> Path:
    """One repository of the files of several."""
    for name in names:
        repo = example(name).repo
        for path in repo.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                place = folder / path.relative_to(repo)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(path.read_bytes())
    return folder
