from tasks import call, human, step, tool

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
