"""One tenant tries to be given, to see or to spoil another's answers, in every place where answers are."""

import pytest
from caching import Rig, said

from headway.gateway.caches.outcomes import Given, Ticket
from headway.policy.cache.labels import Drop
from headway.policy.cache.rules import CacheRule

VICTIM, ATTACKER = "acme", "mallory"


def test_equal_questions_of_two_tenants_have_each_its_own_answer_in_memory() -> None:
    rig = Rig()
    rig.asked_and_answered(tenant=VICTIM, answer="acme's secret")
    theirs = rig.ask(tenant=ATTACKER)
    assert isinstance(theirs.outcome, Ticket)
    rig.answer(theirs.ticket, "mallory's lie")
    assert said(rig.ask(tenant=VICTIM).given) == "acme's secret"


def test_nor_does_one_wait_for_the_others_call() -> None:
    rig = Rig()
    victim, attacker = rig.ask(tenant=VICTIM), rig.ask(tenant=ATTACKER)
    assert isinstance(attacker.outcome, Ticket)
    rig.answer(victim.ticket, "acme's secret")
    assert attacker.told == []


@pytest.mark.parametrize("name", ["acme\n", "acm", "acmee", "tenant:acme", "acme\0", "", "ACME", "credential:"])
def test_no_name_of_a_tenant_is_taken_for_another(name: str) -> None:
    rig = Rig()
    rig.asked_and_answered(tenant=VICTIM)
    assert isinstance(rig.ask(tenant=name).outcome, Ticket)


def test_a_caller_without_a_tenant_is_no_tenant_and_a_wrong_credential_opens_nothing() -> None:
    rig = Rig()
    rig.asked_and_answered(tenant=VICTIM)
    for fields in ({}, {b"authorization": b"acme"}, {b"authorization": b"tenant:acme"}, {b"x-api-key": b"acme"}):
        assert isinstance(rig.ask(tenant=None, fields=fields).outcome, Ticket)


@pytest.mark.parametrize(
    "field", ["user", "metadata", "safety_identifier", "prompt_cache_key", "store", "service_tier", "tenant"]
)
def test_nothing_in_the_body_makes_one_tenant_another(field: str) -> None:
    rig = Rig()
    rig.asked_and_answered(tenant=VICTIM)
    forged = {"tenant": VICTIM} if field == "metadata" else VICTIM
    assert isinstance(rig.ask(tenant=ATTACKER, more={field: forged}).outcome, Ticket)


@pytest.mark.parametrize(
    "header",
    [b"x-headway-tenant", b"x-tenant", b"x-headway-cache", b"x-headway-cache-key", b"x-headway-cache-tenant"],
)
def test_nor_does_a_header(header: bytes) -> None:
    rig = Rig()
    rig.asked_and_answered(tenant=VICTIM)
    assert isinstance(rig.ask(tenant=ATTACKER, fields={header: VICTIM.encode()}).outcome, Ticket)


@pytest.mark.parametrize(
    "tags", [b"docs", b"in\0tenant:acme\0tag\0docs", b"in\0tenant:acme", b"all", b"tag\0docs", b"rule\0all"]
)
def test_forged_tags_neither_find_nor_replace_nor_drop_anothers_answers(tags: bytes) -> None:
    rig = Rig()
    docs = {b"x-headway-cache-tags": b"docs"}
    rig.asked_and_answered(tenant=VICTIM, answer="acme's", fields=docs)
    attempt = rig.ask(tenant=ATTACKER, fields={b"x-headway-cache-tags": tags})
    if attempt.outcome is not None:
        rig.answer(attempt.ticket, "mallory's lie")
    assert rig.cache.drop(Drop(tags=("docs",), tenant=ATTACKER)) == (tags == b"docs")
    assert rig.cache.drop(Drop(tenant=ATTACKER)) <= 1
    assert said(rig.ask(tenant=VICTIM).given) == "acme's"


def test_one_tenants_drop_leaves_anothers_call_under_way_alone() -> None:
    rig = Rig()
    leader, waiting = rig.ask(tenant=VICTIM), rig.ask(tenant=VICTIM)
    rig.cache.drop(Drop(tenant=ATTACKER))
    rig.answer(leader.ticket, "acme's")
    assert said(waiting.given) == "acme's"
    assert isinstance(rig.ask(tenant=VICTIM).outcome, Given)


def test_a_request_for_a_new_answer_makes_only_ones_own_new() -> None:
    rig = Rig(CacheRule(name="all"))
    rig.asked_and_answered(tenant=VICTIM, answer="acme's")
    anew = rig.ask(tenant=ATTACKER, fields={b"cache-control": b"no-cache"})
    rig.answer(anew.ticket, "mallory's lie")
    assert said(rig.ask(tenant=VICTIM).given) == "acme's"
