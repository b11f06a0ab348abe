"""Who may administer a gateway, what they are told, and what the audit keeps of it."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from house import House, Opened
from msgspec import Struct
from serving import Raw, Served, serving

from headway.core.access import Role
from headway.core.errors import NotFoundError, StoreError
from headway.gateway.admin import Changed, Order


class _Wish(Struct):
    name: str


class Kettle:
    """Something that can be looked at and changed."""

    def __init__(self) -> None:
        self.named: list[str] = []
        self.seen: list[Order] = []
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.ended = asyncio.Event()

    async def look(self, order: Order) -> object:
        self.seen.append(order)
        return {"names": self.named}

    async def name(self, order: Order) -> Changed:
        name = order.read(_Wish).name
        if name == "away":
            raise StoreError("The shelf is away.", fix="Bring it back.")
        if name == "nobody":
            raise NotFoundError("There is nobody.")
        if name == "broken":
            raise ZeroDivisionError
        self.named.append(name)
        return Changed(answer={"named": name}, subject="kettle", detail=f"now {name}")

    async def slowly(self, order: Order) -> Changed:
        self.began.set()
        await self.may_end.wait()
        self.ended.set()
        return await self.name(order)

    def offer(self, served: Served) -> None:
        admin = served.gateway.admin
        admin.on_show("/admin/kettle", self.look)
        admin.on_change("POST", "/admin/kettle", "kettle.name", self.name)
        admin.on_change("PUT", "/admin/kettle", "kettle.slowly", self.slowly, needs="manage")


def asked(method: str, path: str, body: str = "", extra: str = "", host: str = "127.0.0.1") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\n{extra}content-length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def told(answer: Raw) -> str:
    return answer.error["message"]


@asynccontextmanager
async def open_to_all(host: str = "127.0.0.1") -> AsyncGenerator[tuple[Served, Kettle]]:
    async with serving(host=host) as served:
        kettle = Kettle()
        kettle.offer(served)
        yield served, kettle


async def test_a_caller_on_this_machine_looks_and_changes(caplog: pytest.LogCaptureFixture) -> None:
    async with open_to_all() as (served, kettle):
        with caplog.at_level(logging.INFO):
            changed = await served.ask(asked("POST", "/admin/kettle", '{"name":"bert"}'))
        looked = await served.ask(asked("GET", "/admin/kettle?a=1&b=%20x&c"))
    assert (changed.status, json.loads(changed.body)) == (200, {"named": "bert"})
    assert (looked.status, json.loads(looked.body)) == (200, {"names": ["bert"]})
    assert kettle.seen[0].query == {"a": "1", "b": " x", "c": ""}
    assert kettle.seen[0].actor == "127.0.0.1"
    assert "admin: 127.0.0.1 did kettle.name to kettle (now bert)" in caplog.text


@pytest.mark.parametrize(
    ("extra", "host"),
    [
        ("x-forwarded-for: 10.0.0.9\r\n", "127.0.0.1"),
        ("via: 1.1 proxy\r\n", "127.0.0.1"),
        ("origin: https://evil.example\r\n", "127.0.0.1"),
        ("origin: null\r\n", "127.0.0.1"),
        ("", "rebound.example"),
    ],
)
@pytest.mark.parametrize("listening", ["127.0.0.1", "0.0.0.0"])
async def test_nobody_comes_in_through_a_proxy_or_a_page_of_somebody_elses(
    extra: str, host: str, listening: str
) -> None:
    async with open_to_all(listening) as (served, kettle):
        answer = await served.ask(asked("POST", "/admin/kettle", '{"name":"bert"}', extra, host))
    assert answer.status == 403
    assert kettle.named == []


async def test_what_is_not_there_is_told_with_what_is() -> None:
    async with open_to_all() as (served, _):
        missing = await served.ask(asked("GET", "/admin/teapot"))
        wrong = await served.ask(asked("DELETE", "/admin/kettle"))
    assert missing.status == 404
    assert ["GET /admin/kettle" in told(missing), "POST /admin/kettle" in told(missing)] == [True, True]
    assert (wrong.status, wrong.headers["allow"]) == (405, "GET, POST, PUT")


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ("{", 400, "The body cannot be used"),
        ("", 400, "`name`"),
        ('{"name": 1}', 400, "$.name"),
        ("[" * 5000, 400, "The body cannot be used"),
        ('{"name": "nobody"}', 404, "There is nobody."),
        ('{"name": "away"}', 503, "Bring it back."),
        ('{"name": "broken"}', 500, "ZeroDivisionError"),
    ],
)
async def test_what_went_wrong_is_told_as_json(body: str, status: int, says: str) -> None:
    async with open_to_all() as (served, kettle):
        answer = await served.ask(asked("POST", "/admin/kettle", body))
    assert answer.status == status
    assert says in told(answer)
    assert kettle.named == []


async def test_a_client_that_leaves_does_not_stop_a_change_half_way() -> None:
    async with open_to_all() as (served, kettle):
        async with served.connect() as (_, writer):
            writer.write(asked("PUT", "/admin/kettle", '{"name":"bert"}'))
            await kettle.began.wait()
        kettle.may_end.set()
        async with asyncio.timeout(10):
            await kettle.ended.wait()
    assert kettle.named == ["bert"]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    house = House(tmp_path)
    house.tenant("acme")
    yield house
    house.registry.close()


def with_key(method: str, key: str, body: str = "") -> bytes:
    return asked(
        method, "/admin/kettle", body, f"authorization: Bearer {key}\r\nx-forwarded-for: 10.0.0.9\r\n", "x.org"
    )


@pytest.mark.parametrize(
    ("role", "statuses"),
    [
        ("viewer", (403, 403, 403)),
        ("member", (403, 403, 403)),
        ("operator", (200, 200, 403)),
        ("admin", (200, 200, 200)),
    ],
)
async def test_a_keys_role_decides(house: House, role: Role, statuses: tuple[int, int, int]) -> None:
    key = house.key("acme", role=role)
    async with Opened(house) as door, serving(door=door, host="0.0.0.0") as served:
        kettle = Kettle()
        kettle.may_end.set()
        kettle.offer(served)
        found = [
            (await served.ask(with_key(method, key, body))).status
            for method, body in (("GET", ""), ("POST", '{"name":"a"}'), ("PUT", '{"name":"b"}'))
        ]
    assert tuple(found) == statuses


async def test_without_a_key_not_even_this_machine_comes_in_where_there_are_keys(house: House) -> None:
    async with Opened(house) as door, serving(door=door) as served:
        Kettle().offer(served)
        assert (await served.ask(asked("GET", "/admin/kettle"))).status == 401


async def test_the_audit_has_the_change_when_it_is_answered_and_has_what_was_refused(house: House) -> None:
    admin, member = house.key("acme", role="admin"), house.key("acme")
    async with Opened(house) as door, serving(door=door) as served:
        kettle = Kettle()
        kettle.offer(served)
        for name in ("a", "b"):
            answer = await served.ask(asked("POST", "/admin/kettle", f'{{"name":"{name}"}}', bearer(admin)))
            assert answer.status == 200
        records = house.registry.audited(2, action="kettle.")
        await served.ask(asked("POST", "/admin/kettle", '{"name":"c"}', bearer(member)))
    assert [(record.action, record.subject, record.detail, record.tenant) for record in records] == [
        ("kettle.name", "kettle", "now b", "acme"),
        ("kettle.name", "kettle", "now a", "acme"),
    ]
    assert [record.action for record in house.registry.audited(1)] == ["steer.denied"]


def bearer(key: str) -> str:
    return f"authorization: Bearer {key}\r\n"
