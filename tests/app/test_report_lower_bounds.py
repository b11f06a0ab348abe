"""One call that reports no usage: every face shows what the others come to, as a lower bound and as nothing more."""

import io
import json
import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from files import otlp_task, written
from msgspec.structs import replace
from pages import Page
from rich.console import Console, RenderableType
from sets import imported

from headway.app.report.budget_table import render_budget
from headway.app.report.compare_document import budget_json, compare_json
from headway.app.report.comparison import render_comparison
from headway.app.report.document import task_json
from headway.app.report.exports.markdown import markdown_set, markdown_task
from headway.app.report.html import html_task
from headway.app.report.html_set import html_set
from headway.app.report.set_document import set_json
from headway.app.report.set_terminal import render_set
from headway.app.report.terminal import render_task
from headway.core.budget import Budget, StageBudget
from headway.core.money import MicroUsd
from headway.core.span import ModelCall, Span
from headway.core.spent import Sum
from headway.core.usage import Usage
from headway.trace.account import TaskAccount, account_of
from headway.trace.archive import Archive
from headway.trace.budgets import check
from headway.trace.compare import compare
from headway.trace.filed import put_away
from headway.trace.set_study import SetStudy
from headway.trace.sources.intake import Imported
from headway.trace.stats import Bootstrap
from headway.trace.whatif import what_if
from headway.trace.whatif_text import parse

Run = Callable[..., Any]


def of_call(span: Span, *, silent: bool) -> Span:
    """Each call costs a cent, but for the silent one, of which nothing is known."""
    if not isinstance(span.work, ModelCall):
        return span
    usage, cost = (Usage(), None) if silent else (span.work.usage, MicroUsd(10_000))
    return replace(span, work=replace(span.work, usage=usage, cost=cost))


def costly(one: Imported, silent: str = "") -> Imported:
    return replace(one, spans=tuple(of_call(span, silent=span.id == silent) for span in one.spans))


def silent_first(number: int) -> Imported:
    """Three calls that read 1,000, 2,000 and 3,000 tokens and write 11 each; the first does not say so."""
    return costly(imported(number, 3), "c0")


def printed(page: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=110).print(page)
    return " ".join(out.getvalue().split())


def words(html: str) -> str:
    return " ".join(Page(html).text.split())


@pytest.fixture
def account() -> TaskAccount:
    one = silent_first(1)
    return account_of(one.spans, one.verdict, one.title)


@pytest.fixture
def study() -> SetStudy:
    """A task that tells all, 3,000 in and 22 out at two cents, and one that tells 5,000, 22 and two cents of three."""
    return studied([costly(imported(1, 2)), silent_first(2)])


def studied(tasks: Iterable[Imported]) -> SetStudy:
    study = SetStudy(lambda _call, _at: None)
    for one in tasks:
        study.add(one.spans, one.verdict, one.title)
    return study


def test_a_cached_share_is_of_the_calls_that_tell() -> None:
    """A call that reads 1,000 tokens, 250 of them from a cache, and one that reads 2,000 and does not tell."""
    told, silent = (
        Usage(input_tokens=1000, output_tokens=1, cache_read=250),
        Usage(input_tokens=2000, output_tokens=1),
    )
    one = imported(1, 2)
    spans = tuple(
        replace(span, work=replace(span.work, usage=told if span.id == "c0" else silent))
        if isinstance(span.work, ModelCall)
        else span
        for span in one.spans
    )
    report = studied([replace(one, spans=spans)]).report()
    whose = "the 1,000 tokens of calls that tell (1 of 2)"
    assert f"Of {whose}, 25.0 % came from a cache." in printed(render_set(report))
    assert f"25.0 % of {whose}" in words(html_set(report, (), ()))
    assert f"3,000 tokens in (25.0 % of {whose} from the cache)" in markdown_set(report)
    document = json.loads(set_json(report, None))
    assert document["cached_share"] is None
    assert document["cached_share_known"] == {"share": 0.25, "input_tokens": 1000, "known": 1, "of": 2}


