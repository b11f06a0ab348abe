from msgspec import structs
from savings import levers, seconds, usage
from tasks import T0, call, step, tool

from headway.core.span import ErrorType, ModelCall, Setback
from headway.core.usage import EngineTimings


def test_no_queue() -> None:
    # sent at 0, first token at 2, of which the engine prefilled .5
    engine = EngineTimings(prefill_tokens=5, prefill_seconds=0.5, decode_tokens=5, decode_seconds=1)
    assert seconds([call("a", 0, 3, marks=(0, 2, 3), engine=engine)])["no queue"] == 1.5


def test_failed_calls_cost_their_time_and_the_pause_after_it() -> None:
    failed = structs.replace(call("a", 0, 2, usage=usage(100, 10)), error=ErrorType("upstream_closed"))
    found = levers([failed, call("b", 2.5, 4)])["no failed calls"]
    assert (found.seconds, found.tokens, found.cost) == (2.5, 110, 120)


def test_a_failure_that_ended_the_task_saves_nothing_for_without_it_the_call_would_take_its_time() -> None:
    refused = structs.replace(call("b", 2, 3), error=ErrorType("http_403"))
    assert "no failed calls" not in levers([refused])
    assert "no failed calls" not in levers([call("a", 0, 2), refused])


def test_attempts_that_failed_under_one_span_are_saved_but_their_tokens_are_unknown() -> None:
    # r0 had it from 0.5 to 2.5; from then on r1 served it
    made = call("a", 0, 6, marks=(2.5, 4, 6), attempts=2)
    assert isinstance(made.work, ModelCall)
    lost = Setback(replica="r0", error=ErrorType("upstream_closed"), start=T0 + 0.5, end=T0 + 2.5)
    found = levers([structs.replace(made, work=structs.replace(made.work, setbacks=(lost,)))])
    assert (found["no failed calls"].seconds, found["no failed calls"].tokens) == (2, None)
    assert found["no hop"].seconds == 0.5


def test_what_would_be_printed_as_nothing_is_no_lever() -> None:
    assert levers([structs.replace(call("a", 0, 0.0004, marks=(0.0002, 0.0003, 0.0004)))]) == {}


def test_what_may_have_been_work_that_never_ended_is_no_hop() -> None:
    # a tool began at 1 and was never seen to end; 0.5 s before the first call are the agent's own
    spans = [step("root", 0, 8), call("a", 0.5, 1, "root"), tool("t", 1, None, "root"), call("b", 5, 8, "root")]
    assert seconds(spans)["no hop"] == 0.5
    backwards = [span if span.id != "t" else tool("t", 2, 1, "root") for span in spans]
    assert seconds(backwards)["no hop"] == 1.5  # and the second before it began
