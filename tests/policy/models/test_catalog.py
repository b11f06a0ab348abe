import pytest

from headway.core.errors import BadInputError
from headway.policy.models.catalog import Alias, Rule, Tier, catalog

BASIC = Tier(name="basic", models=("small",))


@pytest.mark.parametrize(
    ("aliases", "tiers", "problem"),
    [
        ([], [BASIC, BASIC], "two tiers 'basic'"),
        ([], [Tier(name="basic", models=())], "'basic' has no model"),
        ([Alias(name="a", models=("m",))] * 2, [], "two models 'a'"),
        ([Alias(name="a")], [], "'a' has nothing that answers"),
        ([Alias(name="a", tier="gold")], [BASIC], "'a' names the tier 'gold'"),
        ([Alias(name="a", models=("m",), rules=(Rule(tier="gold"),))], [BASIC], "names the tier 'gold'"),
        ([Alias(name="a", tier="basic", escalates=("basic", "gold"))], [BASIC], "names the tier 'gold'"),
    ],
)
def test_what_does_not_fit_together(aliases: list[Alias], tiers: list[Tier], problem: str) -> None:
    with pytest.raises(BadInputError, match=problem):
        catalog(aliases, tiers)


def test_tools_that_a_tier_permits() -> None:
    named = Tier(name="t", models=("m",), tools=frozenset({"search"}))
    assert named.permits(["search", "shell"]) == ("shell",)
    assert Tier(name="t", models=("m",), tools="none").permits(["search"]) == ("search",)
    assert Tier(name="t", models=("m",)).permits(["search", "shell"]) == ()
