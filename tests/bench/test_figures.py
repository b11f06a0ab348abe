"""Figures of campaigns that are written down here, so that each can be worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loads import PROMPT
from msgspec import structs

from headway.bench.arrivals import Closed, arrivals
from headway.bench.calibrate import Calibration
from headway.bench.campaign import Campaign
from headway.bench.connection import Received
from headway.bench.figures import Figures, figures, wilson
from headway.bench.graph import Call, Graph
from headway.bench.play import PlayedCall, PlayedTask
from headway.bench.slo import slo
from headway.bench.spans import HeardTask, listen
from headway.bench.validity import troubles

STEP = Call(id="ask", input_tokens=1, output_tokens=2)


def task(number: int, intended: float, seconds: float, *, late: float = 0.0, status: int = 200) -> HeardTask:
    """One call: its first token half-way, ``late`` seconds after which the client had turned to it."""
    chunk = b'data: {"choices": [{"index": 0, "delta": {"content": "w"}, "finish_reason": null}]}\n\n'
    end = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": '
    end += b'{"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}}\n\n'
    half, ended = intended + seconds / 2, intended + seconds
    received = Received(
        asked=intended + late,
        sent=intended + late,
        ended=ended,
        status=status,
        reads=[(half, chunk), (ended, chunk), (ended, end)],
    )
    played = PlayedTask(session=number, number=0, graph=Graph((STEP,)), intended=intended, ended=ended)
    played.calls.append(PlayedCall(step=STEP, intended=intended, received=received))
    return listen(played, "m", stream=True)


def campaign(tasks: list[HeardTask], *, cpu: float = 0.0) -> Campaign:
    return Campaign(
        began=0.0,
        ended=100.0,
        begun=[one.played.intended for one in tasks],
        tasks=[one.played for one in tasks],
        cpu=cpu,
        connections=1,
        interrupted=False,
    )


def told(tasks: list[HeardTask], *slos: str, warm_up: int = 0) -> Figures:
    return figures(campaign(tasks), tasks, [slo(one) for one in slos], warm_up)


def spread(found: Figures, name: str) -> list[float]:
    (one,) = [each for each in found.spreads if each.name == name]
    return [quantile.value for quantile in one.quantiles]


def test_times_count_from_when_a_call_was_to_be_sent() -> None:
    """Ten calls, one a second, each of 2 s; the client turned to them 0.5 s late, which is nobody's excuse."""
    found = told([task(n, float(n), 2.0, late=0.5) for n in range(10)])
    assert spread(found, "TTFT") == [1.0] * 4
    assert spread(found, "TTFT from sent") == [0.5] * 4
    assert spread(found, "lag") == [0.5] * 4
    assert spread(found, "E2E") == [2.0] * 4
    assert spread(found, "token_time") == [1.0] * 4  # a token a chunk: the second came a second after the first


def test_rates_are_of_the_time_from_the_first_begin_to_the_last_end() -> None:
    found = told([task(n, float(n), 2.0) for n in range(10)])  # from 0 to 11 s
    assert found.seconds == 11.0
    assert found.tasks_per_second == 10 / 11
    assert found.output_per_second == 20 / 11
    assert (found.input_tokens, found.output_tokens, found.cached_tokens) == (100, 20, 40)
    assert found.n == 1.0


def test_a_failure_never_ends() -> None:
    """Ten tasks, three of them failed: by nearest rank p50 is the fifth, p90 the ninth, which never ended."""
    tasks = [task(n, 0.0, float(n + 1), status=200 if n < 7 else 500) for n in range(10)]
    found = told(tasks)
    (e2e,) = [one for one in found.spreads if one.name == "E2E"]
    assert e2e.quantiles[0].value == 4.0  # of seven
    assert e2e.with_failures == (5.0, None, None, None)
    assert (found.failed, found.errors) == (3, {"http_500": 3})


def test_warm_up_and_what_was_stopped_do_not_count() -> None:
    tasks = [task(n, float(n), 2.0) for n in range(4)]
    tasks[3].played.ended = None
    found = told(tasks, warm_up=1)
    assert (found.tasks, found.warm_up, found.unfinished) == (2, 1, 1)


def test_goodput_is_of_tasks_that_keep_every_slo() -> None:
    tasks = [task(n, float(n), 1.0 + n) for n in range(4)]  # E2E 1 2 3 4 s, TTFT half of it
    tasks.append(task(4, 4.0, 1.0, status=500))
    found = told(tasks, "task 3s", "ttft 1s")
    assert found.attained is not None
    assert (found.attained.good, found.attained.of) == (2, 5)
    assert found.goodput == 2 / 7  # from 0 to 7 s
    assert told(tasks).attained is None


def test_wilsons_interval_is_the_books() -> None:
    """Newcombe 1998, table I: 81 of 263 gives 0.2553 to 0.3662."""
    found = wilson(81, 263)
    assert (found.low, found.high) == pytest.approx((0.2553, 0.3662), abs=5e-5)


@given(st.integers(1, 1000), st.data())
def test_wilsons_interval_holds_what_was_seen(of: int, data: st.DataObject) -> None:
    good = data.draw(st.integers(0, of))
    found = wilson(good, of)
    assert 0.0 <= found.low <= good / of + 1e-12
    assert good / of - 1e-12 <= found.high <= 1.0


def said(
    tasks: list[HeardTask], arrive: str = "closed 1", cpu: float = 0.0, calibration: Calibration = PROMPT
) -> tuple[str, ...]:
    run = campaign(tasks, cpu=cpu)
    return troubles(run, figures(run, tasks, [], 0), arrivals(arrive), calibration)


def test_a_client_that_was_the_limit_says_so() -> None:
    good = [task(n, float(n), 2.0) for n in range(60)]
    assert said(good) == ()
    (late,) = said([task(n, float(n), 2.0, late=0.02) for n in range(60)])  # TTFT 1 s, so 10 ms would not matter
    assert "20.0 ms after it should have" in late
    assert "10.0 ms" in late
    (busy,) = said(good, cpu=71.0)  # of 100 s
    assert "71%" in busy


def test_a_client_that_reads_late_says_so() -> None:
    good = [task(n, float(n), 2.0) for n in range(60)]  # TTFT 1 s, of which 3 % may be the client's
    assert said(good, calibration=structs.replace(PROMPT, p99=0.030)) == ()
    (late,) = said(good, calibration=structs.replace(PROMPT, p99=0.031))
    assert "31.0 ms" in late


def test_a_load_that_missed_its_rate_says_so() -> None:
    tasks = [task(n, n * 1.05, 2.0) for n in range(60)]
    (missed,) = said(tasks, "constant 1/s")
    assert "-4.8%" in missed  # 1 / 1.05
    assert said(tasks, "poisson 1/s") == (), "chance alone does more"
    assert troubles(campaign(tasks), told(tasks), Closed(1), PROMPT) == ()
