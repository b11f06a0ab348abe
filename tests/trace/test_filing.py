import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from otlp_documents import message, span

from headway.trace import filing as module
from headway.trace.filed import Filed, unpack
from headway.trace.filing import Filing, Progress
from headway.trace.sources.skips import Skip

TASKS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=6)
"""For each line of a file, of which traces it holds a span."""


def line(number: int, traces: list[int]) -> bytes:
    """An export with a call of each of the traces."""
    spans: list[dict[str, object]] = []
    for place, trace in enumerate(traces):
        said: dict[str, object] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.usage.input_tokens": number,
        }
        made = span(100 * number + place + 1, "chat m", number, number + 0.5, said)
        spans.append(made | {"traceId": f"{trace + 1:032x}"})
    return message(*spans)


def folder(path: Path, files: list[list[list[int]]]) -> Path:
    """Exports in files: of the traces some are in several, and every file has a line that is broken."""
    path.mkdir(exist_ok=True)
    for old in path.iterdir():
        old.unlink()
    number = 0
    for name, lines in enumerate(files):
        texts: list[bytes] = []
        for traces in lines:
            number += 1
            texts.append(line(number, traces))
        texts.insert(1, b'{"resourceSpans": [')
        (path / f"{name}.jsonl").write_bytes(b"\n".join(texts))
    return path


def filed(path: Path, processes: int) -> tuple[list[Filed], tuple[Skip, ...], dict[str, int]]:
    filing = Filing([str(path)], processes=processes)
    return list(filing.rows()), filing.intake.skipped, filing.intake.formats


@pytest.fixture
def helped(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little there is to read, help is asked for, line by line and task by task."""
    monkeypatch.setattr(module, "WORTH_HELP", 0)
    monkeypatch.setattr(module, "PART", 1)
    monkeypatch.setattr(module, "BATCH", 1)


@given(files=st.lists(TASKS, min_size=1, max_size=3))
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("helped")
def test_rows_are_the_same_whatever_the_number_of_processes(tmp_path: Path, files: list[list[list[int]]]) -> None:
    path = folder(tmp_path / "exports", files)
    alone = filed(path, 1)
    assert filed(path, 2) == alone
    rows, skipped, _ = alone
    named = [number for lines in files for traces in lines for number in traces]
    assert [int(row.facts.task, 16) - 1 for row in rows] == list(dict.fromkeys(named))
    assert sum(len(unpack(row.packed)) for row in rows) == len(named)
    assert sum(skip.count for skip in skipped) == len(files)


@pytest.mark.usefixtures("helped")
def test_sources_that_read_all_at_once_are_helped_with_the_rest(tmp_path: Path) -> None:
    made = tmp_path / "sessions"
    for number in range(3):
        session(made / f"{number}.jsonl", f"s{number}")
    alone, shared = filed(made, 1), filed(made, 2)
    assert shared == alone
    assert len(alone[0]) == 3


def session(path: Path, name: str) -> None:
    """One question and its answer, as Claude Code keeps them."""
    path.parent.mkdir(exist_ok=True)
    rows = [
        {"type": "user", "message": {"role": "user", "content": "why?"}, "timestamp": "2026-01-01T10:00:00Z"},
        {
            "type": "assistant",
            "message": {
                "id": f"m-{name}",
                "role": "assistant",
                "model": "m",
                "content": [{"type": "text", "text": "so"}],
            },
            "timestamp": "2026-01-01T10:00:05Z",
        },
    ]
    lines = [json.dumps(row | {"sessionId": name, "uuid": f"{name}-{n}"}) for n, row in enumerate(rows)]
    path.write_text("\n".join(lines))


@pytest.mark.usefixtures("helped")
def test_progress_reaches_the_end(tmp_path: Path) -> None:
    path = folder(tmp_path / "exports", [[[0], [1]]])
    heard: list[Progress] = []
    filing = Filing([str(path)], processes=2, heard=heard.append)
    assert len(list(filing.rows())) == 2
    size = sum(file.stat().st_size for file in path.iterdir())
    assert heard[-1] == Progress(read=size, size=size, tasks=2)


def test_few_bytes_are_read_without_help(tmp_path: Path) -> None:
    path = folder(tmp_path / "exports", [[[0]]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "hired", None)
        assert len(filed(path, 8)[0]) == 1
