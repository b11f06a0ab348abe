"""Each way to a model, and the reason that is given for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.policy.models.catalog import Alias, Rule, Tier, catalog
from headway.policy.models.choose import ModelRequest, choose
from headway.policy.models.pins import Pin, Pins

WRITTEN = catalog(
    [
        Alias(name="fast", models=("small", "medium")),
        Alias(
            name="auto",
            tier="basic",
            rules=(
                Rule(tier="premium", tenants=frozenset({"gold"}), with_images=True),
                Rule(tier="standard", over_input_tokens=1000),
                Rule(tier="standard", lane="batch", with_tools=False),
                Rule(tier="premium", after_calls=20),
            ),
        ),
    ],
    [
        Tier(name="basic", models=("small",), context=4000, tools=frozenset({"search"})),
        Tier(name="standard", models=("medium", "small")),
        Tier(name="premium", models=("large", "medium")),
    ],
)


def test_its_own_name_and_an_alias_with_a_fallback() -> None:
    own = choose(ModelRequest(asked="medium"), WRITTEN, Pins(), 0.0)
    assert (own.models, own.tier, own.receipt.reason) == (("medium",), None, "asked for by its own name")
    alias = choose(ModelRequest(asked="fast"), WRITTEN, Pins(), 0.0)
    assert (alias.models, alias.receipt.reason) == (("small", "medium"), "'fast' stands for it")


@pytest.mark.parametrize(
    ("request_", "tier", "reason"),
    [
        (ModelRequest(asked="auto"), "basic", "no rule of 'auto' is met"),
        (ModelRequest(asked="auto", tenant="gold", images=True), "premium", "rule 1 of 'auto' is met"),
        (ModelRequest(asked="auto", tenant="iron", images=True), "basic", "no rule of 'auto' is met"),
        (ModelRequest(asked="auto", input_tokens=1000), "basic", "no rule of 'auto' is met"),
        (ModelRequest(asked="auto", input_tokens=1001), "standard", "rule 2 of 'auto' is met"),
        (ModelRequest(asked="auto", lane="batch"), "standard", "rule 3 of 'auto' is met"),
        (ModelRequest(asked="auto", lane="batch", tools=("search",)), "basic", "no rule of 'auto' is met"),
        (ModelRequest(asked="auto", calls=20), "basic", "no rule of 'auto' is met"),
        (ModelRequest(asked="auto", calls=21), "premium", "rule 4 of 'auto' is met"),
        (
            ModelRequest(asked="auto", escalated_to="premium"),
            "premium",
            "an answer of a lesser tier was not good enough",
        ),
    ],
)
def test_rules_in_their_order(request_: ModelRequest, tier: str, reason: str) -> None:
    decision = choose(request_, WRITTEN, Pins(), 0.0)
    assert (decision.tier, decision.models, decision.receipt.reason) == (tier, WRITTEN.tiers[tier].models, reason)


def test_a_tool_that_the_tier_does_not_permit_is_refused_by_name() -> None:
    decision = choose(ModelRequest(asked="auto", tools=("search", "shell", "mail")), WRITTEN, Pins(), 0.0)
    assert (decision.models, decision.refusal) == ((), "tools")
    assert decision.receipt.reason == "the tier 'basic' does not permit the tools mail, shell"


def test_what_does_not_fit_the_tiers_context_is_refused_with_both_figures() -> None:
    decision = choose(ModelRequest(asked="auto", input_tokens=1000, output_tokens=3001), WRITTEN, Pins(), 0.0)
    assert (decision.models, decision.refusal) == ((), "context")
    assert decision.receipt.reason == "about 4,001 tokens are more than the 4,000 of the tier 'basic'"


def test_a_pin_goes_before_every_rule_until_it_ends() -> None:
    pins = Pins()
    pins.put(Pin(to="large", by="cli:ana", reason="incident 7", since=0.0, until=60.0, model="auto"))
    pinned = choose(ModelRequest(asked="auto"), WRITTEN, pins, 59.9)
    assert pinned.models == ("large",)
    assert pinned.receipt.reason == "pinned by cli:ana until 1970-01-01T00:01:00Z: incident 7"
    assert choose(ModelRequest(asked="auto"), WRITTEN, pins, 60.0).models == ("small",)
    assert choose(ModelRequest(asked="fast"), WRITTEN, pins, 0.0).models == ("small", "medium")


@given(
    st.builds(
        ModelRequest,
        asked=st.sampled_from(["auto", "fast", "other"]),
        tenant=st.sampled_from(["", "gold"]),
        lane=st.sampled_from(["interactive", "batch"]),
        input_tokens=st.none() | st.integers(0, 6000),
        output_tokens=st.none() | st.integers(0, 6000),
        tools=st.lists(st.sampled_from(["search", "shell"])).map(tuple),
        images=st.booleans(),
        calls=st.integers(0, 40),
    )
)
def test_there_is_a_model_or_a_reason_why_not(request_: ModelRequest) -> None:
    decision = choose(request_, WRITTEN, Pins(), 0.0)
    assert (decision.models == ()) == (decision.refusal is not None) == (decision.receipt.winner == "")
    assert decision.receipt.reason
