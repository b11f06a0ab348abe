"""The observer's process: what it tells, how it ends, and that one works at a time."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from collecting import Collector, ids, span

from headway.gateway.observer.endpoint import Endpoint
from headway.gateway.observer.process import ObserverProcess
from headway.gateway.observer.watch import Watch
from headway.trace.store import Store


def watch(store: Store, collector: Collector | None = None) -> Watch:
    export = None if collector is None else Endpoint(url=f"{collector.url}/v1/traces")
    return Watch(store=str(store.path), begin=0, export=export)


async def told(process: ObserverProcess, words: bytes) -> None:
    async with asyncio.timeout(20):
        while words not in process.page():  # noqa: ASYNC110 - nothing tells of a new page
            await asyncio.sleep(0.01)


async def test_it_tells_what_it_counts_and_does_what_is_left_before_it_ends(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Collector() as collector:
        process = ObserverProcess(watch(store, collector))
        process.start()
        await told(process, b"headway_tasks_open 0")
        pid = process.pid
        assert pid is not None
        store.write([span(1), span(2)])
        await process.stop()
        assert collector.ids() == ids(1, 2)
        assert process.pid is None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_signals_that_reach_the_whole_group_do_not_end_it(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Collector() as collector:
        process = ObserverProcess(watch(store, collector))
        process.start()
        await told(process, b"headway_tasks_open 0")
        assert process.pid is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(process.pid, number)
        store.write([span(1)])
        await process.stop()
        assert collector.ids() == ids(1)


async def test_of_two_on_one_store_one_works_and_the_other_takes_over(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Collector() as collector:
        first, second = (ObserverProcess(watch(store, collector)) for _ in range(2))
        first.start()
        await told(first, b"headway_tasks_open 0")
        second.start()
        store.write([span(1)])
        await asyncio.to_thread(collector.wait, 1)
        assert second.page() == b""
        await first.stop()
        store.write([span(2)])
        await asyncio.to_thread(collector.wait, 2)
        await second.stop()
        assert collector.ids() == ids(1, 2)


async def test_one_that_waits_for_its_turn_ends_when_it_is_told_to(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        first, second = (ObserverProcess(watch(store)) for _ in range(2))
        first.start()
        await told(first, b"headway_tasks_open 0")
        second.start()
        await second.stop()
        assert second.page() == b""
        await first.stop()
