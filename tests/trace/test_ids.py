import re

from headway.core.clock import SystemClock, VirtualClock
from headway.trace.ids import Ids


def test_task_ids_are_trace_ids_that_begin_with_their_time() -> None:
    clock = VirtualClock(0x65A0_1234 + 0.75)
    first = Ids(clock).task()
    assert re.fullmatch(r"65a01234c000[0-9a-f]{20}", first)
    clock.advance(0.25)
    assert Ids(clock).task().startswith("65a012350000")


def test_ids_never_repeat_and_are_as_long_as_trace_context_wants() -> None:
    makers = [Ids(SystemClock()) for _ in range(4)]
    tasks = {maker.task() for maker in makers for _ in range(5_000)}
    spans = {maker.span() for maker in makers for _ in range(5_000)}
    assert len(tasks) == len(spans) == 20_000
    assert {len(task) for task in tasks} == {32}
    assert {len(span) for span in spans} == {16}


def test_a_clock_beyond_32_bits_of_seconds_still_gives_32_digits() -> None:
    assert len(Ids(VirtualClock(2.0**33 + 5)).task()) == 32
