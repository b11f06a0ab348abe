"""Where the time of calls goes that broke off, and of those that no engine ever saw."""

import pytest
from findings import found, told
from msgspec import structs
from savings import levers, seconds
from tasks import call, step

from headway.core.span import ErrorType, ModelCall
from headway.trace.anatomy import dissect
from headway.trace.phases import Phase


@pytest.mark.parametrize("error", ["upstream_stalled", "upstream_closed", "client_gone"])
def test_an_engine_that_falls_silent_in_mid_answer_is_at_work_and_no_hop(error: str) -> None:
    spans = [structs.replace(call("a", 0, 2, marks=(0, 0.5, 1)), error=ErrorType(error))]
    assert dissect(spans).phases == {Phase.PREFILL: 0.5, Phase.DECODE: 0.5, Phase.MODEL: 1}
    assert "no hop" not in levers(spans)
    assert "hop-gaps" not in found(spans)


def test_a_caller_that_stops_reading_is_a_hop() -> None:
    spans = [structs.replace(call("a", 0, 2, marks=(0, 0.5, 1)), error=ErrorType("client_stalled"))]
    assert dissect(spans).phases[Phase.HOP] == 1


def test_a_refused_call_was_no_attempt_and_the_engines_log_knows_nothing_of_it() -> None:
    spans = [structs.replace(call("a", 0, 2, attempts=0), error=ErrorType("unknown_model"))]
    assert dissect(spans).phases == {Phase.HOP: 2}
    findings = found(spans)
    assert findings["failed-calls"].check == "Look at the gateway's log, and at the caller's, at that time."
    assert "hop-gaps" not in findings
    assert "no hop" not in levers(spans)


def test_the_gaps_beside_a_refused_call_are_hops() -> None:
    # 0 - 1 gap | a refused 1-2 | gap 2-4 | b 4-5, another question
    refused = structs.replace(call("a", 1, 2, "root", attempts=0), error=ErrorType("unknown_model"))
    spans = [step("root", 0, 5), told(refused, ("user", "this")), told(call("b", 4, 5, "root"), ("user", "that"))]
    assert dissect(spans).phases[Phase.HOP] == 4
    assert found(spans)["hop-gaps"].seconds == 3
    assert seconds(spans)["no hop"] == 3


def test_a_call_for_which_no_connection_was_had_is_a_failed_attempt_and_no_hop() -> None:
    made = call("a", 0, 2)
    assert isinstance(made.work, ModelCall)
    work = structs.replace(made.work, replica="r0")
    spans = [structs.replace(made, work=work, error=ErrorType("upstream_connect"))]
    anatomy = dissect(spans)
    assert anatomy.phases == {Phase.RETRY: 2}
    assert not any("unsplit" in note for note in anatomy.unknowns)
    finding = found(spans)["failed-calls"]
    assert finding.title.startswith("1 of 1 model call failed (upstream_connect)")
    assert finding.evidence[0] == "Failed: a at r0."
    assert finding.check.startswith("Look at the gateway's log"), "no engine knows of it"
    assert "retries" not in found(spans)
    assert levers(spans) == {}
