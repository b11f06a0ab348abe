"""Where callers need keys, the dashboard shows every tenant's tasks to nobody else than those who may see them."""

import asyncio
import logging
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from running import served
from starlette.testclient import TestClient

from headway.app.dashboard.site import site
from headway.app.service import Service
from headway.core.access import Role, Tenant, TenantId
from headway.core.clock import VirtualClock
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.access import Access
from headway.gateway.door_opening import Keeping
from headway.gateway.fleet import LiveFleet
from headway.gateway.keys import Change, KeySettings, create_key, create_tenant, revoke_key
from headway.gateway.registry import Registry
from headway.gateway.stores import open_registry

ME = Change("cli:me", 1000.0)
PATHS = ("/", "/fleet", "/tasks/a", "/api/tasks", "/api/tasks/a", "/style.css", "/nowhere")


def key_of(registry: Registry, role: Role) -> str:
    return create_key(registry, "acme", KeySettings(role=role), ME).secret


def basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


def status(url: str, headers: dict[str, str]) -> int:
    with closing(HTTPConnection(url.removeprefix("http://"))) as connection:
        connection.request("GET", "/api/tasks", headers=headers)
        return connection.getresponse().status


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    registry = open_registry(str(tmp_path / "access.db"))
    create_tenant(registry, Tenant(id=TenantId("acme")), ME)
    return registry


@pytest.fixture
async def access(registry: Registry) -> AsyncGenerator[Access]:
    access = Access(registry, VirtualClock(0.0))
    await access.refreshed()
    yield access
    await access.close()


def browser(access: Access) -> TestClient:
    return TestClient(site(None, LiveFleet(), access=access), base_url="http://127.0.0.1")


async def test_without_a_key_every_page_asks_for_one(access: Access) -> None:
    client = browser(access)
    for path in PATHS:
        answer = client.get(path)
        assert answer.status_code == 401, path
        challenges = answer.headers.get_list("www-authenticate")
        assert challenges == ['Basic realm="Headway", charset="UTF-8"', "Bearer"]
        assert answer.headers["cache-control"] == "no-store"
        assert "any user name, and the key as the password" in answer.text
    assert client.get("/api/tasks").json()["error"]["code"] == "unknown_key"


@pytest.mark.parametrize("role", ["operator", "admin"])
async def test_who_may_see_all_is_let_in_by_key_or_by_password(registry: Registry, access: Access, role: Role) -> None:
    secret = key_of(registry, role)
    await access.refreshed()
    client = browser(access)
    for headers in (
        {"authorization": f"Bearer {secret}"},
        {"x-api-key": secret},
        basic("", secret),
        basic("ann", secret),
    ):
        assert client.get("/fleet", headers=headers).status_code == 200


@pytest.mark.parametrize("role", ["member", "viewer"])
async def test_who_may_not_see_all_is_refused_and_the_audit_says_so(
    registry: Registry, access: Access, role: Role, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = key_of(registry, role)
    await access.refreshed()
    client = browser(access)
    for path in PATHS:
        answer = client.get(path, headers=basic("ann", secret))
        assert answer.status_code == 403, path
        assert f"has the role {role}" in answer.text
        assert secret not in answer.text
    await access.refreshed()
    (refused,) = registry.audited(9, action="read_all.denied")
    assert (refused.tenant, refused.count) == ("acme", len(PATHS))
    assert secret not in f"{refused} {caplog.text}"


async def test_keys_that_open_nothing(registry: Registry, access: Access) -> None:
    made = create_key(registry, "acme", KeySettings(role="admin"), ME)
    revoke_key(registry, made.key.id, ME)
    await access.refreshed()
    client = browser(access)
    wrong: tuple[dict[str, str], ...] = (
        {"authorization": f"Bearer {made.secret}"},
        basic("ann", "sk-hw-wrong"),
        basic(made.secret, ""),
        {"authorization": "Basic"},
        {"authorization": "Basic !"},
        {"authorization": "Basic YQ"},
        {"authorization": "Digest a=b"},
    )
    for headers in wrong:
        assert client.get("/", headers=headers).status_code == 401, headers
    assert client.get(f"/?key={made.secret}&api_key={made.secret}").status_code == 401


async def test_a_strange_name_is_refused_before_any_key_is_asked_for(access: Access) -> None:
    answer = browser(access).get("/", headers={"host": "evil.example"})
    assert (answer.status_code, "www-authenticate" in answer.headers) == (400, False)


async def test_a_gateway_that_asks_for_keys_asks_at_its_dashboard_too(registry: Registry, tmp_path: Path) -> None:
    operator, member = key_of(registry, "operator"), key_of(registry, "member")
    upstream = Replica(id=ReplicaId("gone"), url="http://127.0.0.1:1/v1")
    keeping = Keeping(keys=str(tmp_path / "access.db"))
    service = Service(upstreams=(upstream,), port=0, store=tmp_path / "spans.db", keeping=keeping)
    async with served(service) as (ready, _):
        asked = [
            await asyncio.to_thread(status, ready.admin or "", headers)
            for headers in (dict[str, str](), basic("ann", member), basic("ann", operator))
        ]
    assert asked == [401, 403, 200]
    registry.close()
