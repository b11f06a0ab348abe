import json
from pathlib import Path

import pytest
from importing import sample, take
from msgspec.structs import replace
from sets import imported
from tasks import T0

from headway.app.report.exports.traces import trace_files
from headway.core.errors import BadInputError
from headway.trace.anatomy import Anatomy, dissect
from headway.trace.phases import Phase
from headway.trace.prices import price_for
from headway.trace.skew import shifted
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


def test_what_counts_from_a_start_of_its_own_loses_no_span(tmp_path: Path) -> None:
    at_zero = imported(1, 2)
    spans = tuple(shifted(span, -T0) for span in at_zero.spans)
    export(tmp_path, replace(at_zero, spans=spans))
    (again,), _ = take(tmp_path / "o.jsonl")
    assert len(again.spans) == 4
    assert again.spans[0].start == 86_400.0
    assert dissect(again.spans).phases == pytest.approx(dissect(spans).phases)


def test_a_record_without_times_makes_no_trace_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="does not say when things happened"):
        export(tmp_path, imported(3, 1, timing="none"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", ["claude_code", "codex_rollout", "handmade", "jaeger_genai", "langfuse"])
def test_real_tasks_come_back_with_the_same_anatomy(folder: str, tmp_path: Path) -> None:
    tasks, _ = take(sample(f"traces/{folder}"))
    export(tmp_path, *tasks)
    again, _ = take(tmp_path / "o.jsonl")
    timed = [dissect(one.spans) for one in tasks if one.verdict.timed]
    assert timed
    assert sorted(map(_figures, timed)) == [
        pytest.approx(figures, abs=1e-5) for figures in sorted(_figures(dissect(one.spans)) for one in again)
    ]


def _figures(anatomy: Anatomy) -> list[float]:
    phases = [anatomy.phases.get(phase, 0.0) for phase in Phase]
    return [round(anatomy.e2e, 4), anatomy.n, anatomy.calls, anatomy.usage.input_tokens or 0, *phases]
