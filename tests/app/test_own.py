"""What a tenant sees of itself over HTTP, and that no key, path, name or header shows it anything of another's."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec import Struct
from running import served

from headway.app.config.reading import read_config
from headway.app.config.serving import service_of
from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine, Reply
from headway.trace.store import Store

FILE = """
[gateway]
port = 0
admin = false
store = "spans.db"

[keys]
store = "access.db"

[tenants.acme]
month = "100 USD warn 80 USD"

[tenants.mallory]

[prices.m]
input = 1.0
output = 2.0

[[replicas]]
id = "a"
url = "{url}"
models = ["m"]
"""
USAGE = Usage(input_tokens=1_000_000, output_tokens=500_000, cache_read=400_000)
"""Two dollars."""


class House(Struct):
    """A gateway with two tenants, and a key of each role."""

    http: httpx2.AsyncClient
    keys: dict[str, str]
    """By tenant and role."""

    async def get(self, path: str, who: str, **headers: str) -> httpx2.Response:
        return await self.http.get(path, headers={"authorization": f"Bearer {self.keys[who]}", **headers})

    async def call(self, who: str, task: str, text: str = "hi") -> httpx2.Response:
        body = {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 9}
        headers = {"authorization": f"Bearer {self.keys[who]}", "x-headway-task": task}
        return await self.http.post("/v1/chat/completions", json=body, headers=headers)

    async def tasks(self, who: str, count: int) -> list[dict[str, Any]]:
        """The list, once it has so many."""
        async with asyncio.timeout(10):
            while True:
                told = (await self.get("/v1/headway/tasks", who)).json()["tasks"]
                if len(told) >= count:
                    return told


@pytest.fixture
async def house(tmp_path: Path, headway: Callable[..., Any]) -> AsyncGenerator[House]:
    async with opened(tmp_path, headway) as house:
        yield house


@asynccontextmanager
async def opened(place: Path, headway: Callable[..., Any], more: str = "") -> AsyncGenerator[House]:
    async with FakeEngine(lambda _: Reply(content="done", usage=USAGE)) as engine:
        service = service_of(read_config(FILE.format(url=engine.url) + more, "headway.toml"), place, {})
        async with served(service):  # makes the tenants
            pass
        keys: dict[str, str] = {}
        for tenant, role in (("acme", "viewer"), ("acme", "member"), ("mallory", "viewer"), ("mallory", "member")):
            told = headway("keys", "create", tenant, "--role", role, "--keys", str(place / "access.db"), "--json").out
            keys[f"{tenant} {role}"] = json.loads(told)["secret"]
        async with (
            served(service) as (ready, _),
            httpx2.AsyncClient(verify=False, base_url=ready.url.removesuffix("/v1")) as http,
        ):
            yield House(http, keys)


async def test_a_viewer_sees_its_tenants_tasks_and_one_of_them_explained(house: House) -> None:
    assert (await house.call("acme member", "report")).status_code == 200
    assert (await house.call("mallory member", "report")).status_code == 200
    (task,) = await house.tasks("acme viewer", 1)
    assert task["task"].startswith("report@")
    assert (task["calls"], task["tokens"], task["models"]) == (1, 1_500_000, ["m"])
    for name in (task["task"], "report"):
        told = (await house.get(f"/v1/headway/tasks/{name}", "acme viewer")).json()
        assert told["task"] == task["task"]
    refused = await house.call("acme viewer", "another")
    assert refused.status_code == 403, "it looks, and calls no models"


async def test_its_limits_and_use_with_those_of_its_keys(house: House) -> None:
    await house.call("acme member", "report")
    async with asyncio.timeout(10):
        while True:
            told = (await house.get("/v1/headway/use", "acme viewer")).json()
            if told["tenant"]["money_this_month"]["used"]:
                break
    assert told["schema"] == "headway.use/1"
    assert told["tenant"]["id"] == "acme"
    assert told["tenant"]["limits"] == {"money_per_month": {"stop": 100_000_000, "warn": 80_000_000}}
    assert told["tenant"]["money_this_month"]["used"] == 2_000_000
    assert told["tenant"]["money_today"] is None, "no limit has it counted"
    assert sorted(key["role"] for key in told["keys"]) == ["member", "viewer"]
    assert not any(secret[6:20] in json.dumps(told) for secret in house.keys.values())


async def test_its_metrics(house: House) -> None:
    for _ in range(2):
        await house.call("acme member", "report")
    await house.call("mallory member", "theirs")
    await house.tasks("mallory member", 1)
    page = (await house.get("/v1/headway/metrics", "acme viewer")).text
    samples = [line for line in page.splitlines() if not line.startswith("#")]
    assert 'headway_tenant_requests_total{tenant="acme",gen_ai_request_model="m",status="ok"} 2' in samples
    assert (
        'headway_tenant_tokens_total{tenant="acme",gen_ai_request_model="m",gen_ai_token_type="cached"} 800000'
        in samples
    )
    assert all('tenant="acme"' in line for line in samples)
    assert (await house.get("/metrics", "acme viewer")).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/v1/headway/tasks/secret@TAG",
        "/v1/headway/tasks/secret",
        "/v1/headway/tasks/SECRET_ID",
        "/v1/headway/tasks/",
        "/v1/headway/tasks?tenant=acme",
        "/v1/headway/tasks/secret?tenant=acme",
        "/v1/headway/tasks/..%2Ftasks%2Fsecret@TAG",
        "/v1/headway/tasks/%27%20OR%20tenant%3D%27acme",
        "/v1/headway/tasks/%25",
        "/v1/headway/tasks/s",
        "/v1/headway/use?tenant=acme",
        "/v1/headway/use/acme",
        "/v1/headway/metrics?tenant=acme",
        "/v1/headway/metrics/acme",
    ],
)
async def test_nothing_of_anothers_is_seen_whatever_is_asked(house: House, path: str) -> None:
    answer = await house.call("acme member", "secret", "hush")
    await house.call("mallory member", "mine")
    (theirs,) = await house.tasks("acme viewer", 1)
    (mine,) = await house.tasks("mallory viewer", 1)
    tag = theirs["task"].partition("@")[2]
    asked = path.replace("SECRET_ID", theirs["task"]).replace("TAG", tag)
    forged = {"x-headway-tenant": "acme", "x-tenant": "acme", "x-headway-task": "secret"}
    told = await house.get(asked, "mallory viewer", **forged)
    assert answer.json()["id"] not in told.text
    if path.startswith("/v1/headway/tasks/") and path != "/v1/headway/tasks/":
        message = told.json()["error"]["message"]
        assert told.status_code == 404
        assert message.startswith("There is no task ")
        assert message.endswith(" of yours. GET /v1/headway/tasks lists them."), "it tells whether there is one"
    else:
        assert told.status_code == 200
        assert "acme" not in told.text
        assert tag not in told.text
        assert "mallory" in told.text or mine["task"] in told.text


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/v1/headway/tasks?limit=0", 400, "Give 1 to 1000"),
        ("/v1/headway/tasks?limit=99999999999999999999", 400, "Give 1 to 1000"),
        ("/v1/headway/tasks?limit=x", 400, "Give 1 to 1000"),
        ("/v1/headway/", 404, "GET /v1/headway/metrics, /v1/headway/tasks, /v1/headway/use"),
        ("/v1/headway/keys", 404, "GET /v1/headway/metrics"),
    ],
)
async def test_what_cannot_be_shown_says_so(house: House, path: str, status: int, says: str) -> None:
    told = await house.get(path, "acme viewer")
    assert told.status_code == status
    assert says in told.json()["error"]["message"]


async def test_it_can_be_looked_at_only_and_with_a_key(house: House) -> None:
    headers = {"authorization": f"Bearer {house.keys['acme member']}"}
    told = await house.http.delete("/v1/headway/tasks", headers=headers)
    assert (told.status_code, told.headers["allow"]) == (405, "GET")
    assert (await house.http.get("/v1/headway/tasks")).status_code == 401
    assert (await house.http.get("/v1/headway/tasks", headers={"x-api-key": "sk-hw-guessed"})).status_code == 401


async def test_without_keys_there_are_no_tenants(tmp_path: Path) -> None:
    async with FakeEngine() as engine:
        text = f'[gateway]\nport = 0\nadmin = false\nstore = "s.db"\n[[replicas]]\nurl = "{engine.url}"\n'
        service = service_of(read_config(text, "headway.toml"), tmp_path, {})
        async with served(service) as (ready, _), httpx2.AsyncClient(verify=False, base_url=ready.url) as http:
            told = await http.get("/headway/tasks")
    assert told.status_code == 404
    assert "there are no tenants" in told.json()["error"]["message"]


async def test_garbage_without_a_key_is_counted_and_fills_no_store(tmp_path: Path, headway: Callable[..., Any]) -> None:
    async with opened(tmp_path, headway, "[gateway.limits]\nbody_bytes = 100\n") as house:
        url = house.http.base_url
        for _ in range(20):
            reader, writer = await asyncio.open_connection(url.host, url.port)
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 101\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 413 ")
            writer.close()
            await writer.wait_closed()
        headers = {"authorization": f"Bearer {house.keys['acme member']}"}
        known = await house.http.post("/v1/chat/completions", content=b"x" * 101, headers=headers)
        assert known.status_code == 413
        (task,) = await house.tasks("acme viewer", 1)
        assert (task["calls"], task["refused"], task["tokens"]) == (1, True, 0)
        operator = headway(
            "keys", "create", "acme", "--role", "operator", "--keys", str(tmp_path / "access.db"), "--json"
        ).out
        house.keys["operator"] = json.loads(operator)["secret"]
        async with asyncio.timeout(10):
            while (page := await house.get("/metrics", "operator")).status_code != 200:
                pass
        assert 'headway_turned_away_total{error_type="body_too_large"} 20' in page.text
    with Store(tmp_path / "spans.db", readonly=True) as store:
        assert len(store.tasks(100)) == 1
