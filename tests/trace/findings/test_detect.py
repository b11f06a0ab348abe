from findings import ranking, records
from hypothesis import given
from hypothesis import strategies as st
from savings import priced

from headway.core.span import Span
from headway.trace.findings import findings
from headway.trace.sources.source import Timing
from headway.trace.sources.verdict import judge
from headway.trace.study import study

TIMINGS: list[Timing] = ["spans", "messages", "durations", "none"]


@given(records(), st.sampled_from(TIMINGS))
def test_any_record_gives_findings_that_keep_to_it(spans: list[Span], timing: Timing) -> None:
    e2e = study(spans).e2e
    ids = {span.id for span in spans}
    timed = timing in {"spans", "messages"}
    for finding in findings(spans, judge(spans, "any", timing), prices=priced):
        assert set(finding.spans) <= ids
        assert len(set(finding.spans)) == len(finding.spans)
        assert finding.seconds is None or (timed and 0 <= finding.seconds <= e2e)
        assert finding.tokens is None or finding.tokens >= 0
        assert finding.title.endswith(".")
        assert finding.evidence
        assert finding.check
        assert finding.remedy


def test_no_spans_are_no_findings() -> None:
    assert ranking([]) == []
