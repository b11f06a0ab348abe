from itertools import pairwise
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from tasks import forests

from headway.core.span import ErrorType, ModelCall, Setback, Span, Work
from headway.core.task import SpanId
from headway.core.usage import EngineTimings
from headway.trace.phases import OWN, engine_tpot, is_derived, split

ID = SpanId("a")


def pieces(call: ModelCall, start: float, end: float) -> list[tuple[str, float, float]]:
    return [(one.phase.value, round(one.start, 6), round(one.end, 6)) for one in split(ID, call, start, end, float)]


def timings(prefill: float, decode: float) -> EngineTimings:
    return EngineTimings(prefill_tokens=1, prefill_seconds=prefill, decode_tokens=1, decode_seconds=decode)


def test_a_streamed_call() -> None:
    call = ModelCall(model="m", sent=1.2, first_token=2.0, last_token=4.5)
    assert pieces(call, 1, 5) == [("hop", 1, 1.2), ("prefill", 1.2, 2), ("decode", 2, 4.5), ("hop", 4.5, 5)]


def test_headways_queue_comes_before_sending_and_the_engines_before_prefill() -> None:
    # 1 hop 1.2 queued 1.5 sent ... TTFT 0.5, of which the engine prefilled 0.3: 0.2 were its queue
    call = ModelCall(model="m", queued=0.3, sent=1.5, first_token=2.0, last_token=4, engine=timings(0.3, 2))
    assert pieces(call, 1, 4) == [("hop", 1, 1.2), ("queue", 1.2, 1.7), ("prefill", 1.7, 2), ("decode", 2, 4)]


def test_queueing_is_never_below_0_when_the_engine_says_it_prefilled_longer_than_ttft() -> None:
    call = ModelCall(model="m", sent=1, first_token=2, last_token=3, engine=timings(7, 1))
    assert pieces(call, 1, 3) == [("prefill", 1, 2), ("decode", 2, 3)]


def setback(start: float, end: float) -> Setback:
    return Setback(replica="a", error=ErrorType("upstream_closed"), start=start, end=end)


def test_attempts_that_failed_before_are_neither_hop_nor_the_models() -> None:
    # 1 hop 1.1 replica a, which hung up at 3, then b: sent 3.2, first token 4
    call = ModelCall(model="m", sent=3.2, first_token=4, last_token=5, attempts=2, setbacks=(setback(1.1, 3),))
    assert pieces(call, 1, 5) == [
        ("hop", 1, 1.1),
        ("retry", 1.1, 3),
        ("hop", 3, 3.2),
        ("prefill", 3.2, 4),
        ("decode", 4, 5),
    ]


def test_where_the_last_attempt_was_never_sent_all_is_an_attempt() -> None:
    # b was not to be had either: what was sent last is what a got
    call = ModelCall(model="m", sent=1.2, attempts=1, setbacks=(setback(1.1, 3),))
    assert pieces(call, 1, 8) == [("hop", 1, 1.1), ("retry", 1.1, 8)]


def test_a_call_that_reached_no_engine_took_no_model_time() -> None:
    assert pieces(ModelCall(model="m", attempts=0), 1, 5) == [("hop", 1, 5)], "nothing was attempted"
    assert pieces(ModelCall(model="m", attempts=0, queued=3), 1, 5) == [("queue", 1, 4), ("hop", 4, 5)]
    assert pieces(ModelCall(model="m", attempts=0, queued=9), 1, 5) == [("queue", 1, 5)]
    assert pieces(ModelCall(model="m", attempts=0, setbacks=(setback(1, 3),)), 1, 5) == [("retry", 1, 5)]
    assert pieces(ModelCall(model="m", attempts=None), 1, 5) == [("model", 1, 5)], "how often it was sent is unknown"


def test_without_a_timed_first_token_the_call_is_not_split() -> None:
    # TTFT that is really the whole answer's time is the field's commonest mistake.
    assert pieces(ModelCall(model="m", sent=1.1, stream=True), 1, 5) == [("hop", 1, 1.1), ("model", 1.1, 5)]


def test_an_answer_that_came_whole_is_split_by_the_engines_timings_and_called_derived() -> None:
    # decode fills the last 2 s, prefill the 1 s before; of the 4 s since it was sent, 1 s is left: queue
    call = ModelCall(model="m", sent=1, stream=False, engine=timings(1, 2))
    assert pieces(call, 1, 5) == [("queue", 1, 2), ("prefill", 2, 3), ("decode", 3, 5)]
    assert is_derived(call)
    assert not is_derived(ModelCall(model="m"))


def test_the_engines_pace_counts_the_gaps_between_its_tokens() -> None:
    def engine(tokens: int) -> EngineTimings:
        return EngineTimings(prefill_tokens=1, prefill_seconds=1, decode_tokens=tokens, decode_seconds=2)

    assert engine_tpot(ModelCall(model="m", engine=engine(41))) == 0.05  # 2 s / 40 gaps
    assert engine_tpot(ModelCall(model="m", engine=engine(1))) is None
    assert engine_tpot(ModelCall(model="m")) is None


def test_timings_longer_than_the_call_are_cut_to_it() -> None:
    assert pieces(ModelCall(model="m", engine=timings(9, 3)), 1, 5) == [("prefill", 1, 2), ("decode", 2, 5)]


def test_a_stream_that_broke_after_its_first_token_decodes_to_the_end() -> None:
    assert pieces(ModelCall(model="m", sent=0, first_token=1), 0, 3) == [("prefill", 0, 1), ("decode", 1, 3)]


def test_a_queue_without_a_moment_of_sending_starts_with_the_call() -> None:
    assert pieces(ModelCall(model="m", queued=2), 0, 3) == [("queue", 0, 2), ("model", 2, 3)]


def test_every_kind_of_work_has_a_phase_of_its_own() -> None:
    assert set(OWN) == set(get_args(Work))
    assert len(set(OWN.values())) == len(OWN)


@given(forests, st.floats(0, 20), st.floats(0, 20))
def test_the_segments_tile_the_call_whatever_its_marks_say(spans: list[Span], start: float, length: float) -> None:
    for call in (one.work for one in spans if isinstance(one.work, ModelCall)):
        found = split(ID, call, start, start + length, lambda when: when - 1_790_000_000.0)
        assert all(one.end > one.start for one in found)
        assert all(one.end == other.start for one, other in pairwise(found))
        if found:
            assert (found[0].start, found[-1].end) == (start, start + length)
        else:
            assert start + length == start


def test_the_silence_in_which_an_answer_broke_off_is_the_models() -> None:
    call = ModelCall(model="m", sent=1, first_token=2, last_token=3)
    found = split(ID, call, 1, 5, float, silent=True)
    assert [(one.phase.value, one.start, one.end) for one in found] == [
        ("prefill", 1, 2),
        ("decode", 2, 3),
        ("model", 3, 5),
    ]
