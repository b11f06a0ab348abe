"""Who wrote the user message that follows an answer?"""

import pytest

from headway.policy.continuation import author

LOG = "FAILED tests/test_x.py::test_y - assert 1 == 2\n" * 40


@pytest.mark.parametrize(
    ("message", "gap", "machine"),
    [
        ("yes", 0.4, True),  # nobody answers within a second
        ("yes", 1.5, False),  # 1 s to react and 0.2 s to type
        ("Please book the earlier of the two, in the morning.", 3.0, True),  # 51 characters take 3.4 s and 1 s
        ("Please book the earlier of the two, in the morning.", 5.0, False),
        (LOG, 3.9, True),  # pasting takes 3 s and 1 s
        (LOG, 4.1, False),
        ("<returncode>0</returncode>", 60.0, True),
        ("Observation: two flights", 60.0, True),
        ("OBSERVATION:\nok", 60.0, True),
        ("[Tool output] ok", 60.0, True),
        ("Command output: ok", 60.0, True),
        ("Traceback (most recent call last):", 60.0, True),
        ("exit code 1", 60.0, True),
        ("Observe the birds with me", 60.0, False),
        ("<b>Bold</b> move", 60.0, False),
        ("", 60.0, False),
    ],
)
def test_judgement_by_time_and_form(message: str, gap: float, machine: bool) -> None:
    assert author(message, gap, None).machine is machine


def test_a_frame_that_was_surely_a_machines_marks_the_slow_ones_after_it() -> None:
    first = author("STATUS ok, 3 files", 0.1, None)
    assert author("STATUS ok, tests took long", 90.0, first.opener).machine
    assert not author("Thank you!", 90.0, first.opener).machine


def test_a_quick_paste_marks_nothing_after_it() -> None:
    first = author("Please fix this:\n" + LOG, 2.0, None)
    assert first.machine
    assert first.opener is None
