import pytest
from findings import broken, found, ranking, told
from msgspec import structs
from tasks import T0, call, step, tool

from headway.core.span import Candidate, ErrorType, ModelCall, Receipt, Setback, Span
from headway.core.usage import Usage
from headway.trace.findings.errors import meaning


def at(made: Span, replica: str) -> Span:
    assert isinstance(made.work, ModelCall)
    return structs.replace(made, work=structs.replace(made.work, replica=replica))


def test_a_call_that_failed_is_named_with_its_error_what_that_means_and_what_to_do() -> None:
    finding = ranking([at(broken(call("a", 0, 2), "http_403"), "r0")])[0]
    assert finding.name == "failed-calls"
    assert finding.title == "1 of 1 model call failed (http_403), so the task has no answer: 2.00 s (100 % of E2E)."
    assert finding.evidence[0] == "Failed: a at r0."
    assert finding.evidence[1] == "http_403: the engine does not allow it with this key."
    assert "key" in finding.remedy
    assert finding.spans == ("a",)


def test_all_of_a_task_that_ended_in_a_failure_was_in_vain() -> None:
    # 4 s of a good call, 1 s of a tool, 0.05 s of a call that was refused: little, but it cost the answer
    spans = [call("a", 0, 4, asks=("1",)), tool("t", 4, 5, by="a"), broken(call("b", 5, 5.05), "http_429")]
    finding = ranking(spans)[0]
    assert finding.name == "failed-calls"
    assert finding.seconds == pytest.approx(5.05)
    assert "limit on requests" in " ".join(finding.evidence)


def test_an_answer_that_broke_off_was_seen_in_part() -> None:
    finding = found([broken(call("a", 0, 4, marks=(0, 1, 3)), "upstream_stalled")])["failed-calls"]
    assert "so the task has only part of an answer" in finding.title
    assert "--stall-seconds" in " ".join(finding.evidence)


def test_a_failure_on_the_way_costs_its_own_seconds() -> None:
    failed = broken(told(call("a", 0, 2), ("user", "first")))
    spans = [step("root", 0, 8), failed, told(call("b", 2, 8), ("user", "another"))]
    finding = found(spans)["failed-calls"]
    assert finding.seconds == pytest.approx(2)
    assert finding.title == "1 of 2 model calls failed (timeout): 2.00 s (25 % of E2E)."
    assert "whoever recorded" in finding.remedy, "the word is another's, so nothing is said of what it means"


def test_a_failure_that_was_made_good_is_a_retry_alone() -> None:
    again = [broken(call("a", 0, 3, usage=Usage(input_tokens=9))), call("b", 3, 6, usage=Usage(input_tokens=9))]
    assert "failed-calls" not in found(again)
    assert "failed-calls" not in found([call("a", 0, 3)])


@pytest.mark.parametrize(
    ("error", "what"),
    [
        ("upstream_timeout", "--first-byte-seconds"),
        ("http_429", "limit on requests"),
        ("http_418", "refused the request"),
        ("http_503", "the engine failed"),
    ],
)
def test_what_the_gateways_words_mean(error: str, what: str) -> None:
    found = meaning(error)
    assert found is not None
    assert what in found.what


def test_of_other_words_nothing_is_known() -> None:
    assert meaning("RateLimitError") is None


def test_all_tries_of_a_call_that_failed_to_the_end_count_and_the_title_and_the_figure_agree() -> None:
    # three tries of .1 s with .5 s between them: there never was an answer
    spans = [broken(call(name, at, at + 0.1), "upstream_closed") for name, at in (("a", 0), ("b", 0.6), ("c", 1.2))]
    finding = found(spans)["failed-calls"]
    assert finding.title == (
        "3 of 3 model calls failed (upstream_closed), so the task has no answer: 1.30 s (100 % of E2E)."
    )
    assert finding.seconds == pytest.approx(1.3)
    assert finding.spans == ("a", "b", "c")


def test_tries_in_vain_on_the_way_cost_their_seconds_and_the_pauses_between_them() -> None:
    failed = [broken(told(call(name, at, at + 1), ("user", "first"))) for name, at in (("a", 0), ("b", 3))]
    finding = found([*failed, told(call("c", 4, 10), ("user", "another"))])["failed-calls"]
    assert finding.seconds == pytest.approx(4)  # 1 + 2 of waiting + 1
    assert finding.title == "2 of 3 model calls failed (timeout): 4.00 s (40 % of E2E)."


def test_another_replica_is_advised_where_just_one_had_the_calls() -> None:
    alone = found([at(broken(call("a", 0, 2), "upstream_closed"), "r0")])["failed-calls"]
    assert alone.remedy == (
        "See in the engine's log why. Have another replica ready for its calls (--upstream may be repeated)."
    )
    made = at(broken(call("a", 0, 2), "upstream_closed"), "r1")
    assert isinstance(made.work, ModelCall)
    before = Setback(replica="r0", error=ErrorType("upstream_closed"), start=T0, end=T0 + 1)
    moved = structs.replace(made, work=structs.replace(made.work, setbacks=(before,), attempts=2))
    assert found([moved])["failed-calls"].remedy == "See in the engine's log why."
    both = [at(broken(call("a", 0, 2), "http_500"), "r0"), at(broken(call("b", 3, 4), "http_500"), "r1")]
    assert found(both)["failed-calls"].remedy == "See in the engine's log why."


def ready(made: Span, *replicas: str) -> Span:
    """A call for which these replicas stood ready."""
    assert isinstance(made.work, ModelCall)
    candidates = tuple(Candidate(name, 0) for name in replicas)
    receipt = Receipt(policy="p", winner=replicas[0], reason="free", candidates=candidates)
    return structs.replace(made, work=structs.replace(made.work, route=receipt))


def test_of_an_answer_that_had_begun_the_second_try_is_the_agents_and_no_other_replica_is_missing() -> None:
    begun = at(broken(call("a", 0, 2, marks=(0, 1, 2)), "upstream_closed"), "r0")
    again = (
        "See in the engine's log why. An answer that has begun is never sent to another replica, since the user may"
        " have seen it: let the agent make the call again when its stream breaks off."
    )
    another = " Have another replica ready for its calls (--upstream may be repeated)."
    assert found([ready(begun, "r0", "r1")])["failed-calls"].remedy == again
    assert found([ready(begun, "r0")])["failed-calls"].remedy == again + another
    assert found([begun])["failed-calls"].remedy == again, "who stood ready is not known"


def test_where_another_replica_stood_ready_none_is_missing() -> None:
    failed = at(broken(call("a", 0, 2), "http_500"), "r0")
    assert found([ready(failed, "r0", "r1")])["failed-calls"].remedy == "See in the engine's log why."
    assert "Have another replica" in found([ready(failed, "r0")])["failed-calls"].remedy


def test_what_no_engine_was_asked_for_was_refused_and_did_not_fail() -> None:
    refused = broken(told(call("a", 0, 1, attempts=0), ("user", "this")), "unknown_model")
    finding = found([refused])["failed-calls"]
    assert finding.title.startswith("1 of 1 model call was refused (unknown_model), so the task has no answer")
    assert finding.evidence[0] == "Refused: a."
    both = found([refused, broken(told(call("b", 2, 4), ("user", "that")), "http_500")])["failed-calls"]
    assert both.title.startswith("1 of 2 model calls was refused and 1 failed (http_500, unknown_model)")
    assert both.evidence[:2] == ("Refused: a.", "Failed: b.")
