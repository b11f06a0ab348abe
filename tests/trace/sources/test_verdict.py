from msgspec import structs
from tasks import call, human, step, tool

from headway.core.usage import Usage
from headway.trace.facts import facts_of
from headway.trace.sources.verdict import judge


def test_a_task_whose_only_call_never_ended_took_an_unknown_time_and_not_none() -> None:
    spans = [step("root", 0, 0), call("a", 0, None, "root"), human("user", -20, 0)]
    verdict = judge(spans, "any", "spans")
    assert not verdict.timed
    assert verdict.about("times").how == (
        "nothing in the record tells how long anything took, so nothing is said about seconds"
    )
    facts = facts_of(spans, verdict)
    assert (facts.e2e, facts.n) == (None, 1)


def test_one_end_among_those_that_are_missing_tells_a_time() -> None:
    assert judge([step("root", 0, 3), call("a", 0, None, "root")], "any", "spans").timed
    assert judge([call("a", 0, None), tool("t", 1, 2)], "any", "messages").timed


def test_what_began_and_ended_at_once_took_no_time() -> None:
    assert judge([call("a", 0, 0)], "any", "spans").timed


def test_calls_that_took_no_time_at_all_were_not_timed() -> None:
    # a session whose times were cut out when it was published: every message has the same one
    spans = [step("root", 0, 3), call("a", 1, 1, "root"), tool("t", 1, 2, "root"), call("b", 2, 2, "root")]
    assert not judge(spans, "any", "messages").timed
    assert judge(spans, "any", "spans").timed
    assert judge([*spans, call("c", 2, 2.5, "root")], "any", "messages").timed


def test_a_span_recorded_twice_counts_once_and_is_told() -> None:
    bare = call("a", 0, 2)
    fuller = call("a", 0, 2, marks=(0, 1, 2), usage=Usage(input_tokens=5, output_tokens=2))
    verdict = judge([fuller, bare, bare, call("b", 2, 3)], "any", "spans")
    assert [(verdict.about(one).known, verdict.about(one).of) for one in ("ttft", "tokens")] == [(1, 2), (1, 2)]
    assert verdict.remarks == ("2 records repeated the id of another span: the fullest of each was kept.",)


def test_a_tool_timed_by_the_agent_and_guessed_by_the_gateway_is_one() -> None:
    spans = [tool("t", 0, 1, call_id="x"), tool("u", 0, 2, call_id="x", inferred=True)]
    assert (judge(spans, "any", "spans").about("tools").known, judge(spans, "any", "spans").about("tools").of) == (1, 1)


def test_of_a_record_without_ends_it_is_known_over_how_long_it_runs() -> None:
    assert judge([step("root", 0, None), call("a", 1, None), call("b", 4, None)], "any", "spans").extent == 4
    assert judge([step("root", 0, 3), call("a", 1, 3)], "any", "spans").extent is None
    assert judge([call("a", 1, None)], "any", "spans").extent is None


def test_what_spans_carry_with_them_is_said_of_the_task() -> None:
    first = structs.replace(call("a", 0, 2), remarks=("Times were mended.",))
    assert judge([first, call("b", 2, 3)], "any", "spans", ["Given."]).remarks == ("Given.", "Times were mended.")
