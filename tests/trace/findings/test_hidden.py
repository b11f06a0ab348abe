from findings import broken, found, ranking
from msgspec import structs
from tasks import call, human, step, tool

from headway.core.span import ModelCall, Receipt, Span


def test_calls_whose_first_token_was_not_timed() -> None:
    finding = found([call("a", 0, 4), tool("t", 4, 5), call("b", 5, 8, marks=(5, 6, 8))])["model-time-unsplit"]
    assert finding.title.startswith("4.00 s of model time (50 % of E2E) cannot be split")
    assert finding.spans == ("a",)
    assert finding.seconds is None  # it is not known to cost anything


def test_calls_whose_first_token_was_timed_hide_nothing() -> None:
    assert "model-time-unsplit" not in found([call("a", 0, 4, marks=(0, 1, 4))])


def through_the_gateway(made: Span, *, stream: bool) -> Span:
    assert isinstance(made.work, ModelCall)
    receipt = Receipt(policy="least-loaded", winner="r0", reason="idle")
    return structs.replace(made, work=structs.replace(made.work, route=receipt, stream=stream))


def test_calls_that_the_gateway_saw_are_told_what_would_split_them() -> None:
    whole = found([through_the_gateway(call("a", 0, 4), stream=False)])["model-time-unsplit"]
    assert '"stream": true' in whole.remedy
    assert "Headway's gateway" not in whole.remedy, "they went through it"
    packed = found([through_the_gateway(call("a", 0, 4), stream=True)])["model-time-unsplit"]
    assert "engine streams where it is asked to" in packed.remedy
    assert "Headway's gateway" in found([call("a", 0, 4)])["model-time-unsplit"].remedy


def test_a_call_that_failed_has_nothing_to_be_split_into() -> None:
    assert "model-time-unsplit" not in found([broken(call("a", 0, 4))])


def test_spans_that_never_ended() -> None:
    finding = found([step("root", 0, 9), call("a", 0, 4, "root"), tool("t", 4, None, "root")])["unfinished-spans"]
    assert finding.spans == ("t",)
    assert "unfinished-spans" not in found([call("a", 0, 4), human("h", 4, None)])
    told = [step("root", 0, 9), call("a", 0, None, "root"), tool("t", 0, 4, "root")]
    assert "unfinished-spans" not in found(told, "durations"), "the record tells how long some took, and no ends"


def test_ends_that_a_flush_made() -> None:
    flushed = [step("root", 0, 9), call("a", 0, 9, "root"), tool("t", 2, 9, "root"), tool("u", 1, 9, "root")]
    flushed.append(tool("v", 3, 9, "root"))
    finding = found(flushed)["flushed-ends"]
    assert finding.spans == ("a", "u", "t", "v")
    assert finding.title.startswith("4 of 4 spans end together with the task")


def test_of_flushed_spans_no_seconds_are_told() -> None:
    flushed = [step("root", 0, 9), *(tool(f"t{i}", i, 9, "root") for i in range(3)), call("a", 3, 9, "root")]
    assert [one.name for one in ranking(flushed)] == ["flushed-ends"]


def test_spans_that_never_ended_were_ended_by_no_flush() -> None:
    pending = [step("root", 0, 9), call("a", 0, 9, "root"), tool("t", 9, None, "root"), tool("u", 9, None, "root")]
    assert "flushed-ends" not in found(pending)
    assert found(pending)["unfinished-spans"].spans == ("t", "u")


def test_spans_that_end_when_they_are_done() -> None:
    assert "flushed-ends" not in found([step("root", 0, 9), call("a", 0, 4, "root"), tool("t", 4, 9, "root")])


def test_a_source_without_times() -> None:
    assert "no-times" in found([call("a", 0, 0)], "none")
    assert "made by hand" in found([call("a", 0, 2)], "durations")["no-times"].title
    assert "no-times" not in found([call("a", 0, 2)])
