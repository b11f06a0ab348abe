from accounts import accounted
from findings import broken
from msgspec.structs import replace
from tasks import call

from headway.app.report.headline import headline
from headway.app.report.measured import everything, of_span
from headway.core.span import HumanWait, ModelCall, Retrieval, Span, Step, ToolUse, Work
from headway.core.task import Identity, SessionId, SpanId, TaskId
from headway.core.usage import EngineTimings
from headway.trace.anatomy import Anatomy, dissect
from headway.trace.findings import Finding, findings
from headway.trace.levers import Lever
from headway.trace.path import Phase
from headway.trace.sources.verdict import judge


def span(work: Work) -> Span:
    return Span(task=TaskId("t"), id=SpanId("s"), parent=None, name="n", start=0.0, end=1.0, work=work)


def test_one_sentence_says_what_the_user_waited_for(anatomy: Anatomy) -> None:
    assert headline(accounted(anatomy)) == (
        "38.20 s end to end, 73 % of it decode, over 3 model calls one after another (4 in all); "
        "the user saw the first output after 26.10 s, though the last call began to answer within 0.90 s."
    )


def test_what_would_save_most_and_what_is_found_of_unsplit_time_are_said(
    anatomy: Anatomy, levers: tuple[Lever, ...]
) -> None:
    best = levers[0]
    assert headline(accounted(anatomy, levers)).endswith(
        f" within 0.90 s. What would save most: {best.name}, {best.seconds:.2f} s ({best.share * 100:.1f} %)."
    )
    unsplit = replace(anatomy, e2e=10.0, phases={Phase.MODEL: 9.0, Phase.TOOL: 1.0})
    writing = Finding(
        name="writing-dominates",
        title="Writing takes about 85 %.",
        seconds=8.5,
        confidence="likely",
        evidence=(),
        check="",
        remedy="",
    )
    found = replace(accounted(unsplit), findings=(writing,))
    assert "90 % of it model time (writing takes about 85.0 % of the whole), over 3 model calls" in headline(found)
    untimed = replace(found, verdict=replace(found.verdict, timing="none"))
    assert headline(untimed) == "4 model calls; how long anything took is not in this record. Writing takes about 85 %."
    laid = replace(found, verdict=replace(found.verdict, timing="durations"), findings=())
    assert headline(laid) == "4 model calls; when things happened is not in this record."


def test_what_is_known_of_a_record_without_durations_is_said_and_nothing_twice(anatomy: Anatomy) -> None:
    flushed = accounted(anatomy)
    (said,) = (one for one in findings([], judge([], "made", "none")) if one.name == "no-times")
    flushed = replace(flushed, verdict=replace(flushed.verdict, timing="none", extent=17.173), findings=(said,))
    assert headline(flushed) == "4 model calls in a record of 17.17 s, which does not tell how long each of them took."
    alone = replace(flushed, anatomy=replace(anatomy, calls=1))
    assert headline(alone) == "1 model call in a record of 17.17 s, which does not tell how long it took."


def test_one_call_needs_no_comparison(anatomy: Anatomy) -> None:
    one = replace(anatomy, n=1, calls=1, e2e=2.0, phases={Phase.PREFILL: 1.5, Phase.DECODE: 0.5}, task_ttft=1.5)
    assert headline(accounted(one)) == (
        "2.000 s end to end, 75 % of it prefill, over 1 model call; the user saw the first output after 1.500 s."
    )


def test_what_is_unknown_is_said(anatomy: Anatomy) -> None:
    unknown = replace(anatomy, task_ttft=None, calls=3)
    assert headline(accounted(unknown)).endswith(
        "one after another; when the user saw the first output is unknown, "
        "and the last call began to answer within 0.90 s."
    )
    nothing = replace(anatomy, n=0, calls=0, e2e=0.0, phases={}, task_ttft=None, last_call_ttft=None)
    assert headline(accounted(nothing)) == (
        "0.000 s end to end, with no model call on the critical path; when the user saw the first output is unknown."
    )


def test_every_span_says_how_it_was_measured() -> None:
    sure = Identity(task=TaskId("t"), session=SessionId("s"), evidence="hand_over", confidence=0.8)
    timings = EngineTimings(prefill_tokens=1, prefill_seconds=1.0, decode_tokens=1, decode_seconds=1.0)
    assert of_span(span(ToolUse(name="x", inferred=True))).startswith("Inferred: the gap")
    assert of_span(span(ToolUse(name="x"))) == of_span(span(Retrieval())) == "Timed where it ran."
    assert "its parts" in of_span(span(Step()))
    assert "person" in of_span(span(HumanWait()))
    assert of_span(span(ModelCall(model="m"))).endswith("not split.")
    assert "engine's own prefill" in of_span(span(ModelCall(model="m", engine=timings)))
    assert of_span(span(ModelCall(model="m", first_token=1.0, identity=sure))) == (
        "Timed at the gateway: request sent, first token, last token. Assigned to this task by hand over (80% sure)."
    )


def test_every_phase_of_the_task_is_accounted_for(anatomy: Anatomy) -> None:
    names = [name for name, _ in everything(anatomy)]
    assert names[:4] == ["E2E", "N", "critical path", "hop"]
    assert {"queue", "prefill", "decode", "tool", "retrieval", "levers", "cost"} <= set(names)
    assert "human" not in names
    assert all(text.endswith(".") for _, text in everything(anatomy))


def test_a_task_that_ended_in_a_failure_says_so() -> None:
    failed = broken(call("a", 0, 2), "http_403")
    assert headline(accounted(dissect([failed]))) == (
        "The last call failed (http_403), so the user saw no answer. "
        "2.000 s end to end, 100 % of it model time that cannot be split, over 1 model call."
    )
    broken_off = broken(call("a", 0, 2, marks=(0, 0.5, 1)), "upstream_closed")
    assert headline(accounted(dissect([broken_off]))).startswith(
        "The answer broke off (upstream_closed): the user saw the first output after 0.500 s, the last after 1.000 s,"
        " then no more. 2.000 s end"
    )


def test_of_a_task_that_failed_no_change_is_named_that_would_save_most(
    anatomy: Anatomy, levers: tuple[Lever, ...]
) -> None:
    assert "What would save most" in headline(accounted(anatomy, levers))
    failed = dissect([broken(call("a", 0, 2, marks=(0, 0.5, 2)), "upstream_closed")])
    assert "What would save most" not in headline(accounted(failed, levers))


def test_a_call_that_no_engine_was_asked_for_was_refused_and_did_not_fail() -> None:
    refused = broken(call("a", 0, 0.001, attempts=0), "unknown_model")
    assert headline(accounted(dissect([refused]))).startswith("The last call was refused (unknown_model), so the user")
