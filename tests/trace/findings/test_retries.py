import pytest
from findings import broken, found, told
from msgspec import structs
from tasks import T0, call, step, tool

from headway.core.span import ErrorType, ModelCall, Setback, Span
from headway.core.usage import Usage

ASKED = ("user", "What is it?")


def test_a_failed_call_and_the_same_call_after_it() -> None:
    # 3 s failed, 1 s of waiting, then the call that worked
    first = broken(told(call("a", 0, 3, "root", usage=Usage(input_tokens=500, output_tokens=0)), ASKED))
    spans = [step("root", 0, 9), first, told(call("b", 4, 9, "root"), ASKED)]
    finding = found(spans)["retries"]
    assert finding.seconds == pytest.approx(4)
    assert finding.tokens == 500
    assert finding.confidence == "certain"
    assert finding.spans == ("a", "b")
    assert finding.title == "1 attempt failed and had to be made again: 4.00 s (44 % of E2E)."
    assert finding.evidence[0] == "Failed and followed by the same call: a; errors: timeout."


def test_the_money_of_the_attempt_that_failed() -> None:
    spans = [broken(call("a", 0, 3, usage=Usage(input_tokens=1000, output_tokens=500, cache_read=0))), call("b", 3, 6)]
    assert found(spans, money=True)["retries"].cost == 2000  # 1,000 at 1 USD and 500 at 2 USD per million


def test_without_prompts_a_call_as_long_is_taken_for_the_same() -> None:
    spans = [
        broken(call("a", 0, 3, usage=Usage(input_tokens=1000))),
        call("b", 3, 6, usage=Usage(input_tokens=1001)),
    ]
    assert found(spans)["retries"].confidence == "likely"
    longer = call("b", 3, 6, usage=Usage(input_tokens=1500))
    assert "retries" not in found([spans[0], longer])


def test_another_question_is_no_retry() -> None:
    spans = [broken(told(call("a", 0, 3), ASKED)), told(call("b", 3, 6), ("user", "And this?"))]
    assert "retries" not in found(spans)


def test_a_call_beside_the_failed_one_is_no_retry() -> None:
    assert "retries" not in found([broken(call("a", 0, 3)), call("b", 1, 6)])


def test_a_call_that_asked_for_tools_before_it_broke_did_not_fail_for_nothing() -> None:
    spans = [broken(call("a", 0, 3, asks=("1",))), tool("t", 3, 4, by="a"), call("b", 4, 6)]
    assert "retries" not in found(spans)


def test_attempts_under_one_span_are_told_though_not_how_long_they_took() -> None:
    finding = found([call("a", 0, 3, attempts=3)])["retries"]
    assert (finding.seconds, finding.title) == (None, "2 attempts failed and had to be made again.")
    assert "2 times in all" in finding.evidence[0]


def test_how_often_it_was_sent_is_not_known() -> None:
    assert "retries" not in found([call("a", 0, 3, attempts=None)])
    assert "retries" not in found([call("a", 0, 3, attempts=1)])


def test_a_failure_costs_no_seconds_where_there_are_no_times() -> None:
    spans = [broken(told(call("a", 0, 3), ASKED)), told(structs.replace(call("b", 3, 6)), ASKED)]
    assert found(spans, "none")["retries"].seconds is None


def moved(made: Span, start: float, end: float) -> Span:
    """A call that another replica served, after one had it from ``start`` to ``end``."""
    assert isinstance(made.work, ModelCall)
    lost = Setback(replica="r0", error=ErrorType("upstream_closed"), start=T0 + start, end=T0 + end)
    return structs.replace(made, work=structs.replace(made.work, setbacks=(lost,), replica="r1"))


def test_an_attempt_that_the_gateway_timed_is_told_with_its_replica_error_and_seconds() -> None:
    # 0.5 on the way, r0 from 0.5 to 2.5, r1 from 2.5: 2 s of 10 are the failed attempt's
    spans = [moved(call("a", 0, 10, marks=(2.5, 4, 10), attempts=2), 0.5, 2.5)]
    finding = found(spans)["retries"]
    assert finding.seconds == pytest.approx(2)
    assert finding.title == "1 attempt failed and had to be made again: 2.00 s (20 % of E2E)."
    assert finding.evidence == ("a: upstream_closed at r0 after 2.00 s.",)
    assert "hop-gaps" not in found(spans), "it is no time between the parties"


def test_where_the_last_attempt_failed_too_it_is_counted() -> None:
    spans = [broken(moved(call("a", 0, 4, marks=(2.5, 2.5, 2.5), attempts=2), 0.5, 2.5), "upstream_closed")]
    assert found(spans)["retries"].title == "2 attempts failed, the last one too: 2.00 s (50 % of E2E)."


def test_a_chain_of_attempts_of_which_none_did_well() -> None:
    spans = [broken(told(call(name, at, at + 1), ASKED)) for name, at in (("a", 0), ("b", 1), ("c", 2))]
    assert found(spans)["retries"].title == "3 attempts failed, the last one too: 2.00 s (67 % of E2E)."


def test_no_lever_is_named_where_the_last_attempt_failed_too() -> None:
    failed = [broken(call("a", 0, 1)), broken(call("b", 2, 3))]
    assert "lever" not in found(failed)["retries"].remedy
    assert "(lever: no failed calls)" in found([*failed, call("c", 4, 5)])["retries"].remedy


def test_what_the_gateway_refused_is_in_no_engines_log() -> None:
    refused = broken(call("a", 0, 1, attempts=0), "rate_limited")
    assert "the gateway's log" in found([refused, call("b", 2, 3)])["retries"].check
    assert "the engine's log" in found([broken(call("a", 0, 1)), call("b", 2, 3)])["retries"].check


def test_where_the_last_attempt_failed_too_each_attempt_is_named() -> None:
    # r0 from 0.5 to 2.5, then r1 to the end
    spans = [broken(moved(call("a", 0, 10, attempts=2), 0.5, 2.5), "upstream_stalled")]
    finding = found(spans)["retries"]
    assert finding.title.startswith("2 attempts failed, the last one too")
    assert finding.evidence[-2:] == (
        "a: upstream_closed at r0 after 2.00 s.",
        "a, the last attempt: upstream_stalled at r1 after 7.50 s.",
    )


def test_where_every_try_of_the_caller_failed_the_last_is_named_too() -> None:
    tries = [broken(told(call(name, at, at + 1), ASKED)) for name, at in (("a", 0), ("b", 2))]
    finding = found(tries)["retries"]
    assert finding.title.startswith("2 attempts failed, the last one too")
    assert finding.evidence[-1] == "b, the last attempt: timeout after 1.00 s."
