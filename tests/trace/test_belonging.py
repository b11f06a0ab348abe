from typing import get_args

import pytest
from msgspec import structs

from headway.core.span import ModelCall
from headway.core.task import Evidence, Identity, SessionId, TaskId
from headway.policy.headers import TASK_HEADER
from headway.trace.belonging import REMEDY, joined


def assigned(evidence: Evidence, confidence: float, *, opens_task: bool = False) -> ModelCall:
    return ModelCall(
        model="m",
        identity=Identity(
            task=TaskId("t"),
            session=SessionId("s"),
            evidence=evidence,
            confidence=confidence,
            opens_task=opens_task,
        ),
    )


def test_what_is_certain_needs_no_word() -> None:
    assert joined([assigned("new", 1.0, opens_task=True), assigned("tool_result", 1.0), ModelCall(model="m")]) == []


def test_what_was_inferred_is_counted_with_the_least_confidence() -> None:
    calls = [assigned("new", 1.0), assigned("hand_over", 0.7), assigned("sub_agent", 0.9), assigned("hand_over", 0.7)]
    (note,) = joined(calls)
    assert note == (
        "Joined to this task by inference, 70 % sure at least: 2 by words of an earlier answer; 1 by a prompt found in"
        f" an open tool call. {REMEDY}"
    )


def test_a_message_too_quick_for_a_person_is_an_inference() -> None:
    (note,) = joined([assigned("extends", 0.8)])
    assert note.startswith("Joined to this task by inference, 80 % sure at least: 1 by a history that goes on, but")


def test_that_a_person_opened_the_task_is_one_too() -> None:
    (note,) = joined([assigned("extends", 0.95, opens_task=True), assigned("tool_result", 1.0)])
    assert note.startswith("That a task of its own begins here is inferred, 95 % sure at least")


def test_the_way_to_be_certain_is_told_once() -> None:
    notes = joined([assigned("extends", 0.95, opens_task=True), assigned("hand_over", 0.7)])
    assert [note.count(REMEDY) for note in notes] == [0, 1]


def test_where_two_open_tasks_fit_it_is_that_which_is_told() -> None:
    call = assigned("tool_result", 0.5)
    assert call.identity is not None
    torn = structs.replace(call, identity=structs.replace(call.identity, rivals=1))
    (note,) = joined([torn, structs.replace(torn, identity=structs.replace(call.identity, rivals=2))])
    assert "1 by a history that another open task might go on with as well;" in note
    assert "1 by a history that 2 other open tasks might go on with as well." in note
    assert "altered" not in note


@pytest.mark.parametrize("evidence", get_args(Evidence))
def test_every_kind_of_evidence_has_words(evidence: Evidence) -> None:
    assert len(joined([assigned(evidence, 0.5)])) == 1


def test_the_way_to_be_certain_is_a_header_that_is_read() -> None:
    assert TASK_HEADER in REMEDY
