from headway.core.span import Span, Step
from headway.core.task import SpanId, TaskId
from headway.trace.sources.fields.flush import flushed, without_times


def _spans(*bounds: tuple[float, float | None]) -> list[Span]:
    """A root over all, and a leaf for each pair of bounds."""
    last = max(end or start for start, end in bounds)
    root = Span(task=TaskId("t"), id=SpanId("r"), parent=None, name="r", start=0.0, end=last + 0.001, work=Step())
    return [
        root,
        *(
            Span(task=TaskId("t"), id=SpanId(f"s{i}"), parent=SpanId("r"), name="s", start=start, end=end, work=Step())
            for i, (start, end) in enumerate(bounds)
        ),
    ]


def test_spans_that_start_apart_and_end_together_were_flushed() -> None:
    assert flushed(_spans((0, 9), (2, 9.001), (4, 9.002), (6, 9.003)))


def test_a_chain_whose_last_ends_with_the_whole_was_not() -> None:
    assert not flushed(_spans((0, 1), (1, 3), (3, 4), (4, 9)))


def test_parallel_work_that_is_cut_off_together_was_not() -> None:
    assert not flushed(_spans((2, 9), (2, 9), (2, 9), (2.001, 9), (2.002, 9)))


def test_three_that_end_together_may_do_so_by_chance() -> None:
    assert not flushed(_spans((0, 9), (2, 9), (4, 9)))


def test_less_than_half_of_the_leaves_is_no_flush() -> None:
    assert not flushed(_spans((0, 9), (2, 9), (4, 9), (6, 9), (0, 1), (1, 2), (2, 3), (3, 4), (4, 5)))


def test_no_spans_were_not_flushed() -> None:
    assert not flushed([])
    assert not flushed(_spans((0, None), (1, None)))


def test_without_times_the_order_of_starts_is_kept_and_the_whole_is_told() -> None:
    spans, remark, extent = without_times(_spans((6, 9), (0.5, 9), (4, 9), (2, 9)))
    assert [span.id for span in spans] == ["r", "s1", "s3", "s2", "s0"]
    assert {(span.start, span.end) for span in spans} == {(0.0, 0.0)}
    assert "9.001 s lie between" in remark
    assert round(extent, 3) == 9.001
