import pytest

from headway.core.prompt import Part
from headway.core.span import ErrorType, GivenAgain, ModelCall, Span, Step
from headway.core.task import SpanId, TaskId
from headway.core.usage import EngineTimings, Usage
from headway.trace.scaling.curve import Point
from headway.trace.scaling.speed import Speed, measured


def call(  # noqa: PLR0913 - a record has as many fields
    name: str,
    start: float,
    *,
    reads: int | None = 100,
    cached: int | None = 0,
    writes: int | None = 11,
    ttft: float | None = 0.5,
    gap: float = 0.1,
    whole: float | None = None,
    engine: EngineTimings | None = None,
    prompt: tuple[Part, ...] | None = None,
    provider: str | None = None,
    parent: str | None = None,
    error: str | None = None,
) -> Span:
    """A call; streamed, unless ``whole`` says how many seconds it took in all."""
    first = None if ttft is None or whole is not None else start + ttft
    last = None if first is None or writes is None else first + gap * (writes - 1)
    end = last if whole is None else start + whole
    assert end is not None
    work = ModelCall(
        model="m",
        provider=provider,
        sent=start,
        first_token=first,
        last_token=last,
        usage=Usage(input_tokens=reads, output_tokens=writes, cache_read=cached),
        engine=engine,
        prompt=prompt,
    )
    return Span(
        task=TaskId("t"),
        id=SpanId(name),
        parent=None if parent is None else SpanId(parent),
        name="chat m",
        start=start,
        end=end,
        work=work,
        error=None if error is None else ErrorType(error),
    )


def rates(points: tuple[Point, ...]) -> dict[float, float]:
    return {point.width: point.rate for point in points}


def test_a_streamed_call_tells_first_token_and_pace() -> None:
    """0.5 s to the first of 11 tokens and 0.1 s for each of the 10 after it: 1.5 s."""
    speed, points = measured([call("a", 0.0)], "m")
    assert (speed.calls, speed.first_token, speed.longest, speed.output_tokens) == (1, 0.5, 100, 11)
    assert speed.token == pytest.approx(0.1)
    assert (speed.overhead, speed.prefill, speed.line) == (None, None, None)
    assert speed.seconds(100, 11) == pytest.approx(1.5)
    assert speed.off == pytest.approx(0, abs=1e-9)
    assert rates(points) == pytest.approx({1: 1})


def test_how_reading_grows_with_the_prompt_is_a_line() -> None:
    """0.2 s and a millisecond a token that is not in a cache."""
    spans = [call(str(n), 10.0 * n, reads=2000, cached=2000 - 100 * n, ttft=0.2 + 0.1 * n) for n in range(1, 11)]
    speed, _ = measured(spans, "m")
    assert speed.overhead == pytest.approx(0.2)
    assert speed.prefill == pytest.approx(0.001)
    assert speed.seconds(5000, 1) == pytest.approx(5.2)


def test_the_engines_own_timings_tell_reading_from_the_rest() -> None:
    engine = EngineTimings(prefill_tokens=100, prefill_seconds=0.4, decode_tokens=11, decode_seconds=1.0)
    speed, _ = measured([call("a", 0.0, ttft=0.5, engine=engine)], "m")
    assert speed.overhead == pytest.approx(0.1)
    assert speed.prefill == pytest.approx(0.004)


def test_a_prompt_far_longer_than_any_measured_is_unknown_without_a_line() -> None:
    speed, _ = measured([call("a", 0.0, reads=100)], "m")
    assert speed.seconds(200, 11) == pytest.approx(1.5)
    assert speed.seconds(201, 11) is None
    assert speed.seconds(None, 11) is None
    assert speed.seconds(100, None) is None


def test_calls_that_were_not_streamed_tell_by_the_length_of_their_answers() -> None:
    """1 s and 0.05 s a token."""
    spans = [call(str(n), 100.0 * n, writes=20 * n, whole=1 + n) for n in range(1, 9)]
    speed, points = measured(spans, "m")
    assert (speed.first_token, speed.token) == (None, None)
    assert speed.seconds(200, 100) == pytest.approx(6)
    assert speed.seconds(201, 100) is None
    assert rates(points) == pytest.approx({1: 1})


