from findings import found
from tasks import call, step, tool

#  root 0-10: a 0-2 | 2-5 nothing | b 5-9 (sent at 5.5) | 9-10 nothing
GAPS = [step("root", 0, 10), call("a", 0, 2, "root"), call("b", 5, 9, "root", marks=(5.5, 6, 9))]


def test_time_between_recorded_work() -> None:
    # 3 s before b, half a second of b before it was sent, 1 s at the end
    finding = found(GAPS)["hop-gaps"]
    assert finding.seconds == 4.5
    assert finding.confidence == "certain"
    assert finding.evidence[1] == "3.50 s at 2.00 s, after a and before b."
    assert finding.evidence[2] == "1.00 s at 9.00 s, after b and to its end."
    assert finding.spans == ("a", "b")


def test_a_gap_says_which_step_of_the_agent_it_lies_in() -> None:
    spans = [*GAPS, step("outer", 2, 5, "root"), step("parse", 2.5, 5, "outer"), step("log", 2, 2.1, "root")]
    assert found(spans)["hop-gaps"].evidence[1] == "3.50 s at 2.00 s, after a and before b, in parse."


def test_work_whose_end_is_not_known_may_have_filled_the_gap() -> None:
    # only the second at the end is left
    assert found([*GAPS, tool("t", 2, None, "root")])["hop-gaps"].seconds == 1
    assert found([*GAPS, tool("t", 3, 2.5, "root")])["hop-gaps"].seconds == 1


def test_gaps_that_do_not_matter() -> None:
    spans = [step("root", 0, 10), call("a", 0, 5, "root"), tool("t", 5.1, 7, "root"), call("b", 7.2, 10, "root")]
    assert "hop-gaps" not in found(spans)


def test_a_root_that_was_made_may_cover_two_things_that_have_nothing_to_do_with_each_other() -> None:
    assert found([call("a", 0, 2), call("b", 5, 9)])["hop-gaps"].confidence == "possible"


def test_times_of_messages_are_less_sure() -> None:
    assert found(GAPS, "messages")["hop-gaps"].confidence == "likely"


def test_waits_that_a_source_does_not_keep_are_not_known() -> None:
    assert "hop-gaps" not in found(GAPS, "durations")
    assert "hop-gaps" not in found(GAPS, "none")


def test_a_trace_without_a_model_is_nobody_s_agent() -> None:
    assert "hop-gaps" not in found([step("root", 0, 10), tool("t", 0, 2, "root")])
