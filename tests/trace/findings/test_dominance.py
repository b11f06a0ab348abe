from findings import found, told, used
from tasks import call, span, step, tool

from headway.core.span import Retrieval, Span
from headway.core.usage import Usage


def test_tools_that_take_most_of_the_path() -> None:
    # model 0-1 and 8-10, tool 1-8: 7 of 10 s
    spans = [call("a", 0, 1), used(tool("t", 1, 8), "search"), call("b", 8, 10)]
    finding = found(spans)["tools-dominate"]
    assert finding.seconds == 7
    assert finding.confidence == "certain"
    assert finding.spans == ("t",)
    assert finding.title.startswith("Tools take 70 % of the 10.0 s, the model 30 %")
    assert "execute_tool search 7.00 s" in finding.evidence[1]


def test_retrievals_count_as_tools() -> None:
    spans = [span("r", 0, 6, Retrieval()), call("a", 6, 10)]
    assert found(spans)["tools-dominate"].seconds == 6


def test_a_model_that_takes_most_is_rightly_blamed() -> None:
    assert "tools-dominate" not in found([call("a", 0, 6), tool("t", 6, 10), call("b", 10, 12)])


def test_tools_off_the_path_do_not_dominate() -> None:
    # both run beside the call, which the task waits for
    spans = [step("root", 0, 10), call("a", 0, 10, "root"), tool("t", 0, 9, "root"), tool("u", 0, 9, "root")]
    assert "tools-dominate" not in found(spans)


def test_tools_that_take_little_more_than_the_model() -> None:
    assert "tools-dominate" not in found([call("a", 0, 4), tool("t", 4, 10), call("b", 10, 11)])


def test_gaps_taken_for_tools_are_less_sure() -> None:
    spans = [call("a", 0, 1), tool("t", 1, 8, inferred=True), call("b", 8, 10)]
    assert found(spans)["tools-dominate"].confidence == "likely"
    assert found(spans)["tools-dominate"].title.startswith("What lies between the calls takes 70 %")
    assert "agent's own code" in found(spans, "messages")["tools-dominate"].check


def test_without_times_nobody_is_blamed() -> None:
    spans = [call("a", 0, 1), tool("t", 1, 8), call("b", 8, 10)]
    assert not {"tools-dominate", "iterations-dominate"} & found(spans, "none").keys()
    assert not {"tools-dominate", "iterations-dominate"} & found(spans, "durations").keys()


def test_many_short_turns() -> None:
    # ten turns of a second: all but the answer's are nine
    spans = [call(str(i), i, i + 1) for i in range(10)]
    finding = found(spans)["iterations-dominate"]
    assert finding.seconds == 9
    assert len(finding.spans) == 10
    assert "10 of 1.00 s on average make up 100 % of the 10.0 s" in finding.title
    assert finding.tokens is None


def test_one_slow_turn_among_many_is_to_blame_itself() -> None:
    spans = [call(str(i), i, i + 1) for i in range(9)] + [call("slow", 9, 15)]
    assert "iterations-dominate" not in found(spans)


def test_one_turn_that_takes_more_than_all_others() -> None:
    # turns of 1, 5 + 3 and 1 s
    spans = [call("a", 0, 1), call("b", 1, 6), tool("t", 6, 9, by="b"), call("c", 9, 10)]
    finding = found(spans)["one-turn-dominates"]
    assert finding.seconds == 8
    assert finding.spans == ("b", "t")
    assert finding.title == "One of 3 turns takes 8.00 s of the 10.0 s (80 %); the median of the others takes 1.00 s."
    assert "begins 1.00 s after" in finding.evidence[0]
    assert "b 5.00 s, t 3.00 s" in finding.evidence[0]
    assert finding.confidence == "certain"
    assert found(spans, "messages")["one-turn-dominates"].confidence == "likely"
    assert "one-turn-dominates" not in found(spans, "none")


def test_what_the_slow_turn_s_call_read_and_wrote_beside_the_others() -> None:
    def sized(name: str, start: float, end: float, read: int, wrote: int) -> Span:
        return call(name, start, end, usage=Usage(input_tokens=read, output_tokens=wrote))

    spans = [sized("a", 0, 1, 10, 5), sized("b", 1, 9, 3000, 400), sized("c", 9, 10, 30, 7)]
    assert found(spans)["one-turn-dominates"].evidence[1] == (
        "Its call reads 3,000 tokens and writes 400; the others read 20 and write 6 (median)."
    )
    assert "one-turn-dominates" not in found([call("a", 0, 1), tool("t", 1, 9), call("b", 9, 10)])  # that is the tool
    two = found(spans[:2])["one-turn-dominates"]
    assert two.title == "One of 2 turns takes 8.00 s of the 9.00 s (89 %); the other takes 1.00 s."
    assert two.evidence[1] == "Its call reads 3,000 tokens and writes 400; the other reads 10 and writes 5."


def test_turns_of_like_length_and_a_longer_one_of_two_do_not_stand_out() -> None:
    assert "one-turn-dominates" not in found([call("a", 0, 3), call("b", 3, 9), call("c", 9, 11)])
    assert "one-turn-dominates" not in found([call("a", 0, 3), call("b", 3, 10)])
    assert "one-turn-dominates" not in found([call("a", 0, 10)])


def test_many_turns_of_which_nobody_knows_how_long_they_took() -> None:
    asked = [
        spans for i in range(8) for spans in (call(f"c{i}", 0, 0, asks=(f"k{i}",)), tool(f"t{i}", 0, 0, by=f"c{i}"))
    ]
    finding = found(asked, "none")["many-turns"]
    assert finding.title.startswith("The task takes 8 model calls one after another")
    assert finding.evidence[1] == "Of 8 turns that ask for tools, 8 ask for just one."
    assert "ask for several tools" in finding.remedy
    assert "many-turns" not in found(asked)
    assert "many-turns" not in found(asked[:14], "none")  # seven of them
    assert "many-turns" not in found([call(str(i), 0, 0) for i in range(9)], "none")  # perhaps at once


def test_calls_that_go_on_from_each_other_are_made_one_after_another() -> None:
    grown = [told(call(str(i), 0, 0), *[("user", "more")] * (i + 1)) for i in range(8)]
    assert "many-turns" in found(grown, "none")
    assert "many-turns" not in found([told(span, ("user", span.id)) for span in grown], "none")


def test_turns_that_ask_for_several_tools_are_not_told_to_ask_for_several() -> None:
    spans = [call(str(i), i, i + 1, asks=(f"a{i}", f"b{i}")) for i in range(10)]
    finding = found(spans)["iterations-dominate"]
    assert finding.evidence[-1] == "Of 10 turns that ask for tools, 0 ask for just one."
    assert "several" not in finding.remedy


def test_a_short_loop_is_no_long_one() -> None:
    assert "iterations-dominate" not in found([call(str(i), i, i + 1) for i in range(7)])


def test_a_turn_is_not_made_of_the_task_that_no_span_records() -> None:
    # b is followed by 7 s in which nothing is recorded; there is no span of the task
    spans = [call("a", 0, 1), call("b", 1, 5), call("c", 9, 10)]
    evidence = found(spans)["one-turn-dominates"].evidence[0]
    assert evidence.endswith("with b, and is made of b 4.00 s, hops 4.00 s.")
