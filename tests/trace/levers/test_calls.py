from msgspec import structs
from savings import seconds
from tasks import call, span, step, tool

from headway.core.span import ErrorType, Retrieval


def test_half_of_a_long_loop() -> None:
    # calls of 1, 2, 3, 4 and the answer of 5 s: one of median length is 2 s, the two of middle length 2 + 3
    starts = (0, 1, 3, 6, 10)
    spans = [call(str(i), start, start + i + 1) for i, start in enumerate(starts)]
    assert seconds(spans) == {"answer in one call": 10, "2 iterations fewer": 5, "one iteration fewer": 2}


def test_an_iteration_goes_with_all_its_tools() -> None:
    # t and u both ran for a: without it neither is waited for
    spans = [call("a", 0, 1, asks=("1", "2")), tool("t", 1, 5, by="a"), tool("u", 1, 3, by="a"), call("b", 5, 6)]
    assert seconds(spans)["one iteration fewer"] == 5


def test_a_sub_agents_calls_stay_when_an_iteration_goes() -> None:
    spans = [call("a", 0, 1, asks=("1",)), tool("t", 1, 5, by="a"), call("sub", 1, 5, "t"), call("b", 5, 6)]
    assert seconds(spans)["one iteration fewer"] == 1


def test_nor_does_the_time_of_the_tool_around_them_go() -> None:
    spans = [call("a", 0, 1, asks=("1",)), tool("t", 1, 6, by="a"), call("sub", 2, 5, "t"), call("b", 6, 7)]
    assert seconds(spans)["one iteration fewer"] == 1


def test_one_call_keeps_what_was_retrieved() -> None:
    spans = [
        step("root", 0, 9),
        call("plan", 0, 3, "root"),
        span("r", 3, 5, Retrieval(), "root"),
        call("b", 5, 9, "root"),
    ]
    assert seconds(spans)["answer in one call"] == 3


def test_one_call_keeps_what_came_before_the_first() -> None:
    spans = [step("root", 0, 9), call("plan", 2, 5, "root"), call("b", 5, 9, "root")]
    assert seconds(spans)["answer in one call"] == 3


def test_a_loop_that_does_not_end_with_an_answer_cannot_be_one_call() -> None:
    spans = [call("a", 0, 2), call("b", 2, 4, asks=("1",))]
    assert "answer in one call" not in seconds(spans)
    failed = structs.replace(call("b", 2, 4), error=ErrorType("timeout"))
    assert "answer in one call" not in seconds([call("a", 0, 2), failed])
