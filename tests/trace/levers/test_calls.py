import pytest
from findings import told
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from savings import LOOP, levers, seconds, usage
from tasks import call, span, step, tool

from headway.core.span import ErrorType, Retrieval, Span
from headway.trace.levers import rank


def test_half_of_a_long_loop() -> None:
    # calls of 1, 2, 3, 4 and the answer of 5 s: one of average length is 2.5 s
    starts = (0, 1, 3, 6, 10)
    spans = [call(str(i), start, start + i + 1) for i, start in enumerate(starts)]
    assert seconds(spans) == {"answer in one call": 10, "2 iterations fewer": 5, "one iteration fewer": 2.5}


def test_a_night_between_two_calls_is_no_iteration_to_do_without() -> None:
    # four calls of 1 s one after the other, then ten hours, then the answer
    spans = [*(call(str(i), i, i + 1) for i in range(4)), call("answer", 36_004, 36_005)]
    found = levers(spans)
    assert found["one iteration fewer"].seconds == pytest.approx(1)
    assert found["one iteration fewer"].assumes.endswith(
        "One iteration of 36,001 s is over 20 times as long as the median: it is no average one and stays."
    )
    assert "2 iterations fewer" not in found  # of three, half is one


def test_many_nights_stay_all() -> None:
    starts = [0, 1, 2, 3, 5000, 10_000]
    found = levers([*(call(str(i), start, start + 1) for i, start in enumerate(starts)), call("z", 10_001, 10_002)])
    # after the calls at 3 and at 5000 nothing comes for 5,000 s
    assert found["one iteration fewer"].seconds == pytest.approx(1)
    assert "2 iterations of up to 5,000 s" in found["one iteration fewer"].assumes


def test_long_iterations_that_are_not_most_of_the_task_are_as_good_as_any() -> None:
    # 25 calls of 1 s and one of 20 s: 45 s in 26
    spans = [*(call(str(i), i, i + 1) for i in range(25)), call("long", 25, 45), call("answer", 45, 46)]
    assert levers(spans)["one iteration fewer"].seconds == pytest.approx(45 / 26)
    assert "stays." not in levers(spans)["one iteration fewer"].assumes


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


# The calls of the loop, with the agent's own code between them instead of tools.
PLAN = [
    call("a", 0, 2, marks=(0.25, 1, 2), usage=usage(1000, 100)),
    call("b", 5, 7.5, marks=(5.5, 6.5, 7.5), usage=usage(1400, 100)),
    call("c", 8, 11.25, marks=(8.25, 9.25, 11.25), usage=usage(2000, 201, cached=1000)),
]


def test_one_call_computes_what_the_others_had_put_into_the_cache() -> None:
    found = levers(PLAN)["answer in one call"]
    # all before c, 8 s, but c computes 2000 tokens less the 100 + 100 that a and b answered, at .75 + 1 + 1 s for
    # 1000 + 1400 + 1000, not in 1 s
    assert round(found.seconds, 9) == round(8 - (1800 * 2.75 / 3400 - 1), 9)
    # without a and b: 1000 x 1 + 100 x 2 and 1400 x 1 + 100 x 2 micro-USD, less 800 tokens at .9 more
    assert (found.tokens, found.cost) == (2600, 2080)
    unknown = [call("a", 0, 2, marks=(0.25, 1, 2)), call("b", 2, 4, marks=(2, 3, 4))]
    assert (levers(unknown)["answer in one call"].tokens, levers(unknown)["answer in one call"].cost) == (None, None)


def test_one_iteration_fewer_reads_its_part_of_what_one_call_reads() -> None:
    found = levers(PLAN)
    # one of the two that go in one call: half of its saving
    assert found["one iteration fewer"].seconds == pytest.approx(found["answer in one call"].seconds / 2)
    assert (found["one iteration fewer"].tokens, found["one iteration fewer"].cost) == (1300, 1040)
    assert "cache hits" not in found["one iteration fewer"].assumes


def test_a_prompt_that_is_too_short_for_earlier_answers_holds_none_of_them() -> None:
    begun_anew = [*PLAN[:2], call("c", 8, 11.25, marks=(8.25, 9.25, 11.25), usage=usage(1200, 201, cached=1000))]
    # 200 tokens were computed in 1 s, so 2600 in 2.75; 1200 take longer than that second, and none is spared
    assert round(levers(begun_anew)["answer in one call"].seconds, 9) == round(8 - (1200 * 2.75 / 2600 - 1), 9)


