import pytest

from headway.core.errors import BadInputError
from headway.policy.cache.rules import CacheRule, CacheRules

CHAT = "/v1/chat/completions"


def test_the_first_rule_that_covers_a_call_counts() -> None:
    narrow = CacheRule(name="none", models=("gpt-*-live",), mode="off")
    wide = CacheRule(name="faq", models=("gpt-*", "qwen3"))
    rules = CacheRules([narrow, wide])
    assert rules.find(CHAT, "gpt-5-live") is None
    assert rules.find(CHAT, "gpt-5") is wide
    assert rules.find(CHAT, "qwen3") is wide
    assert rules.find(CHAT, "qwen3-large") is None
    assert rules.find("/v1/responses", "gpt-5") is None


def test_two_rules_of_one_name_cannot_be_told_apart() -> None:
    with pytest.raises(BadInputError, match="Two cache rules are called 'a'"):
        CacheRules([CacheRule(name="a"), CacheRule(name="a", path="/v1/messages")])


@pytest.mark.parametrize(
    ("field", "value"),
    [("ttl", 0.0), ("stale", -1.0), ("wait", -1.0), ("largest", 0), ("threshold", 1.1), ("error", 0.0)],
)
def test_what_is_out_of_its_range_is_told_by_its_name(field: str, value: float) -> None:
    with pytest.raises(BadInputError, match=f"Cache rule 'a': {field} is {value}"):
        CacheRule(name="a", **{field: value})  # pyright: ignore[reportArgumentType] - one field at a time
