from itertools import count

import msgspec
import pytest
from tasks import call, step, tool

from headway.core.span import ModelCall, Span, Work
from headway.core.task import TaskId
from headway.core.usage import Usage
from headway.trace import set_study as module
from headway.trace.filed import put_away
from headway.trace.set_study import SetStudy
from headway.trace.sources.intake import Imported
from headway.trace.sources.source import Timing
from headway.trace.sources.verdict import judge
from headway.trace.whatif_text import parse

_names = count()


def free(_call: ModelCall, _at: float) -> None:
    """No price is known."""


def task(turns: int, tools: float = 1.0) -> list[Span]:
    """Each turn but the last: 1 s of call, then a tool; all of one task of its own."""
    number = next(_names)
    end = turns + tools * (turns - 1)
    spans = [step(f"r{number}", 0, end, agent="helper")]
    at = 0.0
    for turn in range(turns):
        usage = Usage(input_tokens=100, output_tokens=10, cache_read=0)
        spans.append(call(f"c{number}-{turn}", at, at + 1, f"r{number}", usage=usage, asks=(f"t{turn}",)))
        if turn < turns - 1:
            spans.append(tool(f"t{number}-{turn}", at + 1, at + 1 + tools, f"r{number}", by=f"c{number}-{turn}"))
        at += 1 + tools
    return [msgspec.structs.replace(span, task=TaskId(f"task-{number}")) for span in spans]


def studied(tasks: list[list[Span]], timing: Timing = "spans") -> SetStudy:
    study = SetStudy(prices=free)
    for spans in tasks:
        study.add(spans, judge(spans, "made", timing, ["Times are made up."]), title="why?")
    return study


def test_levers_replay_each_task_and_then_take_the_quantile() -> None:
    report = studied([task(2), task(2), task(4)]).report()
    faster = next(row for row in report.levers if row.lever.key == "faster-tools")
    # E2E 3, 3, 7; with half a second for a tool 2.5, 2.5, 5.5
    assert [found.value for found in faster.before] == [3.0, 7.0]
    assert [found.value for found in faster.after] == [2.5, 5.5]
    assert (faster.tasks, faster.of, faster.lever.seconds) == (3, 3, 1.5)
    assert faster.tokens == 0


def test_half_of_few_iterations_is_one() -> None:
    """Loops of 2 and of 6 calls: of 1 iteration that could go half is one, of 5 it is two; each takes 2 s."""
    report = studied([task(2), task(2), task(6)]).report()
    one, half = (
        next(row for row in report.levers if row.lever.key == key)
        for key in ("one-iteration-fewer", "half-the-iterations")
    )
    assert (one.tasks, half.tasks) == (3, 3)
    # E2E 3, 3, 11
    assert [found.value for found in one.after] == [pytest.approx(1.0), pytest.approx(9.0)]
    assert [found.value for found in half.after] == [pytest.approx(1.0), pytest.approx(7.0)]


def test_what_stays_as_recorded_in_one_task_is_said_of_the_set() -> None:
    """Six calls of 1 s with gaps of 1 s after them, one of them 1,000 s, beside a task of 40 iterations."""
    night = [step("night", 0, 1012)]
    at = 0.0
    for turn in range(6):
        gap = 1000.0 if turn == 3 else 1.0
        night.append(call(f"n{turn}", at, at + 1, "night", asks=(f"{turn}",)))
        night.append(tool(f"g{turn}", at + 1, at + 1 + gap, "night", by=f"n{turn}", inferred=True))
        at += 1 + gap
    night.append(call("end", at, at + 1, "night"))
    night = [msgspec.structs.replace(span, task=TaskId("night")) for span in night]
    report = studied([night, task(40)]).report()
    assumed = {row.lever.key: row.lever.assumes for row in report.levers}
    assert assumed["faster-tools"].endswith(
        "In 1 of 2 tasks: Gaps between two calls stay as recorded: far longer than iterations usually are, and a person"
        " may have been waited for in them."
    )
    assert assumed["half-the-iterations"].endswith(
        "In 1 of 2 tasks: Iterations over 20 times as long as the median are no average ones and stay."
    )


def test_what_single_tasks_show_is_counted_over_the_set() -> None:
    report = studied([task(2, tools=9.0), task(2, tools=9.0), task(2, tools=0.001)]).report()
    (row,) = [row for row in report.recurring if row.worst.name == "tools-dominate"]
    assert (row.tasks, row.of) == (2, 3)
    assert row.seconds == pytest.approx(18.0)
    assert row.share == pytest.approx(18 / (11 + 11 + 2.001))


