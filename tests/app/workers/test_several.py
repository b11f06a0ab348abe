"""Several workers on one port, as real processes with real clients: served, summed, killed, drained."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import openai
from several import HEADWAY, Several, several

from headway.gateway.fake import FakeEngine, Reply
from headway.trace.store import Store

QUESTION: list[Any] = [{"role": "user", "content": "one two"}]


async def ask(served: Several, times: int = 1) -> list[str | None]:
    """So many calls at once, each on a connection of its own, which may come to any worker."""
    async with served.client() as client:
        answers = await asyncio.gather(
            *[client.chat.completions.create(model="fake", messages=QUESTION) for _ in range(times)]
        )
        return [answer.choices[0].message.content for answer in answers]


def options(engine: FakeEngine, *more: str) -> tuple[str, ...]:
    return ("--upstream", f"{engine.url},id=r", "--port", "0", "--workers", "2", *more)


async def test_calls_are_served_by_all_of_them_recorded_and_counted_together(tmp_path: Path) -> None:
    store = tmp_path / "spans.db"
    async with FakeEngine() as engine:
        async with several(tmp_path, *options(engine, "--store", str(store))) as served:
            assert len(served.workers()) == 2
            assert await ask(served, 40) == ["echo: one two"] * 40
            for _ in range(4):
                assert await served.counted("headway_requests_total{") == 40
            assert await served.counted("headway_workers ") == 2
            assert await served.counted('headway_replica_up{replica="r"}') == 1
            assert '"in_flight":0' in (await served.get("/health"))[1]
        assert (engine.open_connections, len(engine.requests)) == (0, 40)
    with Store(store, readonly=True) as opened:
        assert sum(row.calls for row in opened.tasks(limit=100)) == 40
    assert served.log.text.count("serves (process") == 2


async def test_of_the_cache_all_of_them_are_told_whoever_answers(tmp_path: Path) -> None:
    config = tmp_path / "headway.toml"
    config.write_text('[[cache.rules]]\nname = "faq"\n')
    async with FakeEngine() as engine:
        more = ("--no-record", "--config", str(config))
        async with several(tmp_path, *options(engine, *more)) as served:
            await ask(served, 30)
            given = await served.counted("headway_cache_hits_total{")
            assert given == 30 - len(engine.requests)
            for _ in range(6):
                told = json.loads((await served.get("/admin/cache"))[1])
                assert told["workers"] == 2
                assert sum(told["rules"]["faq"]["hits"].values()) == given


async def test_a_worker_that_is_killed_is_started_again_and_its_counts_stay(tmp_path: Path) -> None:
    async with FakeEngine() as engine, several(tmp_path, *options(engine, "--no-record")) as served:
        await ask(served, 20)
        assert await served.counted("headway_requests_total{") == 20
        victim = served.workers()[0]
        os.kill(victim, signal.SIGKILL)
        await served.log.until("was killed by SIGKILL")
        assert await served.counted("headway_requests_total{") == 20
        await served.log.until("serves (process", times=3)
        assert len(set(served.workers()) - {victim}) == 2
        await ask(served, 20)
        assert await served.counted("headway_requests_total{") == 40
        assert await served.counted("headway_worker_ends_total") == 1
        assert await served.counted("headway_workers ") == 2


async def test_calls_under_way_on_all_of_them_may_end_when_it_is_told_to_stop(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with (
        FakeEngine(lambda _: Reply(content="done", gate=gate)) as engine,
        several(tmp_path, *options(engine, "--no-record")) as served,
    ):
        calls = asyncio.create_task(ask(served, 8))
        await engine.until(lambda: engine.active == 8)
        assert '"in_flight":8' in (await served.get("/health"))[1]
        for pid in (served.process.pid, *served.workers()):  # as a shell or systemd does to the whole group
            os.kill(pid, signal.SIGTERM)
        await served.log.until("stopping: 8 calls under way")
        gate.set()
        assert await calls == ["done"] * 8
        assert await served.process.wait() == 0


async def test_a_second_signal_ends_calls_on_all_of_them_at_once(tmp_path: Path) -> None:
    async with (
        FakeEngine(lambda _: Reply(fault="stall_before")) as engine,
        several(tmp_path, *options(engine, "--no-record")) as served,
    ):
        calls = [asyncio.create_task(ask(served)) for _ in range(6)]
        await engine.until(lambda: engine.active == 6)
        served.process.send_signal(signal.SIGINT)
        await served.log.until("stopping: 6 calls under way")
        served.process.send_signal(signal.SIGINT)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(one) for one in outcomes] == [openai.InternalServerError] * 6
        assert await served.process.wait() == 0


async def test_workers_whose_supervisor_is_killed_let_their_calls_end_and_go(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with (
        FakeEngine(lambda _: Reply(content="done", gate=gate)) as engine,
        several(tmp_path, *options(engine, "--no-record")) as served,
    ):
        call = asyncio.create_task(ask(served))
        await engine.until(lambda: engine.active == 1)
        served.process.kill()
        await served.log.until("the process that looks after the workers is gone", times=2)
        gate.set()
        assert await call == ["done"]
        async with asyncio.timeout(60):
            await served.log.task  # standard error ends with the last of those that have it


async def test_a_port_that_somebody_else_listens_on_is_refused(tmp_path: Path) -> None:
    async with FakeEngine() as engine, several(tmp_path, *options(engine, "--no-record")) as served:
        process = await asyncio.create_subprocess_exec(
            *(HEADWAY, "serve", "--no-record", "--no-admin", "--workers", "2"),
            *("--upstream", engine.url, "--port", str(served.port)),
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await process.communicate()
        assert process.returncode == 1
        assert f"Cannot listen on 127.0.0.1:{served.port}".encode() in said


async def test_a_replica_that_one_worker_cannot_reach_is_down_for_all(tmp_path: Path) -> None:
    async with FakeEngine() as one, FakeEngine() as two:
        more = ("--upstream", f"{two.url},id=two", "--no-record")
        async with several(tmp_path, *options(one, *more)) as served:
            await one.go_down()
            assert await ask(served, 8) == ["echo: one two"] * 8
            await served.log.until("replica r is down")
            assert await served.counted('headway_replica_up{replica="r"}') == 0
            await one.come_up()
            await served.log.until("replica r is up")
            assert await served.counted('headway_replica_up{replica="r"}') == 1
