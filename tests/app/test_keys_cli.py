"""Keys, tenants and audit from the command line, over a real file."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.gateway.access_file import AccessFile
from headway.gateway.book_sqlite import SqliteBook
from headway.policy.limits.book import Exchange, Held
from headway.policy.limits.periods import counter_name

Run = Callable[..., Any]


@pytest.fixture
def run(headway: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("HEADWAY_KEYS", str(tmp_path / "access.db"))
    return headway


def test_a_secret_is_shown_once_and_kept_nowhere(run: Run, tmp_path: Path) -> None:
    run("tenants", "create", "acme", "--month", "100 USD", "--concurrency", "20")
    made = json.loads(run("keys", "create", "acme", "--day", "5 USD warn 4 USD", "--rpm", "60", "--json").out)
    secret = made["secret"]
    assert secret.startswith("sk-hw-")
    assert len(secret) == len("sk-hw-") + 43
    assert made["key"]["limits"] == {
        "requests_per_minute": {"stop": 60, "warn": None},
        "money_per_day": {"stop": 5_000_000, "warn": 4_000_000},
    }
    listed = run("keys", "list").out
    assert made["key"]["id"] in listed
    assert "5.00 USD (warns at 4.00 USD)" in listed
    for command in ("keys list --json", "tenants list", "tenants list --json", "audit", "audit --json"):
        assert secret not in run(*command.split()).out
    assert all(secret.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_people_see_the_secret_and_what_to_do_next(run: Run) -> None:
    assert "headway keys create acme" in run("tenants", "create", "acme").out
    assert "shown this once" in run("keys", "create", "acme", "--name", "ci", "--model", "small").out


def test_revoke_and_rotate(run: Run) -> None:
    run("tenants", "create", "acme")
    made = json.loads(run("keys", "create", "acme", "--json").out)
    again = json.loads(run("keys", "rotate", made["key"]["id"], "--overlap", "1 h", "--json").out)
    assert again["key"]["id"] == made["key"]["id"]
    assert again["secret"] != made["secret"]
    assert "revoked" in run("keys", "revoke", made["key"]["id"]).out
    assert "revoked" in run("keys", "list").out
    refused = run("keys", "rotate", made["key"]["id"])
    assert (refused.code, "was revoked" in refused.err) == (1, True)


def test_limits_and_switches_of_a_tenant(run: Run) -> None:
    run("tenants", "create", "acme", "--rpm", "60")
    run("tenants", "limit", "acme", "--task-seconds", "2 min", "--task-tokens", "100k")
    (row,) = json.loads(run("tenants", "list", "--json").out)["tenants"]
    assert row["limits"] == {"task_tokens": "100,000 tokens", "task_seconds": "120 s"}
    run("tenants", "disable", "acme")
    assert "switched off" in run("tenants", "list").out
    run("tenants", "enable", "acme")
    assert "active" in run("tenants", "list").out


def test_the_audit_says_who_did_what(run: Run) -> None:
    run("tenants", "create", "acme")
    run("tenants", "create", "other")
    made = json.loads(run("keys", "create", "acme", "--json").out)
    run("keys", "revoke", made["key"]["id"])
    records = json.loads(run("audit", "--tenant", "acme", "--json").out)["records"]
    assert [record["action"] for record in records] == ["key.revoke", "key.create", "tenant.create"]
    assert {record["actor"].partition(":")[0] for record in records} == {"cli"}
    assert "other" not in run("audit", "--action", "key.").out
    assert "tenant.create" in run("audit").out


def test_use_is_shown(run: Run, tmp_path: Path) -> None:
    run("tenants", "create", "acme")
    key = json.loads(run("keys", "create", "acme", "--json").out)["key"]["id"]
    book = SqliteBook(AccessFile(tmp_path / "access.db"))
    book.join("w")
    used = Held(counter_name("key", key, "money", "month", time.time()), "total", 1_250_000, 0)
    book.exchange("w", Exchange(number=1, settled=1, held=(used,)))
    book.close()
    (row,) = json.loads(run("keys", "list", "--json").out)["keys"]
    assert row["used"] == {"month": "1.25 USD"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("keys create nobody", "There is no tenant 'nobody'"),
        ("keys revoke k0", "There is no key 'k0'"),
        ("keys create acme --role king", "There is no role 'king'"),
        ("keys create acme --rpm -1", "--rpm is '-1', which is no count"),
        ("keys create acme --rpm 1.5", "--rpm is '1.5', which is no whole number"),
        ("keys create acme --expires-in soon", "--expires-in is 'soon', which is no time"),
        ("tenants create acme", "There is a tenant 'acme' already"),
        ("tenants create a/b", "'a/b' cannot be a tenant's name"),
        ("tenants limit nobody", "There is no tenant 'nobody'"),
    ],
)
def test_mistakes_are_told(run: Run, words: str, told: str) -> None:
    run("tenants", "create", "acme")
    refused = run(*words.split())
    assert refused.code == 1
    assert told in refused.err


def test_a_tenant_of_a_file_is_there_once_the_gateway_has_started_with_it(run: Run) -> None:
    told = " ".join(run("keys", "create", "acme").err.split())
    assert "headway tenants create acme" in told
    assert "[tenants.acme] is there once the gateway has started with that file" in told


def test_before_there_is_anything(run: Run) -> None:
    assert "headway keys create" in run("keys", "list").out
    assert "headway tenants create" in run("tenants", "list").out
    assert "Nothing" in run("audit").out


def test_an_address_at_which_nothing_can_be_kept_is_refused_and_makes_no_file(
    headway: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = "reddis://:secretpw@127.0.0.1/1"
    for command in (
        ("keys", "list", "--keys", place),
        ("tenants", "create", "acme", "--keys", place),
        ("audit", "--keys", place),
        ("serve", "--no-record", "--no-admin", "--port", "0", "--upstream", "http://127.0.0.1:1", "--keys", place),
    ):
        ended = headway(*command)
        assert ended.code == 1
        assert "reddis://…" in ended.err
        assert "secretpw" not in ended.err + ended.out
    assert list(tmp_path.iterdir()) == []
