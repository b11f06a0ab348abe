import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from headway.core.span import ErrorType, ModelCall, Span, ToolCallRef, ToolUse
from headway.core.task import SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.store import Store

Run = Callable[..., Any]
OLD, NEW = TaskId("aa" * 16), TaskId("ab" * 16)


def turn(task: TaskId, number: int, start: float, *, last: bool) -> list[Span]:
    """A call of 2 s, half of it prefill; and, unless it is the last, a tool of 1 s that it asked for."""
    ref = ToolCallRef(f"c{number}", "search")
    work = ModelCall(
        model="tiny",
        stream=True,
        sent=start,
        first_token=start + 1.0,
        first_visible=start + 1.0 if last else None,
        last_token=start + 2.0,
        usage=Usage(input_tokens=100, output_tokens=11, cache_read=20),
        tool_calls=() if last else (ref,),
        attempts=1,
    )
    call = Span(
        task=task, id=SpanId(f"m{number}"), parent=None, name="chat tiny", start=start, end=start + 2.0, work=work
    )
    if last:
        return [call]
    tool = ToolUse(name="search", call_id=ref.id, issued_by=call.id, inferred=True)
    return [
        call,
        Span(
            task=task,
            id=SpanId(f"t{number}"),
            parent=None,
            name="execute_tool search",
            start=start + 2.0,
            end=start + 3.0,
            work=tool,
        ),
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    with Store(path) as opened:
        opened.write(turn(OLD, 1, 1_790_001_000.0, last=True))
        opened.write([*turn(NEW, 1, 1_790_002_000.0, last=False), *turn(NEW, 2, 1_790_002_003.0, last=True)])
    return path


def test_the_last_task_is_explained(headway: Run, store: Path) -> None:
    ran = headway("explain", "--last", "--store", store)
    assert (ran.code, ran.err) == (0, "")
    assert f"task {NEW}" in ran.out
    assert "5.000 s = 2.000 prefill + 2.000 decode + 1.000 tools" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100
    assert "HOW IT WAS MEASURED" not in ran.out
    assert "HOW IT WAS MEASURED" in headway("explain", "--last", "--why", "--store", store).out


def test_a_task_is_named_by_its_beginning(headway: Run, store: Path) -> None:
    assert f"task {OLD}" in headway("explain", "aaa", "--store", store).out


def test_a_machine_gets_the_account_and_nothing_else(headway: Run, store: Path, tmp_path: Path) -> None:
    ran = headway("explain", "--last", "--json", "--html", tmp_path / "r.html", "--store", store)
    document = json.loads(ran.out)
    assert document["schema"] == "headway.explain/1"
    assert document["e2e_s"] == pytest.approx(5.0)
    assert document["iterations"] == 2
    assert document["usage"]["input_tokens"] == 200
    assert ran.err == f"HTML report: {tmp_path / 'r.html'}\n"


def test_the_report_for_a_browser_is_written_where_asked(headway: Run, store: Path, tmp_path: Path) -> None:
    ran = headway("explain", "--last", "--html", tmp_path, "--store", store)
    report = tmp_path / f"headway-{NEW}.html"
    assert ran.out.splitlines()[-1] == f"HTML report: {report}"
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    failed = headway("explain", "--last", "--html", tmp_path / "no" / "r.html", "--store", store)
    assert (failed.code, failed.out) == (1, ""), "told before the account, not after it"
    assert "its directory does not exist" in failed.err


def test_a_name_that_is_neither_a_file_nor_a_task_is_told_as_such(headway: Run, store: Path, tmp_path: Path) -> None:
    for where in (store, tmp_path / "none.db"):
        ran = headway("explain", "nosuch", "--store", where)
        assert (ran.code, ran.out) == (1, "")
        assert "There is no file 'nosuch', and no such task" in ran.err


def test_an_unknown_task_is_answered_with_the_nearest(headway: Run, store: Path) -> None:
    ran = headway("explain", "ad" * 16, "--store", store)
    assert (ran.code, ran.out) == (1, "")
    assert "There is no task" in ran.err
    assert NEW in ran.err
    assert "headway tasks" in ran.err
    assert "Traceback" not in ran.err


def test_an_ambiguous_beginning_lists_the_candidates(headway: Run, store: Path) -> None:
    ran = headway("explain", "a", "--store", store)
    assert ran.code == 1
    first, old, new, fix = ran.err.splitlines()
    assert first == "headway: 2 tasks begin with 'a':"
    assert re.fullmatch(r"  aaaaaaaa  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  1 call   tiny", old)
    assert re.fullmatch(r"  abababab  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  2 calls  tiny", new)
    assert "Give more of the id" in fix


def test_one_task_must_be_named_and_only_one(headway: Run, store: Path) -> None:
    neither, both = headway("explain", "--store", store), headway("explain", "aaa", "--last", "--store", store)
    assert (neither.code, both.code) == (2, 2)
    assert "Name what to explain" in neither.err
    assert "not both" in both.err


def test_no_store_yet_says_what_to_start(headway: Run, tmp_path: Path) -> None:
    ran = headway("explain", "--last", "--store", tmp_path / "none.db")
    assert ran.code == 1
    assert "headway serve" in ran.err
    Store(tmp_path / "empty.db").close()
    assert "headway serve" in headway("explain", "--last", "--store", tmp_path / "empty.db").err


def test_a_file_that_is_no_store_says_what_to_do(headway: Run, tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("no spans " * 1000)
    ran = headway("explain", "abc", "--store", tmp_path / "x.db")
    assert ran.code == 1
    assert "--store" in ran.err
    assert headway("explain", "[/red]", "--store", tmp_path / "x.db").code == 2  # a pattern of files


def test_help_has_an_example(headway: Run) -> None:
    assert "headway explain --last" in headway("explain", "--help").out


def test_a_set_has_a_page_for_a_browser_too(headway: Run, store: Path, tmp_path: Path) -> None:
    ran = headway("explain", "--all", "--store", store, "--html", tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert f"HTML report: {tmp_path / 'headway-set.html'}" in ran.out
    page = (tmp_path / "headway-set.html").read_text()
    assert "5.000 s at p95" in page
    assert page.count('class="waterfall"') == 2, "both tasks are among the slowest"


def test_a_set_goes_out_as_a_trace_for_perfetto_as_otlp_and_as_text_for_a_ticket(
    headway: Run, store: Path, tmp_path: Path
) -> None:
    perfetto, otlp, markdown = tmp_path / "p.json", tmp_path / "o.jsonl", tmp_path / "t.md"
    out = ("--perfetto", perfetto, "--otlp", otlp, "--markdown", markdown)
    ran = headway("explain", "--all", "--store", store, *out)
    assert ran.code == 0
    assert f"Markdown: {markdown}" in ran.out
    assert f"Perfetto trace: {perfetto} (2 tasks)" in ran.out.replace("\n", "")
    assert len({event["pid"] for event in json.loads(perfetto.read_text())["traceEvents"]}) == 2
    assert markdown.read_text().startswith("## 2 tasks")
    again = headway("explain", otlp, "--task", NEW, "--json")
    assert json.loads(again.out)["phases_s"] == {"prefill": 2.0, "decode": 2.0, "tool": 1.0}


def test_files_are_there_though_nobody_reads_the_page(store: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = Path(sys.executable).with_name("headway")
    out = ("--html", tmp_path / "t.html", "--markdown", tmp_path / "t.md")
    try:
        ran = subprocess.run([command, "explain", "--all", "--store", store, *out], stdout=writing, check=False)  # noqa: S603 - our own command
    finally:
        os.close(writing)
    assert ran.returncode == 1, "what it shows was read by nobody"
    assert (tmp_path / "t.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "t.md").read_text().startswith("## 2 tasks")


def test_one_task_goes_out_alone(headway: Run, store: Path, tmp_path: Path) -> None:
    ran = headway("explain", "--last", "--store", store, "--json", "--otlp", tmp_path / "o.jsonl")
    assert json.loads(ran.out)["task"] == NEW
    assert "(1 task)" in ran.err
    assert len((tmp_path / "o.jsonl").read_bytes().splitlines()) == 1


def test_where_nothing_can_be_written_no_work_is_done(headway: Run, tmp_path: Path) -> None:
    ran = headway("explain", "--last", "--store", tmp_path / "none.db", "--otlp", tmp_path / "missing" / "o.jsonl")
    assert ran.code == 1
    assert "its directory does not exist. Give another path with --otlp." in " ".join(ran.err.split())


def test_the_page_of_a_set_says_why_when_asked(headway: Run, store: Path) -> None:
    assert "HOW IT WAS MEASURED" not in headway("explain", "--all", "--store", store).out
    out = " ".join(headway("explain", "--all", "--why", "--store", store).out.split())
    assert "HOW IT WAS MEASURED" in out
    for name in ("E2E, s", "interval", "typical", "tail", "reading", "levers", "prefill"):
        assert f"{name} " in out.partition("HOW IT WAS MEASURED")[2], name


def test_a_request_that_was_refused_is_not_the_last_task_but_is_told(headway: Run, store: Path, tmp_path: Path) -> None:
    refused = Span(
        task=TaskId("ac" * 16),
        id=SpanId("r"),
        parent=None,
        name="chat unknown",
        start=1_790_003_000.0,
        end=1_790_003_000.0,
        work=ModelCall(model="unknown", attempts=0),
        error=ErrorType("bad_request"),
    )
    with Store(store) as opened:
        opened.write([refused])
    ran = headway("explain", "--last", "--store", store)
    assert ran.code == 0
    assert f"task {NEW}" in ran.out
    told = (
        "The last request reached no engine (bad_request); this is the last task that did. Of the request: "
        f"headway explain {'ac' * 16}."
    )
    assert told in " ".join(ran.out.split())
    pages = tmp_path / "r.html", tmp_path / "r.md"
    ran = headway("explain", "--last", "--store", store, "--json", "--html", pages[0], "--markdown", pages[1])
    assert json.loads(ran.out)["note"] == told
    assert told in pages[0].read_text()
    assert "The last request reached no engine" in pages[1].read_text()
    assert json.loads(headway("explain", "acac", "--store", store, "--json").out)["note"] is None
    assert f"task {'ac' * 16}" in headway("explain", "acac", "--store", store).out
    assert "refused" in headway("tasks", "--store", store).out
    assert json.loads(headway("tasks", "--json", "--store", store).out)["tasks"][0]["refused"] is True


def test_where_all_were_refused_the_last_of_them_is_explained(headway: Run, tmp_path: Path) -> None:
    work = ModelCall(model="unknown", attempts=0)
    span = Span(task=OLD, id=SpanId("r"), parent=None, name="chat unknown", start=1e9, end=1e9 + 0.001, work=work)
    with Store(tmp_path / "s.db") as opened:
        opened.write([structs.replace(span, error=ErrorType("body_too_large"))])
    ran = headway("explain", "--last", "--store", tmp_path / "s.db")
    assert f"task {OLD}" in ran.out
    assert "The last call was refused (body_too_large), so the user saw no answer" in " ".join(ran.out.split())
    assert "The last request reached no engine (body_too_large)." in ran.out
