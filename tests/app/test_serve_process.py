"""`headway serve` as a process of its own: what its options do, and what is left when it is killed."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import openai
import pytest
from msgspec import Struct

from headway.gateway.fake import FakeEngine, Reply
from headway.trace.store import Store

HEADWAY = Path(sys.executable).with_name("headway")


class Running(Struct):
    process: asyncio.subprocess.Process
    client: openai.AsyncOpenAI

    async def ask(self, words: str = "one two") -> str | None:
        answer = await self.client.chat.completions.create(model="m", messages=[{"role": "user", "content": words}])
        return answer.choices[0].message.content


@contextlib.asynccontextmanager
async def running(engine: FakeEngine, place: Path, *options: str) -> AsyncGenerator[Running]:
    flags = ("--json", "--upstream", engine.url, "--port", "0", "--no-admin", *options)
    process = await asyncio.create_subprocess_exec(
        HEADWAY, "serve", *flags, cwd=place, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        url = json.loads(await process.stdout.readline())["url"]
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            yield Running(process, client)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def test_limits_come_from_flags_and_from_the_configuration_here(tmp_path: Path) -> None:
    (tmp_path / "headway.toml").write_text('[gateway.limits]\nbody_bytes = "1 KiB"\nresponse_bytes = "2 KiB"\n')
    async with (
        FakeEngine(lambda _: Reply(content="x" * 3000)) as engine,
        running(engine, tmp_path, "--no-record", "--body-bytes", "200") as served,
    ):
        with pytest.raises(openai.APIStatusError, match="limit of 200"):
            await served.ask("y" * 200)
        with pytest.raises(openai.APIStatusError, match="longer than 2048 bytes"):
            await served.ask()


async def written(store: Path) -> None:
    """Until a call is in the store."""
    while True:
        with Store(store, readonly=True) as opened:
            if opened.last() is not None:
                return
        await asyncio.sleep(0)


async def test_what_a_killed_gateway_loses_is_the_calls_under_way(tmp_path: Path) -> None:
    store = tmp_path / "spans.db"
    replies = iter([Reply(content="done"), Reply(fault="stall_before")])
    async with (
        FakeEngine(lambda _: next(replies)) as engine,
        running(engine, tmp_path, "--store", str(store)) as served,
    ):
        assert await served.ask() == "done"
        async with asyncio.timeout(20):
            await written(store)
        under_way = asyncio.create_task(served.ask())
        await engine.until(lambda: len(engine.requests) == 2)
        served.process.kill()
        with pytest.raises(openai.APIConnectionError):
            await under_way
    with Store(store, readonly=True) as opened:
        assert [row.calls for row in opened.tasks()] == [1]
