from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unhurried import UNHURRIED

from headway.core.errors import BadInputError
from headway.core.money import MicroUsd, Price, cost
from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine, Reply
from headway.runtime import Budget, Known, Models, Run, Runtime, calibrate, task
from headway.runtime.chunking import Measure
from headway.runtime.estimate import counted, estimated, makespan
from headway.trace.scaling.curve import Point
from headway.trace.scaling.speed import Speed

ONE_AND_TWO = Price(input=1_000_000, output=2_000_000)
"""A micro-USD for each token read, two for each written."""
TEN_PLACES = tuple(Point(n, float(min(n, 10))) for n in (1, 2, 4, 8, 16, 32))
"""A model with ten places, each as fast as if it were alone."""
PACE = Speed(calls=9, overhead=0.5, prefill=0.001, token=0.1, output_tokens=11)
"""0.5 s, a millisecond a token read, 0.1 s a token written after the first."""


def priced(usage: Usage) -> MicroUsd | None:
    return cost(usage, ONE_AND_TWO)


def test_tokens_seconds_and_money_by_hand() -> None:
    """Each call reads 500 and writes 11: 0.5 + 0.5 + 1 = 2 s, 522 micro-USD. 25 calls at 10 are three waves, 6 s."""
    found = estimated("m", ([500] * 25, "counted"), 11, None, Known(PACE, TEN_PLACES), priced)
    assert (found.items, found.input_tokens, found.output_tokens, found.tokens) == (25, 12_500, 275, 12_775)
    assert found.money == 25 * 522
    assert found.width == 10
    assert found.seconds == pytest.approx(6)
    assert found.one_by_one == pytest.approx(50)
    assert found.remarks == ()
    assert str(found) == (
        "25 calls of m, 10 at once\n"
        "  tokens   12,775: 12,500 in, 275 out\n"
        "  seconds  6.0 (one after another 50.0 s)\n"
        "  money    0.013050 USD\n"
        "  - Input tokens: counted.\n"
        "  - Width: 1 to 32 at once were measured; more brings hardly any more from 10 on, as where there are so many"
        " places; 10 at once reach 95% of the most."
    )


def test_more_workers_than_places_bring_nothing() -> None:
    """At 20 each call takes twice as long: 25 calls in two waves of 4 s."""
    found = estimated("m", ([500] * 25, ""), 11, 20, Known(PACE, TEN_PLACES), priced)
    assert found.seconds == pytest.approx(8)


def test_no_wider_than_there_is_to_do() -> None:
    found = estimated("m", ([500] * 3, ""), 11, None, Known(PACE, TEN_PLACES), priced)
    assert (found.width, found.seconds) == (3, pytest.approx(2))


def test_beyond_what_was_measured_nothing_is_told() -> None:
    found = estimated("m", ([500] * 99, ""), 11, 64, Known(PACE, TEN_PLACES), priced)
    assert (found.width, found.seconds) == (64, None)
    assert found.remarks == ("No more than 32 at once were measured, so how long 64 at once take is not known.",)


def test_what_is_unknown_stays_so_and_says_what_would_tell() -> None:
    found = estimated("m", ([10], ""), None, None, Known(), lambda _: None)
    assert (found.tokens, found.output_tokens, found.width) == (None, None, None)
    assert (found.seconds, found.one_by_one, found.money) == (None, None, None)
    assert found.remarks == (
        (
            "No call of m is recorded, so nobody knows how fast it is: make some by `calibrate`, or give the Runtime a"
            " store that holds some."
        ),
        "How long answers will be is not known: give output_tokens.",
    )
    assert str(found).startswith("1 call of m, width unknown\n  tokens   unknown: 10 in, unknown out\n")


def test_few_widths_are_no_curve_but_tell_of_themselves() -> None:
    known = Known(PACE, (Point(1, 1.0), Point(4, 2.0)))
    free = estimated("m", ([500] * 8, ""), 11, None, known, priced)
    assert (free.width, free.seconds) == (None, None)
    assert free.one_by_one == pytest.approx(16)
    assert free.remarks == (
        "Calls at fewer than four widths are recorded (1, 4), so there is no knee: see `calibrate`.",
    )
    # Four at once are twice as fast as one, so each takes 4 s, and there are two waves.
    assert estimated("m", ([500] * 8, ""), 11, 4, known, priced).seconds == pytest.approx(8)
    assert estimated("m", ([500] * 8, ""), 11, 3, known, priced).seconds is None


def test_prompts_longer_than_any_measured_and_unpriced_models_are_told() -> None:
    speed = Speed(calls=3, first_token=0.5, longest=100, longest_answer=20, token=0.1, output_tokens=11)
    found = estimated("m", ([500], ""), 11, 1, Known(speed, TEN_PLACES), lambda _: None)
    assert found.seconds is found.money is None
    assert [remark.split(",")[0] for remark in found.remarks] == [
        "Prompts or answers are much longer than any that was measured (100 and 20 tokens)",
        "The price of m is not known: give it by Models(…",
    ]
    found = estimated("m", ([500], ""), 11, 1, Known(Speed(calls=3), TEN_PLACES), priced)
    assert found.remarks[0].startswith("No call told how many tokens")