@st.composite
def chains(draw: st.DrawFn) -> list[Span]:
    """Calls one after the other, of growing or shrinking prompts, partly cached, and look-ups between them."""
    spans, at = list[Span](), 0.0
    for number in range(draw(st.integers(2, 6))):
        if draw(st.booleans()):
            end = at + draw(st.floats(0.1, 5))
            spans.append(span(f"r{number}", at, end, Retrieval(source="index")))
            at = end
        first, last = (at + draw(st.floats(0.1, 9)) for _ in range(2))
        first, last = min(first, last), max(first, last)
        read = draw(st.integers(1, 3000))
        used = usage(read, draw(st.integers(0, 500)), cached=draw(st.integers(0, read)))
        spans.append(call(f"c{number}", at, last, marks=(at, first, last), usage=used))
        at = last + draw(st.floats(0, 2))
    return spans


@given(chains())
def test_fewer_iterations_never_save_less(spans: list[Span]) -> None:
    found = {lever.key: lever.seconds for lever in rank(spans)}
    saved = [found.get(key, 0.0) for key in ("one-iteration-fewer", "half-the-iterations", "one-call")]
    if "half-the-iterations" not in found:
        del saved[1]
    assert saved == sorted(saved)


def test_a_tools_result_cannot_be_had_without_the_call_that_asked_for_it() -> None:
    assert "answer in one call" not in levers(LOOP)
    untimed = [call("a", 0, 1, asks=("1",)), call("b", 5, 6)]
    assert "answer in one call" not in levers(untimed)
    unlinked = [call("a", 0, 1), tool("t", 1, 5), call("b", 5, 6)]
    assert "answer in one call" not in levers(unlinked)


def test_but_a_tool_that_still_ran_when_the_answer_began_was_not_in_its_prompt() -> None:
    spans = [step("root", 0, 9), call("a", 0, 1, "root"), tool("t", 1, 9, "root"), call("b", 1, 9, "root")]
    assert seconds(spans)["answer in one call"] == 1


def test_of_two_calls_the_first_is_spared_only_once() -> None:
    spans = [call("a", 0, 1), call("b", 1, 3)]
    assert seconds(spans) == {"answer in one call": 1}
    asking = [call("a", 0, 1, asks=("1",)), tool("t", 1, 2, by="a"), call("b", 2, 3)]
    assert seconds(asking) == {"one iteration fewer": 2, "tools twice as fast": 0.5}


def test_who_asks_for_several_tools_already_is_not_told_to() -> None:
    assert "ask for several tools" in levers(LOOP)["one iteration fewer"].how
    twice = [*LOOP, tool("t2", 2, 5, by="a", inferred=True), tool("u2", 7.5, 8, by="b", inferred=True)]
    assert "ask for several tools" not in levers(twice)["one iteration fewer"].how


def test_what_an_earlier_call_said_cannot_be_had_without_it() -> None:
    asked = told(call("a", 0, 2), ("user", "Which way?"), answer="Left.")
    quoting = told(call("b", 2, 3), ("user", "Which way?"), ("assistant", "Left."), ("user", "And then?"))
    assert "answer in one call" not in levers([asked, quoting])
    assert "answer in one call" in levers([asked, told(call("b", 2, 3), ("user", "And then?"))])


def test_a_sub_agents_answer_is_not_the_tasks() -> None:
    spans = [call("a", 0, 1), call("b", 1, 2, asks=("1",)), tool("t", 2, 5, by="b"), call("sub", 2, 5, "t")]
    assert "answer in one call" not in seconds(spans)


def test_a_long_loop_is_no_simple_question() -> None:
    six = [call(str(i), i, i + 1) for i in range(6)]
    assert seconds(six)["answer in one call"] == 5
    assert "answer in one call" not in seconds([*six, call("6", 6, 7)])


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


def test_taking_iterations_out_takes_the_longest_along_in_part() -> None:
    # Of 1, 1 and 10 s one iteration is 4 s: leaving out the median would say that every task keeps its longest.
    spans = [call("a", 0, 1), call("b", 1, 2), call("c", 2, 12), call("d", 12, 13)]
    assert seconds(spans)["one iteration fewer"] == 4
