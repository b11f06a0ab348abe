import pytest
from findings import found
from tasks import call

from headway.core.usage import EngineTimings


def engine(prefill: float, decode: float) -> EngineTimings:
    return EngineTimings(prefill_tokens=100, prefill_seconds=prefill, decode_tokens=10, decode_seconds=decode)


def test_waiting_for_a_slot() -> None:
    # first token after 4 s, of which the engine read for 1 s
    finding = found([call("a", 0, 6, marks=(0, 4, 6), engine=engine(1, 2))])["engine-queue"]
    assert finding.seconds == pytest.approx(3)
    assert finding.confidence == "certain"
    assert (
        finding.title == "Calls wait 3.00 s (50 % of E2E) for the engine to begin, against 3.00 s of reading and"
        " writing."
    )


def test_what_engine_timings_leave_of_a_call_that_did_not_stream() -> None:
    finding = found([call("a", 0, 6, engine=engine(0.5, 1.5))])["engine-queue"]
    assert finding.seconds == pytest.approx(4)
    assert finding.confidence == "likely"
    assert "more than it reads and writes" in finding.title


def test_an_engine_that_begins_at_once() -> None:
    assert "engine-queue" not in found([call("a", 0, 6, marks=(0, 4, 6), engine=engine(3.9, 2))])


def test_without_the_engine_s_timings_queueing_is_part_of_prefill() -> None:
    assert "engine-queue" not in found([call("a", 0, 6, marks=(0, 4, 6))])
    assert "engine-queue" not in found([call("a", 0, 6, marks=(0, 4, 6), engine=engine(1, 2))], "none")