@pytest.mark.parametrize("width", [0, -3])
def test_a_width_that_is_none_is_refused(width: int) -> None:
    with pytest.raises(BadInputError, match=f"width={width} is no width"):
        estimated("m", ([1], ""), 1, width, Known(), priced)


def test_nothing_to_do_takes_nothing() -> None:
    found = estimated("m", ([], ""), 11, None, Known(PACE, TEN_PLACES), priced)
    assert (found.items, found.tokens, found.money, found.seconds) == (0, 0, 0, 0)


def test_tokens_are_counted_by_the_caller_or_by_earlier_prompts_or_estimated() -> None:
    prompts = [["abc", "defg"], ["hi"]]
    words = Measure(count=lambda text: len(text.split()), name="words")
    assert counted(prompts, Speed(tokens_a_char=2), words) == ([2, 1], "words")
    assert counted(prompts, Speed(tokens_a_char=2), None) == (
        [14, 4],
        "an estimate, 2.000 tokens a character as in earlier calls",
    )
    assert counted(prompts, Speed(), None) == ([3, 1], "an estimate, a token for 3 bytes of UTF-8")


@UNHURRIED
@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=50), st.integers(1, 60))
def test_a_makespan_is_within_what_no_order_can_beat(seconds: list[float], width: int) -> None:
    """Graham's bound: no more than twice the least that there can be."""
    found = makespan(seconds, width)
    least = max(*seconds, sum(seconds) / width)
    assert least * 0.999999 <= found <= sum(seconds) / width + max(seconds) + 1e-6


def test_a_makespan_by_hand() -> None:
    """3 and 1 begin; the 2 follows the 1 and is done at 3; the 4 follows it or the 3, at 7."""
    assert makespan([3, 1, 2, 4], 2) == 7
    assert makespan([], 4) == 0


ANSWER = Reply(content="a b c d", usage=Usage(input_tokens=50, output_tokens=4, cache_read=0))


@task(budget=Budget(usd=1))
async def plans(run: Run) -> tuple[Known, str, int]:
    known = await calibrate(run, ["x" * 100, "y" * 200], model="fake", widths=(1, 2, 3, 5))
    plan = await run.estimate(["z" * 150] * 6, model="fake")
    done = await run.map(asks, range(6), limit=plan.width or 2)
    return known, str(plan), len(done)


async def asks(run: Run, number: int) -> str:
    return (await run.chat([{"role": "user", "content": f"{number}"}], model="fake")).text


async def test_a_calibration_is_what_an_estimate_goes_by(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    async with FakeEngine(lambda _: ANSWER) as engine, Models(engine.url, prices={"fake": ONE_AND_TWO}) as models:
        async with Runtime(models=models, store=store) as runtime:
            known, plan, done = await runtime.start(plans)
        assert known.speed.calls == 22
        assert known.speed.tokens_a_char == pytest.approx(22 * 50 / (11 * 100 + 11 * 200))
        assert known.speed.first_token is not None
        assert [bool(request.get("stream")) for request in engine.requests[:22]] == [True] * 12 + [False] * 10
        assert done == 6
        # 150 characters are 50 tokens: 50 + 2·4 micro-USD each.
        assert "tokens   324: 300 in, 24 out" in plan
        assert "money    0.000348 USD" in plan
        async with Runtime(models=models, store=store) as runtime:  # another process, which goes by the store
            again = await runtime.start(looks)
        assert again.speed.calls == 28


@task()
async def looks(run: Run) -> Known:
    return (await run.estimate([], model="fake")).known


async def test_without_records_nothing_is_known_and_nothing_is_asked() -> None:
    async with FakeEngine() as engine, Models(engine.url) as models, Runtime(models=models) as runtime:
        assert await runtime.start(looks) == Known()
        assert engine.requests == []


async def test_calibrating_needs_prompts_and_stays_in_the_budget() -> None:
    @task(budget=Budget(calls=5))
    async def poor(run: Run) -> None:
        await calibrate(run, ["x"], model="fake", widths=(1, 2, 4, 8))

    @task()
    async def empty(run: Run) -> None:
        await calibrate(run, [], model="fake")

    async with FakeEngine() as engine, Models(engine.url) as models, Runtime(models=models) as runtime:
        with pytest.raises(BadInputError, match="no prompts"):
            await runtime.start(empty)
        with pytest.raises(Exception, match="of its budget of 5 calls"):
            await runtime.start(poor)
        assert len(engine.requests) <= 5
