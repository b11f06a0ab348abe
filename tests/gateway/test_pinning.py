"""Pins made while a gateway serves: who answers then, for how long, and who hears of it."""

import asyncio
import json
from pathlib import Path

import pytest
from house import House, Opened
from serving import Served, chat, serving
from typer.testing import CliRunner

from headway.app.cli.main import app
from headway.core.clock import VirtualClock
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.fake import FakeEngine
from headway.gateway.naming import Naming
from headway.policy.models.catalog import Alias, catalog
from headway.policy.routing.least_loaded import LeastLoaded


def fleet(engine: FakeEngine) -> Replica:
    return Replica(id=ReplicaId("r0"), url=engine.url, models=("large", "small"))


def naming() -> Naming:
    return Naming(catalog([Alias(name="fast", models=("large",))], []))


def admin(method: str, body: object = None, extra: str = "") -> bytes:
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} /admin/pins HTTP/1.1\r\nhost: 127.0.0.1\r\n{extra}content-length: {len(data)}\r\n\r\n"
    return head.encode() + data


async def headway(*words: str) -> tuple[int, str]:
    result = await asyncio.to_thread(CliRunner().invoke, app, list(words))
    return result.exit_code, result.output if result.exception is None else str(result.exception)


async def asked(served: Served, model: str) -> None:
    assert (await served.ask(chat(model=model))).status == 200


@pytest.mark.parametrize("with_names", [True, False])
async def test_a_pin_holds_until_it_is_taken_and_the_receipt_says_whose_it_is(with_names: bool) -> None:
    names = naming() if with_names else None
    async with FakeEngine() as engine, serving(fleet(engine), naming=names) as served:
        name = "fast" if with_names else "large"
        await asked(served, name)
        code, said = await headway(
            "pin", name, "--to", "small", "--for", "1 h", "--reason", "large is slow", "--url", served.url
        )
        assert (code, said.startswith(f"small answers {name} until ")) == (0, True)
        await asked(served, name)
        code, said = await headway("pins", "--url", served.url)
        assert [word in said for word in (name, "small", "127.0.0.1", "large is slow")] == [True] * 4
        code, said = await headway("unpin", name, "--url", served.url)
        assert (code, said) == (0, f"small answers {name} no more.\n")
        await asked(served, name)
        assert (await headway("pins", "--url", served.url))[1] == "Nothing is pinned.\n"
        code, said = await headway("unpin", name, "--url", served.url)
        assert (code, "There is no such pin" in said) == (1, True)
        spans = await served.spans(calls=3)
    assert [request["model"] for request in engine.requests] == ["large", "small", "large"]
    note = str(spans[1].work)
    assert "small is asked: pinned by 127.0.0.1 until " in note
    assert "large is slow" in note


async def test_a_pin_ends_by_itself() -> None:
    clock = VirtualClock(1000.0)
    async with FakeEngine() as engine, serving(fleet(engine), naming=naming(), clock=clock) as served:
        assert (await served.ask(admin("POST", {"to": "small", "seconds": 60, "model": "fast"}))).status == 200
        await asked(served, "fast")
        clock.advance(60.1)
        await asked(served, "fast")
        assert json.loads((await served.ask(admin("GET"))).body) == {"pins": []}
    assert [request["model"] for request in engine.requests] == ["small", "large"]


async def test_a_pin_outlives_a_new_configuration() -> None:
    async with FakeEngine() as engine, serving(fleet(engine), naming=naming()) as served:
        assert (await served.ask(admin("POST", {"to": "small", "seconds": 60, "model": "large"}))).status == 200
        served.gateway.rewire(LeastLoaded(), None)
        await asked(served, "large")
        served.gateway.rewire(LeastLoaded(), naming())
        await asked(served, "large")
    assert [request["model"] for request in engine.requests] == ["small", "small"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"to": "huge", "seconds": 60}, "No replica serves the model 'huge'"),
        ({"to": "small", "seconds": 0}, "at least a moment and at most a year"),
        ({"to": "small", "seconds": 1e300}, "at least a moment and at most a year"),
        ({"to": "small", "seconds": "soon"}, "The body cannot be used"),
        ({"to": "small"}, "The body cannot be used"),
        ({"to": "small", "seconds": 60, "modle": "fast"}, "The body cannot be used"),
        ({"to": "small", "seconds": 60, "reason": " "}, "A pin needs a reason"),
    ],
)
async def test_what_cannot_be_pinned_is_refused_and_changes_nothing(body: object, told: str) -> None:
    async with FakeEngine() as engine, serving(fleet(engine), naming=naming()) as served:
        answer = await served.ask(admin("POST", body))
        assert (answer.status, told in answer.error["message"]) == (400, True)
        await asked(served, "fast")
    assert engine.requests[0]["model"] == "large"


async def test_other_workers_hear_of_it_also_those_that_come_later() -> None:
    async with FakeEngine() as engine, serving(fleet(engine), naming=naming()) as one:
        assert (await one.ask(admin("POST", {"to": "small", "seconds": 60, "model": "fast"}))).status == 200
        async with serving(fleet(engine), naming=naming()) as two:
            one.gateway.bus.join(two.gateway.bus.hear)
            two.gateway.bus.join(one.gateway.bus.hear)
            one.gateway.bus.hear("pins.asked", b"")  # as a worker does that has just come up
            await asked(two, "fast")
            assert (await two.ask(admin("DELETE", {"model": "fast"}))).status == 200
            await asked(one, "fast")
    assert [request["model"] for request in engine.requests] == ["small", "large"]


async def test_with_keys_only_some_may_pin_a_tenants_pin_is_its_own_and_all_is_audited(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.tenant("acme")
    house.tenant("zeta")
    operator, member = house.key("acme", role="operator"), house.key("zeta")
    async with (
        Opened(house) as door,
        FakeEngine() as engine,
        serving(fleet(engine), door=door, naming=naming()) as served,
    ):
        wanted = {"to": "small", "seconds": 60, "tenant": "zeta", "model": "fast"}
        refused = await served.ask(admin("POST", wanted, f"authorization: Bearer {member}\r\n"))
        assert refused.status == 403
        made = await served.ask(admin("POST", wanted, f"authorization: Bearer {operator}\r\n"))
        assert made.status == 200
        for key in (operator, member):
            answer = await served.ask(chat(f"authorization: Bearer {key}\r\n", model="fast"))
            assert answer.status == 200
    assert [request["model"] for request in engine.requests] == ["large", "small"]
    rows = house.registry.audited(10, action="pin.put")
    assert [row.subject for row in rows] == ["model fast, tenant zeta"]
    house.registry.close()
