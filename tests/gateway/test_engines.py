"""The embedded fleet, on the real engine: it serves, comes back, and leaves nothing behind."""

import asyncio
import json
import os
import select
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam
from openai.types.shared_params import ResponseFormatJSONSchema

from headway.core.errors import BadInputError, EngineError, MissingExtraError, NotFoundError
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.engine import Supervision
from headway.gateway.engines import EmbeddedFleet, EngineSpec

Change = tuple[ReplicaId, bool, str]
FIRST = ReplicaId("embedded-1")
QUICK = Supervision(backoff_seconds=0.01, longest_backoff_seconds=0.02, restarts=2)
QUESTION: list[ChatCompletionMessageParam] = [
    {"role": "system", "content": "You answer in one short sentence. " * 4},
    {"role": "user", "content": "What is the capital of France?"},
]


class Watched(EmbeddedFleet):
    """A fleet that keeps what it told in a queue, so that a test can wait for it."""

    def __init__(self, spec: EngineSpec, count: int, supervision: Supervision) -> None:
        super().__init__(spec, count, self._note, supervision=supervision)
        self.changes: asyncio.Queue[Change] = asyncio.Queue()

    def _note(self, replica: ReplicaId, healthy: bool, reason: str) -> None:
        self.changes.put_nowait((replica, healthy, reason))

    async def next(self) -> Change:
        async with asyncio.timeout(60):
            return await self.changes.get()


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the temporary folders of this test go, so that one left behind is seen."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@asynccontextmanager
async def fleet_of(
    count: int, weights: Path, supervision: Supervision = QUICK
) -> AsyncGenerator[tuple[Watched, tuple[Replica, ...]]]:
    fleet = Watched(EngineSpec(weights=weights, context=2048, cache_mib=64, threads=1), count, supervision)
    try:
        replicas = await fleet.start()
        for _ in replicas:
            _, healthy, _ = await fleet.next()
            assert healthy
        yield fleet, replicas
    finally:
        await fleet.stop()


def client(replica: Replica) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=replica.url, api_key="none", max_retries=0)


