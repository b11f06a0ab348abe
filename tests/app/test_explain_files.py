import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from files import otlp_task, written
from sets import imported, renamed

from headway.trace.archive import Archive
from headway.trace.filed import put_away

Run = Callable[..., Any]


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Twelve tasks of 2 s of model and 0.5 s of tool, and one of six turns."""
    lines = [otlp_task(i) for i in range(12)] + [otlp_task(99, turns=6)]
    return written(tmp_path / "many.jsonl", lines)


def test_one_task_is_explained_in_full(headway: Run, tmp_path: Path) -> None:
    ran = headway("explain", written(tmp_path / "one.json", [otlp_task(0)]))
    assert ran.code == 0
    assert "2.500 s = " in ran.out
    assert "2.000 unsplit" in ran.out
    assert "FINDINGS" in ran.out


def test_many_tasks_are_a_set(headway: Run, many: Path) -> None:
    ran = headway("explain", many)
    assert "13 tasks" in ran.out
    assert "2.500 s at p50 and 8.500 s at p95 (of 13 tasks: too few to be sure)" in " ".join(ran.out.split())
    assert "SLOWEST" in ran.out


def test_a_machine_reads_a_set(headway: Run, many: Path) -> None:
    document = json.loads(headway("explain", many, "--json").out)
    assert (document["schema"], document["tasks"], document["timed"]) == ("headway.set/1", 13, 13)
    assert document["iterations_histogram"] == [[2, 12], [6, 1]]
    assert [at["value"] for at in document["e2e_s"]["at"]] == [2.5, 8.5, 8.5]
    assert {phase["name"]: round(phase["share"], 4) for phase in document["phases"]} == {
        "model": round(30 / 38.5, 4),  # 12 x 2 + 6 of 12 x 2.5 + 8.5
        "tool": round(8.5 / 38.5, 4),
    }
    tool = document["tools"][0]
    assert (tool["name"], tool["uses"], tool["use_s"]) == ("search", 17, 0.5)


def test_one_of_many_is_chosen_by_its_id(headway: Run, many: Path) -> None:
    wanted = f"{100:032x}"
    assert json.loads(headway("explain", many, "--task", wanted, "--json").out)["task"] == wanted
    none = headway("explain", many, "--task", "fff")
    assert none.code == 1
    assert "None of 13 tasks begin with 'fff'" in none.err
    assert "13 of 13 tasks" in headway("explain", many, "--task", "000").err


def test_a_folder_a_pattern_and_a_packed_file_are_the_same(headway: Run, many: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "packed.gz").write_bytes(gzip.compress(many.read_bytes()))
    alone = json.loads(headway("explain", many, "--json").out)["e2e_s"]
    for name in (folder, f"{folder}/*.gz", folder / "packed.gz"):
        assert json.loads(headway("explain", name, "--json").out)["e2e_s"] == alone


def test_what_if_replays_one_and_many(headway: Run, many: Path, tmp_path: Path) -> None:
    one = written(tmp_path / "one.json", [otlp_task(0)])
    assert "E2E  2.500 s -> 2.250 s  (-10.0 %)" in headway("explain", one, "--what-if", "tool:search 0.5x").out
    ran = headway("explain", many, "--what-if", "iterations -1", "--what-if", "tools 0.5x")
    assert "E2E at p50  2.500 s -> 1.000 s" in ran.out  # a call and its tool go
    bad = headway("explain", many, "--what-if", "warp 9")
    assert bad.code == 2
    assert "no change" in bad.err


def test_a_wrong_use_ends_with_2_and_a_wrong_input_with_1(headway: Run, many: Path, tmp_path: Path) -> None:
    toml, report = tmp_path / "b.toml", tmp_path / "r.html"
    toml.write_text('[budget.task]\np50 = "9 s"\n')
    wrong_uses = (
        ("explain",),
        ("explain", many, "--last"),
        ("explain", many, "--jobs", "0"),
        ("explain", many, "--what-if", "warp 9"),
        ("explain", many, "--what-if", "tool:search fast"),
        ("explain", many, "--what-if", "tool:search 1s", "--what-if", "tool:search 2s"),
        ("explain", many, "--budget", "--config", toml, "--what-if", "tools 0.5x"),
        ("explain", many, "--html", report, "--markdown", report),
        ("explain", many, "--nonsense"),
        ("compare", many),
        ("budget", "review", many, "--config", toml),
        ("budget", "review", many, "--config", toml, "--add", "tool:x fast"),
        ("budget", "review", many, "--config", toml, "--add", "a tool"),
        ("import", many),
        ("import", many, "--into", many),
    )
    for use in wrong_uses:
        ran = headway(*use)
        assert (ran.code, ran.out) == (2, ""), use
        assert "Traceback" not in ran.err
    nothing = tmp_path / "absent.json"
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "bad.toml").write_text("[budget\n")
    wrong_inputs = (
        ("explain", nothing),
        ("explain", tmp_path / "a.csv"),
        ("explain", many, "--task", "fff"),
        ("explain", many, "--html", tmp_path / "no" / "r.html"),
        ("explain", many, "--config", tmp_path / "absent.toml"),
        ("explain", many, "--budget", "--config", tmp_path / "bad.toml"),
        ("compare", many, nothing),
        ("budget", "suggest", nothing),
        ("budget", "review", nothing, "--config", toml, "--add", "tool:x 1s"),
        ("import", nothing, "--into", tmp_path / "new.headway"),
        ("import", many, "--into", tmp_path / "a.csv"),
    )
    for use in wrong_inputs:
        ran = headway(*use)
        assert (ran.code, ran.out) == (1, ""), use
        assert "Traceback" not in ran.err


def test_a_broken_budget_ends_with_3_and_says_by_whom(headway: Run, many: Path, tmp_path: Path) -> None:
    toml = tmp_path / "budget.toml"
    toml.write_text('[budget.task]\np50 = "3 s"\np95 = "4 s"\ncalls = 5\n\n[budget.stage."tool:search"]\np95 = 3\n')
    ran = headway("explain", many, "--budget", "--config", toml)
    assert ran.code == 3
    assert "2 limits of 4 broken" in ran.out
    assert f"{100:032x} (8.500 s)" in ran.out
    document = json.loads(headway("explain", many, "--budget", "--config", toml, "--json").out)
    assert [(line["stage"], line["what"], line["state"]) for line in document["lines"]] == [
        ("task", "p50", "kept"),
        ("task", "p95", "broken"),
        ("tool:search", "p95", "kept"),
        ("task", "calls", "broken"),
    ]
    toml.write_text("[budget.task]\np95 = 100\n")
    assert headway("explain", many, "--budget", "--config", toml).code == 0


def test_a_budget_is_suggested_and_reviewed(headway: Run, many: Path, tmp_path: Path) -> None:
    toml = tmp_path / "headway.toml"
    toml.write_text(headway("budget", "suggest", many).out)
    assert headway("explain", many, "--budget", "--config", toml).code == 0
    ran = headway("budget", "review", many, "--add", "tool:rerank 4s", "--config", toml)
    assert ran.code == 3
    assert "Without the addition, 0 of them are broken" in ran.out
    assert headway("budget", "review", many, "--add", "tool:rerank 1ms", "--config", toml).code == 0


def test_ci_can_tell_a_broken_budget_from_one_that_cannot_be_judged_and_from_an_error(
    headway: Run, many: Path, tmp_path: Path
) -> None:
    toml = tmp_path / "headway.toml"
    toml.write_text("[budget.task]\ncost = 0.01\n")  # of the model no price is known
    assert headway("explain", many, "--budget", "--config", toml).code == 4
    toml.write_text("[budget.task]\ncost = 0.01\ncalls = 1\n")
    assert headway("explain", many, "--budget", "--config", toml).code == 3
    assert headway("explain", tmp_path / "absent.json", "--budget", "--config", toml).code == 1
    toml.write_text("[budget.task]\ncalls = 9\n")
    assert headway("explain", many, "--budget", "--config", toml).code == 0


def test_own_prices_make_costs_known(headway: Run, many: Path, tmp_path: Path) -> None:
    toml = tmp_path / "prices.toml"
    toml.write_text("[prices.tiny]\ninput = 1.0\noutput = 2.0\n")
    document = json.loads(headway("explain", many, "--json", "--config", toml).out)
    # two calls of 100 and 200 tokens in and 10 out each: 300 x 1 + 20 x 2 micro-USD
    assert document["cost_usd_micro"]["at"][0]["value"] == 340
    assert json.loads(headway("explain", many, "--json").out)["cost_usd_micro"] is None


def test_what_is_no_trace_is_refused_in_a_sentence(headway: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    ran = headway("explain", tmp_path / "a.csv")
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert "a.csv" in ran.err


def test_files_and_a_store_do_not_go_together(headway: Run, many: Path) -> None:
    assert headway("explain", many, "--last").code == 2
    assert headway("explain", many, "--all").code == 2


def test_without_times_seconds_are_null_and_not_0(headway: Run, tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "List the files."},
        {"role": "assistant", "content": "```bash\nls\n```"},
        {"role": "user", "content": "a.txt"},
    ]
    trajectory: dict[str, object] = {
        "trajectory_format": "mini-swe-agent-1",
        "info": {"model_stats": {"instance_cost": 0.01, "api_calls": 1}},
        "messages": messages,
    }
    (tmp_path / "t.json").write_text(json.dumps(trajectory))
    document = json.loads(headway("explain", tmp_path / "t.json", "--json").out)
    assert document["record"]["timing"] == "none"
    assert [document[name] for name in ("e2e_s", "started_at", "iterations", "lead_in_s", "human_s")] == [None] * 5
    assert {span["end_s"] for span in document["spans"]} == {None}
    assert "how long anything took is not in this record" in headway("explain", tmp_path / "t.json").out
    assert headway("explain", tmp_path / "t.json", "--what-if", "tools parallel").code == 1
    (tmp_path / "two.json").write_text(json.dumps(trajectory | {"messages": messages[:3]}))
    both = headway("explain", tmp_path / "t.json", tmp_path / "two.json", "--what-if", "tools parallel")
    assert (both.code, both.out) == (1, "")
    assert "nothing can be replayed" in both.err


def test_an_id_that_begins_as_others_do_is_found_by_the_whole_of_it(headway: Run, tmp_path: Path) -> None:
    with Archive(tmp_path / "runs.hwa") as archive:
        archive.add(put_away(renamed(imported(i, 2), name)) for i, name in enumerate(("run", "run-two")))
    assert "task run " in headway("explain", tmp_path / "runs.hwa", "--task", "run").out
    assert "2 of 2 tasks begin with 'ru'" in headway("explain", tmp_path / "runs.hwa", "--task", "ru").err
