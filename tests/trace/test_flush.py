from hypothesis import given
from hypothesis import strategies as st
from tasks import step, tool

from headway.core.span import Span
from headway.trace.flush import ended_by_flush
from headway.trace.sources.fields import flush as of_sources
from headway.trace.study import study

moments = st.sampled_from([0.0, 0.002, 1.0, 2.0, 3.0, 4.0, 8.994, 8.997, 9.0])
leaves = st.lists(st.tuples(moments, moments).map(sorted), max_size=9)


@given(leaves)
def test_sources_and_the_path_judge_alike(bounds: list[list[float]]) -> None:
    spans: list[Span] = [step("root", 0, 9), *(tool(f"t{i}", a, b, "root") for i, (a, b) in enumerate(bounds))]
    assert study(spans).flushed == of_sources.flushed(spans)


def test_four_that_started_apart_and_ended_together_were_ended_by_a_flush() -> None:
    together = [(0.0, 9.0), (1.0, 8.997), (2.0, 9.0), (3.0, 9.0)]
    assert ended_by_flush(together, 9.0)
    assert not ended_by_flush(together[1:], 9.0), "three may do so by chance"
    assert not ended_by_flush([(0.001 * i, 9.0) for i in range(9)], 9.0), "begun together, they were cut off together"
    assert not ended_by_flush([*together, *[(0.0, 1.0)] * 5], 9.0), "most ended by themselves"
    assert not ended_by_flush([], 0.0)
