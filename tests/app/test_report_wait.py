"""A wait for a person before the task: told by all faces in seconds, and drawn by none on the task's axis."""

import io
import json
import re

from accounts import accounted
from rich.console import Console
from tasks import call, human, step

from headway.app.report.document import task_json
from headway.app.report.html import html_task
from headway.app.report.terminal import render_task
from headway.trace.account import TaskAccount
from headway.trace.anatomy import dissect


def account() -> TaskAccount:
    """The person read for 300 s; then came a task of 12 s, in which it was asked something from 2 to 10."""
    spans = [human("reading", -300, 0), step("root", 0, 12), call("a", 0, 2, "root"), human("asked", 2, 10, "root")]
    return accounted(dissect([*spans, call("b", 10, 12, "root")], prices=lambda _call, _at: None))


def test_the_terminal_names_the_wait_before_the_task_and_draws_no_bar() -> None:
    out = io.StringIO()
    Console(file=out, width=100).print(render_task(account()))
    lines = out.getvalue().splitlines()
    (before,) = (line for line in lines if "reading, before the task" in line)
    assert re.fullmatch(r"\s*○\s+reading, before the task\s+before\s+300\.000\s*", before)
    (within,) = (line for line in lines if "asked" in line)
    assert re.search(r"2\.000\s+8\.000\s*$", within)


def test_the_page_says_before_and_how_long() -> None:
    page = html_task(account())
    assert 'aria-label="reading, before the task: starts before it, takes 300.000 s' in page
    (row,) = re.findall(r'reading, before the task</span><svg role="presentation">(.*?)</svg>', page)
    assert set(re.findall(r'width="([^"]*)"', row)) == {"0.000%"}


def test_machines_get_the_seconds_before_apart_from_those_inside() -> None:
    document = json.loads(task_json(account()))
    assert (document["e2e_s"], document["human_s"], document["waited_before_s"]) == (4, 8, 300)
    waits = {line["name"]: (line["waited_s"], line["waited_before_s"]) for line in document["spans"]}
    assert waits == {"root": (None, 0), "reading": (300, 300), "a": (None, 0), "asked": (8, 0), "b": (None, 0)}
    assert json.loads(task_json(accounted(dissect([call("a", 0, 2)]))))["waited_before_s"] is None
