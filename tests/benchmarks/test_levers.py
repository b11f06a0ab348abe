"""The validation of what-ifs finds the truth where it is known, and bias where there is some."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from msgspec import structs
from tasks import call, step, tool

from headway.core.span import Span
from headway.core.task import SessionId, TaskId
from headway.trace.sources.intake import Imported
from headway.trace.sources.verdict import judge
from levers import main, report
from rig.evidence import Evidence, Read, blocks, gather, real
from rig.experiments import OURS, Cell, Replays, context, iterations, prefill, tools
from rig.holdout import Summary, Value, errors, first_half, off, summed, weighted

Draw = Callable[[Random, int], float]
"""Seconds, for a task of so many iterations."""


def calm(dice: Random, _n: int) -> float:
    return dice.uniform(1, 3)


def imported(number: int, spans: list[Span]) -> Imported:
    session = SessionId(f"session {number % 120}")
    own = tuple(structs.replace(span, task=TaskId(str(number)), session=session) for span in spans)
    return Imported(task=TaskId(str(number)), title=None, spans=own, verdict=judge(own, "made", "spans"))


def made(model: Draw = calm, slower: tuple[float, ...] = (0.0,), count: int = 700) -> Iterator[Imported]:
    """Tasks of 1 to 8 iterations: calls with a tool between each two, their lengths drawn anew each time.

    A task's tools are all slower by one of the seconds in ``slower``.
    """
    dice = Random(7)
    for number in range(count):
        n, at, more = dice.randint(1, 8), 0.0, dice.choice(slower)
        spans: list[Span] = []
        for turn in range(n):
            end = at + model(dice, n)
            spans.append(call(f"c{turn}", at, end, "root"))
            at = end + (more + calm(dice, n) if turn < n - 1 else 0.0)
            if turn < n - 1:
                spans.append(tool(f"t{turn}", end, at, "root", by=f"c{turn}"))
        yield imported(number, [step("root", 0, at, agent="made"), *spans])


def summary(cells: list[Cell], name: str, q: float = 0.5) -> Summary:
    found = summed(cell.errors[name, q] for cell in cells if (name, q) in cell.errors)
    assert found is not None
    return found


def test_iterations_that_are_alike_are_predicted_without_bias() -> None:
    cells = list(iterations(gather("made", made()), 0, Replays()))
    ours, unchanged = summary(cells, OURS), summary(cells, "as it was")
    assert ours.size < 0.05
    assert abs(ours.bias) < 0.02
    assert ours.covered > 0.8
    assert unchanged.bias > 0.4  # at least one of eight iterations too many in each comparison
    # A share of E2E goes with the answer too, which has no tool after it and always stays: too much is left.
    assert summary(cells, "E2E x n / (n + k)").bias > ours.bias + 0.03


def test_tasks_that_differ_otherwise_too_show_as_bias() -> None:
    # Longer tasks have longer calls as well: without some of their iterations they still take longer than short ones.
    longer = gather("made", made(model=lambda dice, n: n * dice.uniform(1, 3)))
    assert summary(list(iterations(longer, 0, Replays())), OURS).bias > 0.2


def test_a_tools_time_replaced_gives_what_tasks_with_that_time_show() -> None:
    evidence = gather("made", made(slower=(0.0, 0.0, 20.0)))
    cells = list(tools(evidence, 0, Replays()))
    ours, unchanged = summary(cells, OURS), summary(cells, "as it was")
    assert abs(ours.bias) < 0.1
    assert unchanged.bias > 1


def reads() -> list[Read]:
    """Half a second, and a millisecond a token."""
    dice = Random(3)
    tokens = [dice.uniform(100, 10_000) for _ in range(1000)]
    return [Read(f"session {i % 120}", "m", count, 0.5 + count / 1000) for i, count in enumerate(tokens)]


def test_a_rate_that_holds_is_found_and_predicts() -> None:
    evidence = gather("made", [], reads)
    (fitted,) = prefill(evidence, 0)
    assert (fitted.line.slope, fitted.line.intercept) == (pytest.approx(0.001), pytest.approx(0.5))
    assert fitted.errors["line"][0] == pytest.approx(0)
    assert fitted.errors["mean"][0] > 0.3
    (cell,) = context(evidence, 0)
    ours, unchanged = cell.errors[OURS, 0.5], cell.errors["as it was", 0.5]
    assert abs(ours.value) < 0.05
    assert unchanged.value < -0.5


def test_tasks_without_all_their_ends_are_left_out_and_counted() -> None:
    endless = imported(1, [step("root", 0, 2), call("a", 0, 2, "root"), call("b", 1, None, "root")])
    untimed = imported(2, [call("a", 0, 0)])
    untimed = structs.replace(untimed, verdict=judge(untimed.spans, "made", "none"))
    idle = imported(3, [step("root", 0, 2)])
    evidence = gather("made", [endless, untimed, idle, imported(4, [call("a", 0, 2)])])
    assert [(task.session, task.n, task.e2e) for task in evidence.tasks] == [("session 4", 1, 2)]
    assert evidence.left_out == {"an answer or a tool without an end": 1, "no times": 1, "no call on the path": 1}


def test_a_session_is_on_one_side_of_a_split() -> None:
    sides = [first_half(str(i), seed) for seed in (0, 1) for i in range(400)]
    assert sides[:400] != sides[400:]
    assert 150 < sum(sides[:400]) < 250
    assert sides[:400] == [first_half(str(i), 0) for i in range(400)]


def test_an_error_is_told_only_where_both_sides_bound_their_quantile() -> None:
    some = [Value(str(i), 10.0 + i % 3) for i in range(90)]
    double = [Value(one.session, 2 * one.value) for one in some]
    found = errors(double, some, (0.5,))[0.5]
    assert found.value == 1
    assert not found.covers_none
    same = errors(some, some, (0.5, 0.95))
    assert {q: (one.value, one.covers_none) for q, one in same.items()} == {0.5: (0, True), 0.95: (0, True)}
    assert list(errors(some[:60], some, (0.5, 0.95))) == [0.5]  # p95 takes 72
    assert errors([], some, (0.5,)) == {}
    assert errors(some, [Value(str(i), 0.0) for i in range(90)], (0.5,)) == {}


def test_a_value_counts_as_much_as_its_weight() -> None:
    values = [Value("a", 1.0), Value("b", 2.0, 3.0), Value("c", 3.0)]
    assert [weighted(values, q) for q in (0.2, 0.21, 0.8, 0.81)] == [1, 2, 2, 3]


def test_errors_of_a_predictor_are_relative() -> None:
    assert off([(1, 2.0), (2, 4.0), (3, 10.0)], lambda x: 3 * x) == (0.5, 0.5)  # 3/2, 6/4, 9/10
    assert summed([]) is None


def test_blocks_that_a_prompt_shares_with_the_one_before_were_not_computed(tmp_path: Path) -> None:
    requests = [
        {"t": 0, "type": "s", "in": 200, "keep": 0, "ttft": 1.5, "model": "m"},
        {"t": 9, "type": "n", "in": 300},
    ]
    requests.append({"t": 20, "type": "s", "in": 300, "keep": 4, "ttft": 0.5, "model": "m"})
    requests.append(
        {"t": 30, "type": "s", "in": 300, "keep": 5, "ttft": 0.4, "model": "m"}
    )  # the last block is not full
    file = tmp_path / "sessions.jsonl"
    file.write_text(json.dumps({"id": "one", "requests": requests}) + "\n")
    assert blocks(file) == [Read("one", "m", 200, 1.5), Read("one", "m", 44, 0.5), Read("one", "m", 0, 0.4)]


def test_the_report_is_in_markdown_and_says_what_it_left_out() -> None:
    told = "\n".join(report(gather("made", made(count=300), reads)))
    assert "300 tasks of 120 sessions. Left out: none." in told
    assert "| prediction | p50 |" in told
    assert "Seconds are those of the TTFT." in told
    assert "| m | " in told
    few = "\n".join(report(gather("few", made(count=5))))
    assert few.count("Too few of them for any comparison.") == 3


def test_recordings_that_are_not_there_are_skipped_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["levers.py", str(tmp_path)])
    assert main() == 0
    printed = capsys.readouterr()
    assert printed.out.count("skipped, the recordings are not on this machine") == 3
    assert "nothing could be validated" in printed.err


def test_recordings_that_are_there_are_read(tmp_path: Path) -> None:
    requests = [{"t": 3, "type": "s", "model": "m", "in": 9, "out": 4, "keep": 0, "stop": "end_turn", "api_time": 2.5}]
    session = {"id": "one", "block_size": 64, "hash_id_scope": "local", "requests": requests}
    folder = tmp_path / "workloads" / "kv-cache-tester"
    folder.mkdir(parents=True)
    (folder / "traces_compact.jsonl").write_text(json.dumps(session) + "\n")
    found = next(one for one in real(tmp_path) if isinstance(one, Evidence))
    assert [(task.session, task.e2e) for task in found.tasks] == [("one", 2.5)]
