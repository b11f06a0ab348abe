"""Who is recognised, what they may do, and what is recorded when they may not."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from headway.core.access import Caller, Role, Tenant, TenantId, may
from headway.core.clock import VirtualClock
from headway.gateway.access import Access
from headway.gateway.access_file import AccessFile
from headway.gateway.credentials import secret_of
from headway.gateway.keys import Change, KeySettings, NewKey, create_key, create_tenant, rotate_key
from headway.gateway.registry import Registry, SqliteDatabase
from headway.gateway.responses import Failure
from headway.policy.guard import TRIES
from headway.policy.limits.refused import Refused

ME = Change("cli:me", 1000.0)
HERE = "192.0.2.7"


class Gate:
    """An access over a real file, at a time that the test sets."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = VirtualClock(5000.0)
        self.wall = 2000.0
        self.registry = self.opened()
        self.access = Access(self.opened(), self.clock, wall=lambda: self.wall)
        create_tenant(self.registry, Tenant(id=TenantId("acme"), models=("small", "large")), ME)
        create_tenant(self.registry, Tenant(id=TenantId("off"), disabled=True), ME)

    def opened(self) -> Registry:
        return Registry(SqliteDatabase(AccessFile(self.path)))

    def key(self, settings: KeySettings | None = None, tenant: str = "acme") -> NewKey:
        return create_key(self.registry, tenant, settings or KeySettings(), ME)

    def ask(self, secret: str, address: str = HERE) -> Caller | Failure:
        return self.access.recognise({b"authorization": b"Bearer " + secret.encode()}, address)

    def refused(self, secret: str, address: str = HERE) -> Failure:
        answer = self.ask(secret, address)
        assert isinstance(answer, Failure)
        return answer

    def admitted(self, secret: str) -> Caller:
        answer = self.ask(secret)
        assert isinstance(answer, Caller), answer
        return answer


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncGenerator[Gate]:
    gate = Gate(tmp_path / "access.db")
    yield gate
    await gate.access.close()
    gate.registry.close()


async def test_a_key_that_is_known_is_recognised(gate: Gate) -> None:
    made = gate.key()
    await gate.access.start()
    assert gate.admitted(made.secret).key == made.key
    assert gate.admitted(made.secret).tenant.id == "acme"


@pytest.mark.parametrize("secret", ["", "x", "sk-hw-", "sk-hw-" + "A" * 43, "é" * 100, "A" * 60_000])
async def test_all_other_keys_are_not(gate: Gate, secret: str) -> None:
    gate.key()
    await gate.access.start()
    refused = gate.refused(secret)
    assert (refused.status, refused.error) == (401, "unknown_key")
    assert "Send `Authorization: Bearer KEY`" in refused.message
    assert not secret or len(secret) < 2 or secret not in refused.message


async def test_a_request_without_a_key_is_told_how_to_send_one(gate: Gate) -> None:
    await gate.access.start()
    refused = gate.access.recognise({}, HERE)
    assert isinstance(refused, Failure)
    assert refused.message.startswith("This gateway asks for a key, and the request has none.")


async def test_expired_revoked_and_switched_off(gate: Gate) -> None:
    expiring, off = gate.key(KeySettings(expires=3000.0)), gate.key(tenant="off")
    rotated = gate.key()
    new = rotate_key(gate.registry, rotated.key.id, 1500.0, ME)
    await gate.access.start()
    gate.admitted(expiring.secret)
    gate.admitted(rotated.secret)
    gate.wall = 3000.0
    assert "has expired" in gate.refused(expiring.secret).message
    assert "has expired" in gate.refused(rotated.secret).message
    gate.admitted(new.secret)
    assert gate.refused(off.secret).status == 403


async def test_roles(gate: Gate) -> None:
    viewer, member = gate.key(KeySettings(role="viewer")), gate.key()
    await gate.access.start()
    problem = gate.access.forbidden_model(gate.admitted(viewer.secret), "small")
    assert problem is not None
    assert "has the role viewer" in problem.message
    assert gate.access.forbidden_model(gate.admitted(member.secret), "small") is None
    assert gate.access.forbidden(gate.admitted(member.secret), "manage") is not None


