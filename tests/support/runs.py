"""Bodies of tasks as tests write them."""

import asyncio
from typing import Any

from headway.runtime import Run, task


async def in_a_run(body: Any) -> Any:  # noqa: ANN401 - whatever the body gives
    """What ``body`` gives as a task; nothing of it may be left running."""
    result = await task()(body).start()
    assert len(asyncio.all_tasks()) == 1, "something was left running"
    return result


async def double(_run: Run, number: int) -> int:
    """An item's work."""
    await asyncio.sleep(0)
    return number * 2


class Gate:
    """Counts who is inside."""

    def __init__(self) -> None:
        self.inside = self.most = self.entered = 0
        self.open = asyncio.Event()

    async def __call__(self, _run: Run, item: int) -> int:
        self.inside += 1
        self.entered += 1
        self.most = max(self.most, self.inside)
        try:
            await self.open.wait()
        finally:
            self.inside -= 1
        return item