def inside(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.model
async def test_replicas_answer_with_usage_timings_and_cached_tokens(weights: Path) -> None:
    async with fleet_of(2, weights) as (fleet, replicas):
        assert [(replica.id, replica.engine, replica.models) for replica in replicas] == [
            ("embedded-1", "llama.cpp", ("embedded",)),
            ("embedded-2", "llama.cpp", ("embedded",)),
        ]
        assert len(set(fleet.pids().values())) == len({replica.url for replica in replicas}) == 2
        async with client(replicas[0]) as one, client(replicas[1]) as two:
            first = await one.chat.completions.create(model="embedded", messages=QUESTION, max_tokens=8)
            again = await one.chat.completions.create(model="embedded", messages=QUESTION, max_tokens=8)
            other = await two.chat.completions.create(model="embedded", messages=QUESTION, max_tokens=8)
            assert [model.id async for model in two.models.list()] == ["embedded"]
    for answer, warm in ((first, False), (again, True), (other, False)):
        assert answer.choices[0].message.content
        assert answer.usage is not None
        assert answer.usage.prompt_tokens_details is not None
        cached = answer.usage.prompt_tokens_details.cached_tokens
        timings = (answer.model_extra or {})["timings"]
        assert timings["cache_n"] == cached
        assert timings["cache_n"] + timings["prompt_n"] == answer.usage.prompt_tokens
        assert timings["predicted_n"] == answer.usage.completion_tokens
        assert cached == (answer.usage.prompt_tokens - 1 if warm else 0)  # the last token is always computed


@pytest.mark.model
async def test_streams_end_with_timings_and_schemas_bind(weights: Path) -> None:
    bound: ResponseFormatJSONSchema = {
        "type": "json_schema",
        "json_schema": {
            "name": "answer",
            "schema": {
                "type": "object",
                "properties": {"city": {"type": "string", "maxLength": 8}, "sure": {"type": "boolean"}},
                "required": ["city", "sure"],
                "additionalProperties": False,
            },
        },
    }
    async with fleet_of(1, weights) as (_, (replica,)), client(replica) as openai:
        stream = await openai.chat.completions.create(model="embedded", messages=QUESTION, max_tokens=8, stream=True)
        chunks = [chunk async for chunk in stream]
        answer = await openai.chat.completions.create(
            model="embedded", messages=QUESTION, max_tokens=64, response_format=bound
        )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert ["timings" in (chunk.model_extra or {}) for chunk in chunks].count(True) == 1
    assert answer.choices[0].finish_reason == "stop"
    values = json.loads(answer.choices[0].message.content or "")
    assert {key: type(value) for key, value in values.items()} == {"city": str, "sure": bool}


@pytest.mark.model
async def test_a_killed_replica_comes_back_at_its_url_while_the_other_serves(weights: Path) -> None:
    async with fleet_of(2, weights) as (fleet, replicas):
        before = fleet.pids()
        os.kill(before[FIRST], signal.SIGKILL)
        assert await fleet.next() == (FIRST, False, "was killed by SIGKILL; restart 1 of 2")
        assert FIRST not in fleet.pids()
        name, healthy, _ = await fleet.next()
        assert (name, healthy) == (FIRST, True)
        after = fleet.pids()
        assert after[FIRST] != before[FIRST]
        assert after[replicas[1].id] == before[replicas[1].id]
        async with client(replicas[0]) as openai:
            answer = await openai.chat.completions.create(model="embedded", messages=QUESTION, max_tokens=4)
        assert answer.usage is not None
        assert answer.usage.completion_tokens == 4


@pytest.mark.model
async def test_a_hung_replica_is_killed_and_comes_back(weights: Path) -> None:
    rules = Supervision(backoff_seconds=0.01, probe_seconds=0.5, misses=2)
    async with fleet_of(1, weights, rules) as (fleet, _):
        hung = fleet.pids()[FIRST]
        os.kill(hung, signal.SIGSTOP)
        assert await fleet.next() == (
            FIRST,
            False,
            "left 2 health probes unanswered and was killed; restart 1 of 5",
        )
        assert not is_running(hung)
        assert (await fleet.next())[:2] == (FIRST, True)


@pytest.mark.model
async def test_stop_leaves_no_process_folder_or_port(weights: Path, temporary: Path) -> None:
    async with fleet_of(1, weights) as (fleet, (replica,)):
        pids, (folder,) = fleet.pids(), inside(temporary)
        port = int(replica.url.removesuffix("/v1").rpartition(":")[2])
        assert is_running(pids[FIRST])
        assert folder.stat().st_mode & 0o077 == 0, "others can read saved prompts"
        await fleet.stop()
        assert not is_running(pids[FIRST])
        assert not folder.exists()
        assert fleet.pids() == {}
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # closed connections may still linger
            free.bind(("127.0.0.1", port))
        await fleet.stop()  # once more is harmless


@pytest.mark.model
async def test_a_start_that_is_cancelled_leaves_nothing(weights: Path, temporary: Path) -> None:
    pids: list[int] = []

    def cancel_at_the_first(_replica: ReplicaId, healthy: bool, _reason: str) -> None:
        assert healthy
        pids.extend(fleet.pids().values())
        starting.cancel()

    fleet = EmbeddedFleet(EngineSpec(weights=weights, threads=1), 2, cancel_at_the_first)
    starting = asyncio.create_task(fleet.start())
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert pids
    assert not any(is_running(pid) for pid in pids)
    assert inside(temporary) == []


PARENT = """
import asyncio, sys
from pathlib import Path
import uvloop
from headway.gateway.engines import EmbeddedFleet, EngineSpec

async def main():
    fleet = EmbeddedFleet(EngineSpec(weights=Path(sys.argv[1])), 2, lambda *change: None)
    await fleet.start()
    print(*fleet.pids().values(), flush=True)
    await asyncio.Event().wait()

uvloop.run(main())
"""


@pytest.mark.model
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes that are not its children by pidfd")
async def test_a_killed_parent_takes_its_engines_along(weights: Path, temporary: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(weights)),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert parent.stdout is not None
    pids = [int(pid) for pid in (await parent.stdout.readline()).split()]
    ends = [os.pidfd_open(pid) for pid in pids]
    try:
        assert len(pids) == len(inside(temporary)) == 2
        parent.kill()
        assert await parent.wait() == -signal.SIGKILL
        for end in ends:
            readable, _, _ = await asyncio.to_thread(select.select, [end], [], [], 20)
            assert readable == [end], "an engine outlived its parent"
        assert inside(temporary) == []
    finally:
        for end in ends:
            os.close(end)


@pytest.mark.model
async def test_broken_weights_end_the_start_with_llama_cpps_own_words(
    weights: Path, tmp_path: Path, temporary: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    with weights.open("rb") as whole:
        broken.write_bytes(whole.read(3_000_000))
    fleet = Watched(EngineSpec(weights=broken), 2, QUICK)
    with pytest.raises(EngineError, match="did not start: it ended with status 1") as caught:
        await fleet.start()
    assert "model is corrupted or incomplete" in caught.value.what
    assert str(broken) in caught.value.fix
    assert fleet.changes.empty()
    assert inside(temporary) == []


@pytest.mark.model
async def test_a_crash_loop_ends(weights: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    served = tmp_path / "served.gguf"
    served.symlink_to(weights)
    async with fleet_of(1, served) as (fleet, _):
        broken = tmp_path / "broken.gguf"
        broken.write_bytes(b"GGUF" + b"\xff" * 1000)
        broken.replace(served)
        os.kill(fleet.pids()[FIRST], signal.SIGKILL)
        assert [await fleet.next() for _ in range(3)] == [
            (FIRST, False, "was killed by SIGKILL; restart 1 of 2"),
            (FIRST, False, "ended with status 1; restart 2 of 2"),
            (FIRST, False, "ended with status 1; gave up after 2 restarts"),
        ]
        assert fleet.pids() == {}
    (gave_up,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "gave up after 2 restarts. Its last words:" in gave_up
    assert "failed to load model" in gave_up


async def test_other_files_than_weights_are_refused_before_any_process_starts(tmp_path: Path) -> None:
    page = tmp_path / "page.gguf"
    page.write_text("<html>")
    with pytest.raises(BadInputError, match="starts with b'<htm', not b'GGUF'"):
        await Watched(EngineSpec(weights=page), 1, QUICK).start()
    with pytest.raises(NotFoundError, match="No such file"):
        await Watched(EngineSpec(weights=tmp_path / "none.gguf"), 1, QUICK).start()


async def test_without_xllamacpp_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtraError, match=r"headway\[embedded\]"):
        await Watched(EngineSpec(weights=tmp_path / "any.gguf"), 1, QUICK).start()


@pytest.mark.parametrize(
    ("spec", "count", "complaint"),
    [
        (EngineSpec(weights=Path("w")), 0, "replicas=0"),
        (EngineSpec(weights=Path("w"), slots=0), 1, "slots=0"),
        (EngineSpec(weights=Path("w"), context=-1), 1, "context=-1"),
        (EngineSpec(weights=Path("w"), threads=0), 1, "threads=0"),
        (EngineSpec(weights=Path("w"), cache_mib=-1), 1, "cache_mib=-1"),
    ],
)
def test_sizes_below_the_least_are_refused(spec: EngineSpec, count: int, complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint):
        EmbeddedFleet(spec, count, lambda _id, _healthy, _reason: None)
