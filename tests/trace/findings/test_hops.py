from findings import found
from msgspec import structs
from tasks import TASK, call, step, tool

from headway.core.span import ModelCall, Span
from headway.core.task import Identity, SessionId

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


def through_the_gateway(made: Span) -> Span:
    assert isinstance(made.work, ModelCall)
    identity = Identity(task=TASK, session=SessionId("s"), evidence="explicit", confidence=1.0)
    return structs.replace(made, work=structs.replace(made.work, identity=identity))


def test_a_gap_inside_the_gateway_s_own_span_is_the_gateway_s() -> None:
    # a 0-2 was sent at 1.5; b 2-10 had its last token at 7: 1.5 and 3 s are the gateway's, and no agent's
    spans = [call("a", 0, 2, marks=(1.5, 1.6, 2)), call("b", 2, 10, marks=(2, 3, 7))]
    finding = found([step("root", 0, 10), *map(through_the_gateway, spans)])["hop-gaps"]
    assert finding.title == (
        "For 4.50 s (45 % of E2E) neither a model nor a tool is at work; 4.50 s of it is the time of the gateway."
    )
    assert finding.evidence[1:] == (
        "3.00 s at 7.00 s, in the gateway, within b: after its last token.",
        "1.50 s at 0 ms, in the gateway, within a: before it was sent to the engine.",
    )
    assert "Instrument" not in finding.check
    assert "workers" in finding.remedy
    assert finding.confidence == "certain"
    assert finding.spans == ("a", "b")


def test_what_the_agent_and_the_gateway_took_one_after_the_other_is_told_apart() -> None:
    # as above, but half a second of the 3.5 before b's sending is the gateway's
    finding = found([GAPS[0], GAPS[1], through_the_gateway(GAPS[2])])["hop-gaps"]
    assert finding.seconds == 4.5
    assert finding.evidence[1] == "3.00 s at 2.00 s, after a and before b."
    assert finding.evidence[3] == "500 ms at 5.00 s, in the gateway, within b: before it was sent to the engine."
    assert "Instrument" in finding.check
    assert "processor" in finding.check