def test_a_cached_share_of_all_calls_is_of_all_input_tokens() -> None:
    report = studied([imported(1, 2)]).report()
    assert "Of the input tokens, 33.3 % came from a cache." in printed(render_set(report))
    document = json.loads(set_json(report, None))
    assert document["cached_share"] == document["cached_share_known"]["share"] == 1 / 3


def test_a_task_on_a_terminal(account: TaskAccount) -> None:
    page = printed(render_task(account))
    assert "tokens at least 5,022 at least 5,000 in, at least 22 out (2 of 3 calls report it)" in page
    assert "cost at least $0.0200 2 of 3 calls report it" in page
    assert "Input, output and cached tokens are unknown for 1 of 3 calls: their sums are lower bounds." in page
    assert "Cost is a lower bound: no price is known for m." in page


def test_a_task_in_a_browser(account: TaskAccount) -> None:
    page = words(html_task(account))
    assert "≥ 5,022 2 of 3 calls report it" in page
    assert "≥ $0.0200 2 of 3 calls report it" in page


def test_a_task_in_a_ticket(account: TaskAccount) -> None:
    assert (
        "3 model calls, at least 5,000 tokens in (unknown from the cache), at least 22 out, cost at least \\$0.0200"
        " (input: 2 of 3 calls report it; output: 2 of 3 calls report it; cost: 2 of 3 calls report it)."
    ) in markdown_task(account)


def test_a_task_for_machines(account: TaskAccount) -> None:
    document = json.loads(task_json(account))
    assert (document["usage"]["input_tokens"], document["cost_usd_micro"]) == (None, None)
    assert document["at_least"] == {
        "input_tokens": {"sum": 5000, "known": 2, "of": 3},
        "output_tokens": {"sum": 22, "known": 2, "of": 3},
        "tokens": {"sum": 5022, "known": 2, "of": 3},
        "cache_read": {"sum": 3000, "known": 2, "of": 3},
        "cost_usd_micro": {"sum": 20_000, "known": 2, "of": 3},
    }


def test_a_set_on_a_terminal(study: SetStudy) -> None:
    page = printed(render_set(study.report()))
    assert "input tokens 1 of 2 3,000 3,000 3,000 3,000" in page
    assert "input tokens, at least 2 of 2 ≥ 4,000 ≥ 3,000 ≥ 5,000 ≥ 5,000" in page
    assert "cost per task, at least 2 of 2 ≥ $0.0200" in page
    assert "m 5 0 76.9 % ≥ 8,000 ≥ 44 ≥ $0.0400" in page  # 10 s of calls in 5 + 8 s


def test_several_models_are_summed_up() -> None:
    two = costly(imported(1, 2))
    other = replace(silent_first(2), spans=tuple(map(of_another, silent_first(2).spans)))
    page = printed(render_set(studied([two, other]).report()))
    assert "all together 5 ≥ 8,000 ≥ 44 ≥ $0.0400" in page
    assert "all together" in words(html_set(studied([two, other]).report(), [], []))


def of_another(span: Span) -> Span:
    return replace(span, work=replace(span.work, model="n")) if isinstance(span.work, ModelCall) else span


def test_a_set_in_a_browser(study: SetStudy) -> None:
    page = words(html_set(study.report(), [], []))
    assert "at least $0.0200 Spread" in page
    assert re.search(r"input tokens, at least ?2 of 2 ?≥ 4,000 ?≥ 3,000 ?≥ 5,000 ?≥ 5,000", page)
    assert re.search(r"≥ 8,000 ?≥ 44 ?≥ \$0\.0400", page)


def test_a_set_in_a_ticket(study: SetStudy) -> None:
    text = markdown_set(study.report())
    assert "| input tokens, at least | 2 of 2 | ≥ 3,000 | ≥ 5,000 | ≥ 5,000 |" in text
    assert "In all: at least 8,000 tokens in" in text
    assert "cost: 4 of 5 calls report it" in text


