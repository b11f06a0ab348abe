import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from headway.core.span import ErrorType, ModelCall, Span
from headway.core.task import SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.store import Store

Run = Callable[..., Any]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    with Store(path) as opened:
        for number, task in enumerate(("aa" * 16, "bb" * 16, "cc" * 16)):
            work = ModelCall(model=f"model-{number}", usage=Usage(input_tokens=1000, output_tokens=number))
            error = ErrorType("timeout") if number == 1 else None
            start = 1_800_000_000.0 + number * 60
            span = Span(
                task=TaskId(task),
                id=SpanId("1"),
                parent=None,
                name="chat",
                start=start,
                end=start + 2.5,
                work=work,
                error=error,
            )
            opened.write([span])
    return path


def test_tasks_are_listed_newest_first(headway: Run, store: Path) -> None:
    ran = headway("tasks", "--store", store)
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert [line.split()[0] for line in lines] == ["task", "cccccccc", "bbbbbbbb", "aaaaaaaa"]
    assert "1,002  ok       model-2" in lines[1]
    assert "2.500 s      1   1,001  1 error  model-1" in lines[2]


def test_what_was_answered_after_a_failed_call_is_told_from_what_failed(headway: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store(path) as opened:
        for task, errors in (("aa", ("upstream_closed", None)), ("bb", (None, "timeout")), ("cc", ("client_gone",))):
            for number, error in enumerate(errors):
                opened.write(
                    [
                        Span(
                            task=TaskId(task * 16),
                            id=SpanId(str(number)),
                            parent=None,
                            name="chat",
                            start=1_800_000_000.0 + number,
                            end=1_800_000_000.5 + number,
                            work=ModelCall(model="m", attempts=0 if error == "client_gone" else 1),
                            error=None if error is None else ErrorType(error),
                        )
                    ]
                )
    found = {line.split()[0][:2]: line for line in headway("tasks", "--store", path).out.splitlines()[1:]}
    assert " ok after 1 error " in found["aa"]
    assert " 1 error " in found["bb"]
    assert "ok" not in found["bb"]
    assert " 1 error " in found["cc"], "a client that left was not refused"


def test_the_list_can_be_narrowed(headway: Run, store: Path) -> None:
    assert len(headway("tasks", "--store", store, "--limit", "2").out.splitlines()) == 3
    assert "bbbbbbbb" in headway("tasks", "--store", store, "--errors").out
    assert "aaaaaaaa" not in headway("tasks", "--store", store, "--errors").out
    assert headway("tasks", "--store", store, "--model", "model-0").out.splitlines()[1].startswith("aaaaaaaa")
    assert headway("tasks", "--store", store, "--model", "other").out == "No task matches.\n"
    assert headway("tasks", "--store", store, "--limit", "0").code == 2


def test_an_id_as_shown_names_its_task_among_those_that_are_not_listed_too(headway: Run, store: Path) -> None:
    with Store(store) as opened:
        span = opened.spans(TaskId("aa" * 16))[0]
        opened.write([structs.replace(span, task=TaskId("c" * 12 + "d" * 20))])
    shown = headway("tasks", "--store", store, "--limit", "1").out.splitlines()[1].split()[0]
    assert shown == "c" * 13
    assert headway("explain", shown, "--store", store).code == 0


def test_a_machine_gets_a_document(headway: Run, store: Path) -> None:
    document = json.loads(headway("tasks", "--store", store, "--json").out)
    assert document["schema"] == "headway.tasks/1"
    assert [task["task"] for task in document["tasks"]] == ["cc" * 16, "bb" * 16, "aa" * 16]


def test_no_store_yet_says_what_to_start(headway: Run, tmp_path: Path) -> None:
    missing = tmp_path / "none" / "s.db"
    ran = headway("tasks", "--store", missing)
    assert ran.code == 1
    assert ran.out == ""
    assert "Nothing is recorded yet" in ran.err
    assert "headway serve" in ran.err
    assert not missing.parent.exists()


def test_an_empty_store_says_what_to_start(headway: Run, tmp_path: Path) -> None:
    Store(tmp_path / "s.db").close()
    ran = headway("tasks", "--store", tmp_path / "s.db")
    assert (ran.code, ran.out) == (1, "")
    assert "headway serve" in ran.err
    assert json.loads(headway("tasks", "--store", tmp_path / "s.db", "--json").out)["tasks"] == []


def test_help_has_an_example(headway: Run) -> None:
    assert "headway tasks --limit 5 --errors" in headway("tasks", "--help").out
