from headway.core.span import ModelCall, Span, Step, ToolUse, Work
from headway.core.task import SpanId, TaskId
from headway.trace.sources.otel.finish import finished


def _span(name: str, start: float, end: float, work: Work) -> Span:
    return Span(task=TaskId("t"), id=SpanId(name), parent=SpanId("r"), name=name, start=start, end=end, work=work)


def test_tools_learn_who_asked_for_them_and_all_spans_their_session() -> None:
    spans = [_span("call", 0, 1, ModelCall(model="m")), _span("tool", 1, 2, ToolUse(name="ls"))]
    piece = finished(TaskId("t"), spans, "Why?", "s", ["First."])
    assert [span.session for span in piece.spans] == ["s", "s"]
    assert isinstance(piece.spans[1].work, ToolUse)
    assert piece.spans[1].work.issued_by == "call"
    assert (piece.timing, piece.title, piece.remarks[0]) == ("spans", "Why?", "First.")


def test_a_flush_is_told_first_and_leaves_no_times() -> None:
    spans = [_span(f"s{i}", i, 9, Step()) for i in range(5)]
    piece = finished(TaskId("t"), spans, None, None, ["First."])
    assert (piece.timing, piece.spans[0].session) == ("none", None)
    assert piece.remarks[0].startswith("All spans end in the moment")
