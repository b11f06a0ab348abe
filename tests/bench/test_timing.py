import asyncio
import time

from headway.bench.timing import LoopTimer, TimerFd, Waiter, waiter


async def waited(one: Waiter, seconds: float) -> float:
    """How much later than asked for it returned."""
    when = time.monotonic() + seconds
    await one.until(when)
    return time.monotonic() - when


async def test_nobody_is_woken_too_early() -> None:
    for one in (waiter(time.monotonic), LoopTimer(time.monotonic)):
        late = [await waited(one, seconds) for seconds in (0.02, 0.001, 0.0, -1.0)]
        one.close()
        assert min(late[:2]) > -0.0011, "the loop's own timers round to a millisecond"
        assert late[3] >= 1.0


async def test_others_run_while_it_waits_and_a_wait_can_be_given_up() -> None:
    timer = TimerFd(time.monotonic)
    waiting = asyncio.create_task(timer.until(time.monotonic() + 3600))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    assert await waited(timer, 0.001) > -0.0011, "it can be used again"
    timer.close()