def test_a_set_for_machines(study: SetStudy) -> None:
    document = json.loads(set_json(study.report(), None))
    assert (document["input_tokens"]["known"], document["input_tokens"]["mean"]) == (1, 3000)
    assert (document["input_tokens_at_least"]["known"], document["input_tokens_at_least"]["mean"]) == (2, 4000)
    assert document["cost_usd_micro_at_least"]["mean"] == 20_000
    (model,) = document["models"]
    assert (model["input_tokens"], model["cost_usd_micro"]) == (None, None)
    assert model["at_least"]["input_tokens"] == document["at_least"]["input_tokens"]
    assert model["at_least"]["input_tokens"] == {"sum": 8000, "known": 4, "of": 5}
    assert document["slowest"][0]["at_least"]["cost_usd_micro"] == {"sum": 20_000, "known": 2, "of": 3}


def test_where_every_call_tells_nothing_is_said_of_bounds() -> None:
    study = studied([costly(imported(1, 2)), costly(imported(2, 3))])
    assert "at least" not in printed(render_set(study.report()))
    assert json.loads(set_json(study.report(), None))["input_tokens_at_least"] is None


def test_a_comparison_leaves_lower_bounds_out_and_says_so() -> None:
    before, after = studied([costly(imported(1, 2))]).rows, studied([costly(imported(2, 2)), silent_first(3)]).rows
    found = compare(before, after, Bootstrap(random.Random(1).betavariate))
    page = printed(render_comparison(found, ("a", "b")))
    assert "input tokens 3,000.0 ≥ 4,000.0" in page
    assert "Left out of input tokens, cached tokens, output tokens, cost: 0 and 1 tasks" in page
    document = json.loads(compare_json(found, ("a", "b")))
    (tokens,) = (one for one in document["figures"] if one["name"] == "input tokens")
    assert (tokens["known"], tokens["mean"], tokens["partial"]) == ([1, 1], [3000, 3000], [0, 1])
    assert tokens["mean_at_least"] == [None, 4000]


def limits(tokens: int) -> Budget:
    return Budget(task=StageBudget(), calls=None, tokens=tokens, cost=None, stages={})


def test_a_limit_that_the_lower_bound_exceeds_is_broken_for_sure(study: SetStudy) -> None:
    (line,) = check(limits(4000), study.rows)
    assert (line.state, line.value, line.at_least, line.over, line.of) == ("broken", 5022, True, 1, 2)
    page = printed(render_budget([line], (), "made"))
    assert "≥ 5,022" in page
    assert (
        "5,022 is the most that any of 2 tasks tells; only a lower bound for 1 of 2 tasks, some of whose calls do not"
        " report it"
    ) in page
    assert json.loads(budget_json([line], ()))["lines"][0]["at_least"] is True


def test_a_limit_that_the_lower_bound_keeps_may_be_broken_all_the_same(study: SetStudy) -> None:
    (line,) = check(limits(6000), study.rows)
    assert line.state == "unknown"


def test_an_archive_keeps_the_bounds(tmp_path: Path) -> None:
    with Archive(tmp_path / "set.hwa") as archive:
        archive.add([put_away(silent_first(1))])
        (row,) = archive.rows()
    assert row.facts.spent.tokens == account_of(silent_first(1).spans, silent_first(1).verdict).anatomy.spent.tokens


def test_a_suggested_budget_says_what_it_does_not_know(headway: Run, tmp_path: Path) -> None:
    lines = [otlp_task(number) for number in range(10)]
    lines[0] = lines[0].replace("gen_ai.usage.input_tokens", "made.up", 1)
    ran = headway("budget", "suggest", written(tmp_path / "many.jsonl", lines))
    assert "# The limit on tokens may be too low: only a lower bound for 1 of 10 tasks" in ran.out
    assert "# No limit on cost: unknown for all tasks." in ran.out
    assert "# No limit on p95, p99: 10 timed tasks are too few to bound it." in ran.out
    assert "tokens = 360" in ran.out  # 100 + 200 in, 2 x 10 out, and a tenth: 352, to two digits


