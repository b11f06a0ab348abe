"""The configuration read again under load: no call fails, streams under way go on, a broken file changes nothing."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from serving import streamed, whole
from several import HEADWAY, Several, several, under_load

from headway.gateway.fake import FakeEngine

QUESTION: list[Any] = [{"role": "user", "content": "one two"}]


def written(place: Path, *engines: FakeEngine, more: str = "", workers: int = 1, names: str = "abc") -> None:
    replicas = "".join(
        f'[[replicas]]\nid = "{name}"\nurl = "{engine.url}"\nmodels = ["m"]\n'
        for name, engine in zip(names, engines, strict=False)
    )
    (place / "headway.toml").write_text(f"[gateway]\nport = 0\nrecord = false\nworkers = {workers}\n{replicas}{more}")


async def reload(served: Several) -> dict[str, list[str]]:
    status, said = await served.get("/admin/reload", "POST")
    assert status == 200, said
    return json.loads(said)


@asynccontextmanager
async def half_way(gate: asyncio.Event) -> AsyncGenerator[str]:
    """An engine at whose URL every call is answered by a stream that stops after "a" until ``gate`` is set."""

    def event(text: str) -> bytes:
        return b"data: %b\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET"):
            writer.write(whole(b'{"data": []}', b"connection: close\r\n"))
        else:
            writer.write(streamed(event("a"), b""))
            await gate.wait()
            rest = event("b") + b"data: [DONE]\n\n"
            writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@pytest.mark.parametrize("workers", [1, 2])
async def test_replicas_come_and_go_under_load_and_a_stream_under_way_ends_well(tmp_path: Path, workers: int) -> None:
    gate = asyncio.Event()
    async with FakeEngine() as one, FakeEngine() as two, FakeEngine() as three, half_way(gate) as half:
        slow = f'[[replicas]]\nid = "s"\nurl = "{half}"\nmodels = ["s"]\n'
        written(tmp_path, one, workers=workers, more=slow)
        async with several(tmp_path) as served, under_load(served) as load, served.client() as client:
            stream = await client.chat.completions.create(model="s", messages=QUESTION, stream=True)
            assert (await anext(stream)).choices[0].delta.content == "a"
            await load.more(20)
            written(tmp_path, two, three, workers=workers, names="bc", more='[models.n]\nmodels = ["m"]\n')
            assert await reload(served) == {"made": ["[[replicas]]", "[models] and [tiers]"], "restart": []}
            before = len(one.requests)
            load.model = "n"
            await load.more(20)
            assert len(one.requests) <= before + 4  # those that were on their way
            assert two.requests
            assert three.requests
            gate.set()
            assert [event.choices[0].delta.content async for event in stream] == ["b"]
            load.model = "m"
            await load.more(4)
            written(tmp_path, three, workers=workers, names="c")
            served.process.send_signal(signal.SIGHUP)
            await served.log.until("configuration read again", times=2)
            await load.more(20)
            load.over = True
        assert load.failed == []


async def test_a_broken_file_changes_nothing_and_says_where(tmp_path: Path) -> None:
    async with FakeEngine() as one:
        written(tmp_path, one)
        async with several(tmp_path) as served, under_load(served, 1) as load:
            for text, says in (
                ("[gateway]\nport = 0\nrecords = false\n", "headway.toml:3: gateway.records"),
                ("[gateway\n", "headway.toml"),
                ('[gateway]\npolicy = "best"\n[[replicas]]\nurl = "http://127.0.0.1:1"\n', "no routing policy 'best'"),
            ):
                (tmp_path / "headway.toml").write_text(text)
                status, said = await served.get("/admin/reload", "POST")
                assert status == 400
                assert says in json.loads(said)["error"]["message"]
            served.process.send_signal(signal.SIGHUP)
            await served.log.until("configuration not taken over")
            await load.more(3)
            assert load.failed == []
            written(tmp_path, one, more="[gateway.limits]\nbody_bytes = 100\n")
            command = await asyncio.create_subprocess_exec(
                *(HEADWAY, "reload", "--url", served.url),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, _ = await command.communicate()
    assert out.decode() == "Nothing to change; only once it is started anew: [gateway.limits].\n"


async def test_tenants_and_their_limits_change_for_all_workers(tmp_path: Path) -> None:
    more = '[keys]\nstore = "access.db"\n[tenants.acme]\nrpm = %d\n'
    async with FakeEngine() as one:
        written(tmp_path, one, workers=2, more=more % 1000)
        async with several(tmp_path) as served:
            made = await asyncio.create_subprocess_exec(
                *(HEADWAY, "keys", "create", "acme", "--role", "admin", "--keys", "access.db", "--json"),
                cwd=tmp_path,
                stdout=asyncio.subprocess.PIPE,
            )
            key = json.loads((await made.communicate())[0])["secret"]
            written(tmp_path, one, workers=2, more=more % 3)
            command = await asyncio.create_subprocess_exec(
                *(HEADWAY, "reload", "--url", served.url, "--json"),
                env={"HEADWAY_KEY": key},
                stdout=asyncio.subprocess.PIPE,
            )
            out, _ = await command.communicate()
            assert json.loads(out) == {"made": ["[tenants]"], "restart": []}
            async with served.client(key) as client:
                outcomes = await asyncio.gather(
                    *[client.chat.completions.create(model="m", messages=QUESTION) for _ in range(12)],
                    return_exceptions=True,
                )
    refused = [one for one in outcomes if isinstance(one, openai.RateLimitError)]
    assert len(refused) == 9
