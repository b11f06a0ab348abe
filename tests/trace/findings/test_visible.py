from findings import found
from msgspec import structs
from tasks import T0, call, tool

from headway.core.span import ModelCall, Span

#  a 0-5 asks for a tool, t 5-9, b 9-12 streams from 9.5: the user sees the first text after 9.5 s
LOOP = [call("a", 0, 5, asks=("1",)), tool("t", 5, 9, by="a"), call("b", 9, 12, marks=(9, 9.5, 12))]


def test_silence_before_an_answer_that_streams_at_once() -> None:
    finding = found(LOOP)["late-first-text"]
    assert finding.seconds == 9
    assert finding.confidence == "certain"
    assert finding.title.startswith("The user sees nothing for 9.50 s (79 % of E2E)")
    assert "after 500 ms" in finding.title
    assert finding.evidence[1] == "Before that text: model 5.00 s, tool 4.00 s, prefill 500 ms, in 2 calls."


def saying(span: Span, at: float) -> Span:
    assert isinstance(span.work, ModelCall)
    return structs.replace(span, work=structs.replace(span.work, first_visible=T0 + at))


def test_text_before_the_answer_may_have_been_shown() -> None:
    spoke = [saying(LOOP[0], 1), *LOOP[1:]]
    assert found(spoke)["late-first-text"].confidence == "possible"
    planned = [saying(call("a", 0, 5), 1), *LOOP[1:]]
    assert found(planned)["late-first-text"].confidence == "likely"


def test_one_call_is_what_its_dashboard_shows() -> None:
    assert "late-first-text" not in found([call("b", 0, 12, marks=(0, 9.5, 12))])


def test_an_answer_that_starts_late_itself_is_no_hidden_silence() -> None:
    # the last call's own TTFT is 4 of the 9 s
    spans = [call("a", 0, 5, asks=("1",)), call("b", 5, 12, marks=(5, 9, 12))]
    assert "late-first-text" not in found(spans)


def test_a_second_of_silence_is_not_felt() -> None:
    spans = [call("a", 0, 1, asks=("1",)), call("b", 1, 3, marks=(1, 1.1, 3))]
    assert "late-first-text" not in found(spans)


def test_where_the_first_text_was_not_timed_nothing_is_said() -> None:
    assert "late-first-text" not in found([*LOOP[:2], call("b", 9, 12)])
    assert "late-first-text" not in found(LOOP, "none")