def test_what_a_finding_costs_is_a_lower_bound_where_some_tasks_have_no_price() -> None:
    report = studied([costly(imported(1, 9)), imported(2, 9)]).report()
    (row,) = (row for row in report.recurring if row.name == "iterations-dominate")
    assert row.cost == Sum(80_000, 1, 2)  # eight of nine calls, a cent each
    told = next(one for one in json.loads(set_json(report, None))["recurring"] if one["name"] == row.name)
    assert (told["cost_usd_micro"], told["cost_usd_micro_at_least"]) == (None, {"sum": 80_000, "known": 1, "of": 2})
    assert "iterations-dominate 2 of 2 48.00 92.3 % ≥ $0.0800" in printed(render_set(report))
    assert "≥ $0.0800" in words(html_set(report, [], []))


def test_what_a_lever_saves_is_a_lower_bound_in_every_face(account: TaskAccount, study: SetStudy) -> None:
    # of the first two calls one may go: half of 2,011 tokens and of a cent, and of what the silent one took
    assert "one iteration fewer saves 3.000 s (37.5 %), at least 1,005 tokens, at least $0.005000" in printed(
        render_task(account)
    )
    assert "at least 1,005 tokens, at least $0.005000" in words(html_task(account))
    assert "| one iteration fewer | 3.000 s (37.5 %) | at least 1,005 | at least \\$0.005000 |" in markdown_task(
        account
    )
    (lever,) = (one for one in json.loads(task_json(account))["levers"] if one["key"] == "one-iteration-fewer")
    assert (lever["tokens"], lever["tokens_at_least"]) == (None, 1005)
    assert (lever["cost_usd_micro"], lever["cost_usd_micro_at_least"]) == (None, 5000)
    # the other task of the set would do without 1,011 tokens and a cent: (1,005 + 1,011) / 2 and $0.015 / 2
    assert "≥ 1,008 ≥ $0.007500" in printed(render_set(study.report()))
    assert "≥ 1,008" in words(html_set(study.report(), [], []))
    assert "| at least 1,008 | at least \\$0.007500 |" in markdown_set(study.report())
    told = next(one for one in json.loads(set_json(study.report(), None))["levers"] if one["tokens_at_least"] == 1008)
    assert (told["tokens"], told["cost_usd_micro"], told["cost_usd_micro_at_least"]) == (None, None, 7500)


def test_what_a_change_saves_is_a_lower_bound_but_not_where_it_may_cost_more() -> None:
    one = silent_first(1)
    less = what_if(one.spans, parse("iterations -1"))
    assert (less.tokens, less.tokens_least, less.cost_least) == (None, 1005, 5000)
    account = account_of(one.spans, one.verdict)
    assert "at least 1,005 tokens saved, at least $0.005000 saved" in printed(render_task(account, outcome=less))
    assert json.loads(task_json(account, None, less))["what_if"]["tokens_at_least"] == 1005
    more = what_if(one.spans, parse("output 2x"))
    assert (more.tokens, more.tokens_least) == (None, None)


def test_what_a_finding_costs_is_a_lower_bound_where_some_calls_tell_nothing() -> None:
    one = costly(imported(1, 9), "c0")
    account = account_of(one.spans, one.verdict)
    (finding,) = (found for found in account.findings if found.name == "iterations-dominate")
    # the first eight calls but the silent one: 2,000 to 8,000 tokens in, 11 out and a cent each
    assert (finding.cost, finding.cost_least, finding.tokens, finding.tokens_least) == (None, 70_000, None, 35_077)
    assert "certain, 24.00 s, at least $0.0700" in printed(render_task(account))
    assert "at least $0.0700" in words(html_task(account))
    assert "at least 35,077 tokens" in words(html_task(account))
    (told,) = (found for found in json.loads(task_json(account))["findings"] if found["name"] == finding.name)
    assert (told["cost_usd_micro"], told["cost_usd_micro_at_least"], told["tokens_at_least"]) == (None, 70_000, 35_077)