def test_what_each_role_may() -> None:
    roles: list[Role] = ["admin", "operator", "member", "viewer"]
    assert [role for role in roles if may(role, "manage")] == ["admin"]
    assert [role for role in roles if may(role, "steer")] == ["admin", "operator"]
    assert [role for role in roles if may(role, "read_all")] == ["admin", "operator"]
    assert [role for role in roles if may(role, "call")] == ["admin", "operator", "member"]
    assert all(may(role, "read") for role in roles)


async def test_models_of_key_and_tenant(gate: Gate) -> None:
    narrow, wide = gate.key(KeySettings(models=("small", "other"))), gate.key()
    await gate.access.start()
    problem = gate.access.forbidden_model(gate.admitted(narrow.secret), "large")
    assert problem is not None
    assert problem.message.endswith("may not call the model 'large'. It may call: small.")
    assert gate.access.forbidden_model(gate.admitted(narrow.secret), "other") is not None
    assert gate.access.forbidden_model(gate.admitted(wide.secret), "large") is None


async def test_guessing_is_slowed_and_told_and_a_right_key_still_served(gate: Gate) -> None:
    made = gate.key()
    await gate.access.start()
    answers = [gate.refused(f"guess {n}") for n in range(TRIES + 5)]
    assert [answer.status for answer in answers] == [401] * TRIES + [429] * 5
    assert answers[-1].headers == ((b"retry-after", b"61"),)
    gate.admitted(made.secret)
    assert gate.refused("guess", "192.0.2.8").status == 401
    gate.clock.advance(60)
    assert gate.refused("guess").status == 401


async def test_every_refusal_is_recorded_and_alike_ones_together(gate: Gate) -> None:
    viewer = gate.key(KeySettings(role="viewer"))
    await gate.access.start()
    caller = gate.admitted(viewer.secret)
    for _ in range(3):
        gate.access.forbidden(caller, "call")
    for n in range(TRIES + 5):
        gate.refused(f"guess {n}")
    gate.clock.advance(60)
    gate.refused("one more, which also stands for the five that were told to wait")
    refused = Refused(
        why="used",
        counter="key:k/money/2026-11-30",
        owner="key k",
        measure="money",
        window="day",
        stop=5_000_000,
        used=5_000_000,
        reserved=0,
        need=1,
        wait=3600.0,
    )
    problem = gate.access.limited(caller, refused)
    assert problem.status == 429
    assert problem.headers == ((b"retry-after", b"3600"), (b"x-should-retry", b"false"))
    await gate.access.close()
    records = gate.registry.audited(10)
    assert [(record.action, record.subject, record.count) for record in records[:3]] == [
        ("call.limited", "key:k/money/2026-11-30", 1),
        ("key.unknown", "", TRIES + 6),
        ("call.denied", caller.key.id, 3),
    ]
    assert "5.00 USD a day" in records[0].detail
    assert records[1].actor == HERE
    assert not any("guess" in f"{record}" for record in records)


async def test_what_is_changed_is_noticed_while_running(gate: Gate) -> None:
    await gate.access.start()
    made = gate.key()
    await gate.access.refreshed()
    gate.admitted(made.secret)


@pytest.mark.parametrize(
    ("fields", "secret"),
    [
        ({b"authorization": b"Bearer abc"}, b"abc"),
        ({b"authorization": b"bearer  abc "}, b"abc"),
        ({b"x-api-key": b"abc"}, b"abc"),
        ({b"api-key": b"abc"}, b"abc"),
        ({b"authorization": b"Basic abc", b"x-api-key": b"k"}, b"k"),
        ({b"authorization": b"Bearer "}, None),
        ({}, None),
    ],
)
def test_where_a_secret_is_looked_for(fields: dict[bytes, bytes], secret: bytes | None) -> None:
    assert secret_of(fields) == secret
