"""Looking at the cache and clearing it while a gateway serves, over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest
from house import House, Opened
from keeping import keeping
from serving import Raw, Served, chat, serving

from headway.core.fleet import ReplicaId
from headway.gateway.caches.figures import Report
from headway.gateway.caches.steering import dropped_as_told
from headway.gateway.fake import FakeEngine
from headway.policy.cache.rules import CacheRule


async def admin(served: Served, method: str, path: str, body: Any = None, key: str = "") -> Raw:  # noqa: ANN401 - any JSON
    text = b"" if body is None else json.dumps(body).encode()
    line = f"authorization: Bearer {key}\r\n" if key else ""
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{line}content-length: {len(text)}\r\n\r\n"
    return await served.ask(head.encode() + text)


async def test_what_it_has_saved_is_told() -> None:
    async with FakeEngine() as engine, serving(engine, cache=keeping(CacheRule(name="faq"))) as served:
        answer, *_ = [await served.ask(chat()) for _ in range(3)]
        told = json.loads((await admin(served, "GET", "/admin/cache")).body)
    assert told["schema"] == "headway.cache/1"
    assert told["memory"]["entries"] == 1
    assert told["memory"]["limit"] == 1 << 20
    assert told["rules"]["faq"]["hits"] == {"memory": 2}
    assert told["rules"]["faq"]["misses"] == 1
    assert told["rules"]["faq"]["bytes_served"] == 2 * len(answer.body)
    assert told["rules"]["faq"]["cost_unknown"] == 2
    assert told["removed"] == {"evicted": 0, "expired": 0, "dropped": 0}
    assert told["shared"] is None


@pytest.mark.parametrize(
    ("what", "gone"),
    [
        ({"tags": ["docs"]}, 1),
        ({"tags": ["other"]}, 0),
        ({"rule": "faq"}, 1),
        ({"rule": "faq", "version": "1"}, 1),
        ({"rule": "faq", "version": "2"}, 0),
        ({"everything": True}, 1),
        ({"tenant": "acme"}, 0),
    ],
)
async def test_answers_are_dropped_by_what_names_them(what: dict[str, Any], gone: int) -> None:
    rule = CacheRule(name="faq", version="1", tags=frozenset({"docs"}))
    async with FakeEngine() as engine, serving(engine, cache=keeping(rule)) as served:
        await served.ask(chat())
        told = json.loads((await admin(served, "POST", "/admin/cache/drop", what)).body)
        again = await served.ask(chat())
    assert told["dropped"] == gone
    assert ("x-headway-cache" in again.headers) == (not gone)


@pytest.mark.parametrize("what", [{}, {"rule": "a", "tags": ["b"]}, {"tags": ["no tag"]}, {"tags": "docs"}, [], "x"])
async def test_what_is_not_clear_drops_nothing_and_says_so(what: Any) -> None:  # noqa: ANN401 - any JSON
    async with FakeEngine() as engine, serving(engine, cache=keeping()) as served:
        await served.ask(chat())
        refused = await admin(served, "POST", "/admin/cache/drop", what)
        again = await served.ask(chat())
    assert refused.status == 400
    assert refused.error["message"]
    assert again.headers["x-headway-cache"] == "hit"


class Both:
    """Two workers, as one of them asks for both: ``other`` is the other."""

    def __init__(self, other: Served) -> None:
        self._other = other

    async def metrics(self) -> bytes:
        return self._other.gateway.metrics_page()

    async def in_flight(self) -> dict[ReplicaId, int]:
        return {}

    async def caches(self) -> list[Report]:
        return []

    async def dropped(self, message: bytes) -> list[int]:
        cache = self._other.gateway.cache
        assert cache is not None
        return [dropped_as_told(cache, message)]


async def test_other_workers_hear_of_a_drop() -> None:
    async with (
        FakeEngine() as engine,
        serving(engine, cache=keeping()) as one,
        serving(engine, cache=keeping()) as other,
    ):
        one.gateway.whole = Both(other)
        for served in (one, other):
            await served.ask(chat())
        told = json.loads((await admin(one, "POST", "/admin/cache/drop", {"everything": True})).body)
        assert (told["dropped"], told["workers"]) == (2, 2)
        assert "x-headway-cache" not in (await other.ask(chat())).headers


async def test_without_a_rule_there_is_nothing_to_look_at() -> None:
    async with FakeEngine() as engine, serving(engine, cache=keeping(CacheRule(name="off", mode="off"))) as served:
        assert (await admin(served, "GET", "/admin/cache")).status == 404


async def test_only_those_who_steer_may_and_it_is_in_the_audit(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.tenant("acme")
    keys = {role: house.key("acme", role=role) for role in ("member", "viewer", "operator", "admin")}
    async with Opened(house) as door, FakeEngine() as engine, serving(engine, door=door, cache=keeping()) as served:
        statuses = {
            role: (
                (await admin(served, "GET", "/admin/cache", key=key)).status,
                (await admin(served, "POST", "/admin/cache/drop", {"tags": ["docs"]}, key)).status,
            )
            for role, key in keys.items()
        }
    audited = house.registry.audited(10, action="cache.")
    house.registry.close()
    assert statuses == {"member": (403, 403), "viewer": (403, 403), "operator": (200, 200), "admin": (200, 200)}
    assert [(record.action, record.subject, record.detail) for record in audited] == [
        ("cache.drop", "answers: tag docs", "0 dropped")
    ] * 2
