"""`[cache]` of a configuration, at work in the whole service."""

import asyncio
import os
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import openai
from running import served

from headway.app.config.reading import read_config
from headway.app.config.serving import service_of
from headway.app.service import Ready
from headway.gateway.fake import FakeEngine

TEXT = """
[gateway]
port = 0
admin = false
store = "spans.db"

[[replicas]]
url = "{url}"

[cache]
bytes = "1 MiB"

[[cache.rules]]
name = "faq"
ttl = "10 min"
"""
QUESTION: list[Any] = [{"role": "user", "content": "one two three"}]


async def asked_twice(ready: Ready) -> tuple[list[str | None], str]:
    """What the answers' heads say of the cache, and the page of metrics after them."""
    http = openai.DefaultAsyncHttpxClient(verify=False)
    async with openai.AsyncOpenAI(base_url=ready.url, api_key="x", max_retries=0, http_client=http) as client:
        create = client.chat.completions.with_raw_response.create
        answers = [await create(model="m", messages=QUESTION) for _ in range(2)]
    assert {answer.parse().choices[0].message.content for answer in answers} == {"echo: one two three"}
    return [answer.headers.get("x-headway-cache") for answer in answers], await asyncio.to_thread(metrics, ready)


def metrics(ready: Ready) -> str:
    with urlopen(ready.url.removesuffix("/v1") + "/metrics") as page:  # noqa: S310 - on loopback
        return page.read().decode()


async def test_what_the_file_says_takes_effect(tmp_path: Path) -> None:
    async with FakeEngine() as engine:
        file = read_config(TEXT.format(url=engine.url), "headway.toml")
        async with served(service_of(file, tmp_path, os.environ)) as (ready, _):
            cached, page = await asked_twice(ready)
    assert cached == [None, "hit"]
    assert len(engine.requests) == 1
    assert 'headway_cache_hits_total{rule="faq",source="memory"} 1' in page
    assert "headway_cache_limit_bytes 1048576" in page
    assert 'headway_cache_saved_usd_total{rule="faq"} 0' in page, "an engine of one's own is paid nothing"


async def test_without_the_table_nothing_is_kept(tmp_path: Path) -> None:
    async with FakeEngine() as engine:
        text = TEXT.format(url=engine.url).partition("[cache]")[0]
        async with served(service_of(read_config(text, "headway.toml"), tmp_path, os.environ)) as (ready, _):
            cached, page = await asked_twice(ready)
    assert cached == [None, None]
    assert len(engine.requests) == 2
    assert "headway_cache_" not in page