def test_the_slowest_are_named_and_the_verdict_is_of_all() -> None:
    study = studied([task(n) for n in (2, 5, 3)])
    report = study.report()
    assert [row.n for row in report.slowest] == [5, 3, 2]
    tokens = next(aspect for aspect in report.aspects if aspect.subject == "tokens")
    assert (tokens.quality, tokens.known, tokens.of) == ("measured", 10, 10)
    assert report.remarks == (("Times are made up.", 3),)
    assert len(study.rows) == 3


def test_without_times_there_are_no_levers() -> None:
    report = studied([task(3)], timing="none").report()
    assert report.levers == ()
    assert report.slowest == ()
    assert report.anatomy.timed == 0


def test_many_tasks_are_sampled_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE", 20)
    report = studied([task(2) for _ in range(150)]).report()
    assert report.sampled == 20
    assert report.anatomy.tasks == 150


def test_nothing_at_all_is_no_error() -> None:
    assert SetStudy().report().anatomy.tasks == 0


def test_the_sample_is_bounded_in_spans_too_but_never_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE_BYTES", 1)
    report = studied([task(2) for _ in range(8)]).report()
    assert (report.sampled, report.anatomy.tasks) == (1, 8)


def test_a_task_that_was_put_away_counts_as_one_that_comes_whole() -> None:
    tasks = [task(2), task(4, tools=9.0)]
    verdicts = [judge(spans, "made", "spans") for spans in tasks]
    whole, away = SetStudy(prices=free), SetStudy(prices=free)
    for spans, verdict in zip(tasks, verdicts, strict=True):
        whole.add(spans, verdict, "why?")
        one = Imported(task=spans[0].task, title="why?", spans=tuple(spans), verdict=verdict)
        away.take(put_away(one, free))
    assert away.report() == whole.report()


def test_with_the_help_of_others_the_report_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORTH_HELP", 1)
    alone, helped = SetStudy(), SetStudy(processes=2)
    for n in range(2, 50):
        spans = task(n % 7 + 2)
        alone.add(spans, judge(spans, "made", "spans"))
        helped.add(spans, judge(spans, "made", "spans"))
    assert helped.report() == alone.report()


def test_a_report_is_of_all_tasks_up_to_it() -> None:
    study = studied([task(2)])
    assert study.report() is study.report()
    spans = task(3)
    study.add(spans, judge(spans, "made", "spans"))
    assert study.report().anatomy.tasks == 2


def test_what_could_not_be_done_is_said_once_whatever_its_numbers() -> None:
    # loops of 2, 3 and 4 calls have 1, 2 and 3 that could go, and each calls another number of tools
    study = SetStudy(prices=free, changes=parse("iterations -9, tool:other 0.5x, tool:other 2x, cache 100%"))
    for spans in map(task, (2, 3, 4)):
        blind = [msgspec.structs.replace(span, work=untold(span)) for span in spans]
        study.add(blind, judge(blind, "made", "spans"))
    changed = study.report().changed
    assert changed is not None
    assert dict(changed.notes) == {
        "Fewer than 9 iterations could go: the answer stays, and so do a sub-agent's calls.": 3,
        "tool:other does not occur in this task.": 3,
        "What some calls read, or took from a cache, is not recorded: what a better cache would save on them is"
        " unknown.": 3,
    }
    assert changed.after is not None  # iterations and tools can be told
    assert changed.partly == 3  # the cache cannot
    blind = SetStudy(prices=free, changes=parse("cache 100%"))
    spans = [msgspec.structs.replace(span, work=untold(span)) for span in task(3)]
    blind.add(spans, judge(spans, "made", "spans"))
    assert (told := blind.report().changed) is not None
    assert (told.tokens, told.tokens_least) == (None, None)


def test_where_answers_are_longer_what_is_known_bounds_nothing() -> None:
    # of one task the tokens are known, of the other none are: twice the output may be any number of tokens more
    study = SetStudy(prices=free, changes=parse("output 2x"))
    known, blind = task(1), [msgspec.structs.replace(span, work=untold(span)) for span in task(2)]
    for spans in (known, blind):
        study.add(spans, judge(spans, "made", "spans"))
    assert (changed := study.report().changed) is not None
    assert (changed.tokens, changed.tokens_least, changed.cost_least) == (None, None, None)


def untold(span: Span) -> Work:
    return msgspec.structs.replace(span.work, usage=Usage()) if isinstance(span.work, ModelCall) else span.work


def test_a_slow_task_is_told_from_all_others_and_not_from_slow_ones_alone() -> None:
    ids = [f"{'a' * 10}{i:022x}" for i in range(7)]
    study = SetStudy(prices=free)
    for number, name in enumerate([*ids, "b" * 32]):
        spans = [msgspec.structs.replace(span, task=TaskId(name)) for span in task(number + 1)]
        study.add(spans, judge(spans, "made", "spans"))
    report = study.report()
    assert [row.task for row in report.slowest] == ["b" * 32, *reversed(ids[3:])]
    assert set(report.namesakes) == {*ids, "b" * 32}
