import json
from pathlib import Path

import pytest
from importing import take
from sets import imported

from headway.app.report.exports.traces import trace_files
from headway.core.errors import BadInputError
from headway.trace.anatomy import dissect
from headway.trace.prices import price_for
from headway.trace.sources.intake import Imported


def export(tmp_path: Path, *tasks: Imported) -> str:
    with trace_files(tmp_path / "p.json", tmp_path / "o.jsonl", price_for) as files:
        for one in tasks:
            files.take(one)
    return files.said()


def test_each_task_goes_into_both_files_as_it_comes(tmp_path: Path) -> None:
    said = export(tmp_path, imported(1, 2), imported(2, 3), imported(3, 1, timing="none"))
    assert said == "2 tasks; 1 task without times left out"
    found = json.loads((tmp_path / "p.json").read_bytes())["traceEvents"]
    assert [one["args"]["name"] for one in found if one["name"] == "process_name"] == [
        "task task-1: why?",
        "task task-2: why?",
    ]
    assert len((tmp_path / "o.jsonl").read_bytes().splitlines()) == 2


def test_what_was_exported_is_explained_as_it_was(tmp_path: Path) -> None:
    tasks = [imported(1, 2), imported(2, 3)]
    export(tmp_path, *tasks)
    again, intake = take(tmp_path / "o.jsonl")
    assert not intake.skipped
    for before, after in zip(
        map(dissect, (one.spans for one in tasks)), (dissect(one.spans) for one in again), strict=True
    ):
        assert after.phases == pytest.approx(before.phases)
        assert (after.n, after.usage) == (before.n, before.usage)
        assert after.e2e == pytest.approx(before.e2e)
        assert after.task_ttft == pytest.approx(before.task_ttft)


def test_a_record_without_times_makes_no_trace_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="does not say when things happened"):
        export(tmp_path, imported(3, 1, timing="none"))
    assert not list(tmp_path.iterdir())
