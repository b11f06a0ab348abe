"""All the real data there is: each file is one format's, or refused for a reason that is true of it."""

from collections import Counter
from functools import cache
from pathlib import Path

from importing import sample

from headway.trace.sources.document import Document
from headway.trace.sources.intake import Imported, Intake
from headway.trace.sources.opening import Opening
from headway.trace.sources.registry import installed
from headway.trace.sources.skips import Skips

REFUSED = Counter(
    {
        "It is a text for people to read, not a record.": 38,
        "It is plain text: traces are read from JSON or OTLP protobuf.": 1,
        "It is the text of a licence, not a record of anything.": 4,
        "It is a legal notice, not a record of anything.": 1,
        "It is a tar archive, which is not opened here: unpack it and name the folder.": 1,
    }
)
"""What is no data of runs at all."""


@cache
def imported() -> tuple[list[Imported], Intake, int]:
    """Everything at once, as a user would who names both folders; and how many files there are."""
    folders = [sample("traces"), sample("workloads")]
    intake = Intake([str(folder) for folder in folders])
    tasks = list(intake.tasks())
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.stat().st_size]
    return tasks, intake, len(files)


def test_no_two_formats_claim_the_same_file(tmp_path: Path) -> None:
    names = [str(sample("traces")), str(sample("workloads"))]
    sources = installed()

    def claimants(document: Document) -> list[str]:
        found = document.sample()
        return [source.name for source in sources if source.claims(found)]

    shared = {document.name: claimants(document) for document in Opening(tmp_path, Skips()).documents(names)}
    assert {name: claims for name, claims in shared.items() if len(claims) > 1} == {}


def test_every_file_is_imported_or_refused_with_a_sentence_of_its_own() -> None:
    _, intake, files = imported()
    assert sum(intake.formats.values()) + len(intake.refused) == files
    sentences = Counter(refused.why for refused in intake.refused)
    assert not [why for why in sentences if "which no known trace format has" in why or "neither JSON" in why]
    assert {why: sentences[why] for why in REFUSED} == REFUSED
    of_data = {refused.name: refused.why for refused in intake.refused if refused.why not in REFUSED}
    assert len(of_data) == 46
    assert all("/workloads/" in name for name in of_data)


def test_every_format_yields_tasks_and_what_is_left_out_is_known() -> None:
    tasks, intake, _ = imported()
    assert {task.verdict.source for task in tasks} == set(intake.formats)
    assert all(task.spans for task in tasks)
    assert {skip.reason: skip.count for skip in intake.skipped} == {
        "a request that was never answered": 151,
        "a line that is not JSON, or not a line of a rollout": 92,
        "a line that is not JSON, or not an event with its time": 16,
        "a round that another one repeats: counted once": 76,
        "a turn that another file of the same session holds too: counted once": 3,
        "a session that another file holds too: counted once": 9,
        "an empty file": 1,
        "the state of a conversation in which no model was called": 1,
    }
