import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from files import otlp_task, written

Run = Callable[..., Any]


@pytest.fixture
def sets(tmp_path: Path) -> tuple[Path, Path]:
    """Forty tasks each; in the second set the tool takes two seconds more."""
    first = written(tmp_path / "before.jsonl", [otlp_task(i, model=1.0 + i / 40, tool=0.5 + i / 80) for i in range(40)])
    second = written(
        tmp_path / "after.jsonl", [otlp_task(i + 99, model=1.0 + i / 40, tool=2.5 + i / 80) for i in range(40)]
    )
    return first, second


def test_what_moved_is_named(headway: Run, sets: tuple[Path, Path]) -> None:
    ran = headway("compare", *sets)
    assert ran.code == 0
    assert "The second set is slower: 2.000 s at p50" in ran.out
    assert "most of it is tool" in ran.out


def test_no_table_loses_p95_or_why_it_has_no_interval(headway: Run, sets: tuple[Path, Path]) -> None:
    lines = headway("compare", *sets).out.splitlines()
    for row in ("  E2E, s", "  tool, s"):
        at = next(i for i, line in enumerate(lines) if line.startswith(row))
        assert lines[at + 1].count("[") == 1  # p50, with its interval below
        assert lines[at + 1].rstrip().endswith("too few tasks for p95")  # forty do not bound it, whatever the interval


def test_no_difference_is_said_to_be_none(headway: Run, sets: tuple[Path, Path]) -> None:
    ran = headway("compare", sets[0], sets[0])
    assert "No difference shown" in ran.out


def test_a_machine_reads_it(headway: Run, sets: tuple[Path, Path]) -> None:
    document = json.loads(headway("compare", *sets, "--json").out)
    assert (document["schema"], document["tasks"], document["shown"]) == ("headway.compare/1", [40, 40], True)
    assert document["e2e"]["at"][0]["delta"] == pytest.approx(2.0)
    assert [at["supported"] for at in document["e2e"]["at"]] == [True, False]
    phases = {phase["name"]: phase["at"][0]["shown"] for phase in document["phases"]}
    assert (phases["tool"], phases["model"]) == (True, False)


def test_a_set_that_is_not_there_is_told(headway: Run, sets: tuple[Path, Path], tmp_path: Path) -> None:
    ran = headway("compare", sets[0], tmp_path / "nothing.jsonl")
    assert ran.code == 1
    assert "nothing.jsonl" in ran.err
