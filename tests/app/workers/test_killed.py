"""A worker killed under load, where callers have a budget: none of it is lost, none is doubled, and the rest go on."""

import asyncio
import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import openai
from several import HEADWAY, several, under_load

from headway.core.usage import Usage
from headway.gateway.access_file import AccessFile
from headway.gateway.book_sqlite import SqliteBook
from headway.gateway.fake import FakeEngine, Reply
from headway.policy.limits.periods import counter_name

CALLERS = 6
USED = 10 * 1 + 5 * 2
"""Of a call, in micro-USD: ten tokens of input at 1, five of output at 2."""
RESERVED = 200 * 1 + 50 * 2
"""No more than this is reserved for one: its body has less than 600 bytes, and it lets the model write 50 tokens."""
CONFIG = """
[gateway]
port = 0
workers = 2
store = "spans.db"
[keys]
store = "access.db"
[tenants.acme]
day = "10 USD"
[prices.m]
input = 1.0
output = 2.0
[[replicas]]
id = "r"
url = "{url}"
models = ["m"]
"""


async def new_key(place: Path) -> str:
    made = await asyncio.create_subprocess_exec(
        *(HEADWAY, "keys", "create", "acme", "--keys", "access.db", "--json"),
        cwd=place,
        stdout=asyncio.subprocess.PIPE,
    )
    return json.loads((await made.communicate())[0])["secret"]


async def test_a_killed_worker_loses_and_doubles_no_budget(tmp_path: Path) -> None:
    usage = Usage(input_tokens=10, output_tokens=5, cache_read=0)
    async with FakeEngine(lambda _: Reply(content="done", usage=usage)) as engine:
        (tmp_path / "headway.toml").write_text(CONFIG.format(url=engine.url))
        async with several(tmp_path) as served:
            key = await new_key(tmp_path)
            async with under_load(served, CALLERS, key) as load:
                for killed in (1, 2):
                    await load.more(30)
                    os.kill(served.workers()[0], signal.SIGKILL)
                    await served.log.until("was killed by SIGKILL", times=killed)
                    await load.more(30)  # while it is down
                    await served.log.until("serves (process", times=2 + killed)
    cut_off = [error for error in load.failed if isinstance(error, openai.APIConnectionError)]
    # the key was not yet a second old, and whoever tries unknown keys is slowed
    young = [error for error in load.failed if isinstance(error, openai.AuthenticationError | openai.RateLimitError)]
    assert len(cut_off) + len(young) == len(load.failed)
    assert len(cut_off) <= 2 * CALLERS, Counter(repr(error.__cause__) for error in cut_off)
    book = SqliteBook(AccessFile(tmp_path / "access.db"))
    (use,) = book.uses((counter_name("tenant", "acme", "money", "day", time.time()),))
    book.close()
    assert use.held == 0
    assert load.answered * USED <= use.used <= load.answered * USED + len(cut_off) * RESERVED
    assert not list((tmp_path / "access.db-intents").iterdir())