def test_calls_that_were_all_alike_tell_of_those_like_them() -> None:
    """Five calls of 20 tokens that took 1, 2, 3, 4 and 9 s."""
    spans = [call(str(n), 100.0 * n, writes=20, whole=whole) for n, whole in enumerate((1.0, 2.0, 3.0, 4.0, 9.0))]
    speed, _ = measured(spans, "m")
    assert (speed.line, speed.whole, speed.longest_answer) == (None, 3, 20)
    assert speed.seconds(100, 40) == 3
    assert speed.seconds(100, 41) is None
    assert speed.seconds(201, 40) is None


def test_what_is_unknown_stays_so() -> None:
    speed, points = measured([call("a", 0.0, reads=None, writes=None, whole=2.0)], "m")
    assert speed == Speed(calls=1)
    assert points == ()
    assert measured([], "m") == (Speed(), ())


def test_calls_beside_one_another_make_the_curve() -> None:
    """Alone one takes 1.5 s. Two at once take 3 s each: the pair goes at the speed of one."""
    alone = [call(f"a{n}", 10.0 * n) for n in range(5)]
    pairs = [call(f"{side}{n}", 100.0 + 10 * n, ttft=1.0, gap=0.2) for n in range(2) for side in "pq"]
    _, points = measured([*alone, *pairs], "m")
    assert rates(points) == pytest.approx({1: 1, 2: 1})


def test_calls_that_waited_for_others_do_not_tell_how_fast_it_reads() -> None:
    """40 calls in a crowd take 10 s to begin, those with long prompts; the 16 alone tell: 0.5 s whatever the prompt."""
    crowd = [call(f"c{n}", 1000.0, reads=1000 + n, ttft=10.0) for n in range(40)]
    alone = [call(f"a{n}", 10.0 * n, reads=100 + 10 * n) for n in range(16)]
    speed, points = measured([*crowd, *alone], "m")
    assert (speed.calls, speed.first_token, speed.longest, speed.prefill) == (56, 0.5, 250, None)
    assert speed.off == pytest.approx(0, abs=1e-9)
    assert rates(points) == pytest.approx({1: 1})


def test_what_is_no_such_call_is_left_out() -> None:
    given = call("g", 0.0)
    assert isinstance(given.work, ModelCall)
    kept = GivenAgain(source="memory", made=0.0, usage=Usage(), seconds=1.0)
    spans = [
        call("failed", 0.0, error="timeout"),
        call("other seller", 0.0, provider="y"),
        Span(task=TaskId("t"), id=SpanId("s"), parent=None, name="s", start=0, end=1, work=Step()),
        Span(task=TaskId("t"), id=SpanId("c"), parent=None, name="c", start=0, end=None, work=given.work),
        Span(
            task=TaskId("t"), id=SpanId("k"), parent=None, name="k", start=0, end=1,
            work=ModelCall(model="m", provider="x", given_again=kept),
        ),
        call("counted", 0.0, provider="x"),
    ]  # fmt: skip
    assert measured(spans, "m", "x")[0].calls == 1
    assert measured(spans, "n")[0].calls == 0


def test_what_caller_and_gateway_both_recorded_is_one_call() -> None:
    caller = call("caller", 0.0)
    gateway = call("gateway", 0.01, ttft=0.4, parent="caller")
    speed, points = measured([gateway, caller, caller], "m")
    assert (speed.calls, speed.first_token) == (1, 0.5)
    assert [point.width for point in points] == [1]


def test_tokens_a_character() -> None:
    prompt = (Part("system", 100, "0", "0"), Part("user", 300, "1", "1"))
    spans = [call("a", 0.0, reads=100, prompt=prompt), call("b", 5.0, reads=900)]
    assert measured(spans, "m")[0].tokens_a_char == 0.25
