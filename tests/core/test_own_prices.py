import pytest

from headway.core.errors import BadInputError
from headway.core.money import Price
from headway.core.own_prices import read_prices


def test_dollars_per_million_tokens_become_micro_dollars() -> None:
    text = '[prices."my/model:7b"]\ninput = 0.15\noutput = 0.6\ncache_read = 0.02\n\n[budget.task]\ncalls = 3\n'
    assert read_prices(text, "x") == {"my/model:7b": Price(input=150_000, output=600_000, cache_read=20_000)}
    assert read_prices("", "x") == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[prices.m]\ninput = 1", "output"),
        ("[prices.m]\ninput = 1\noutput = -2", r"prices\.\"m\"\.output is -2"),
        ("[prices.m]\ninput = nan\noutput = 2", "no price"),
        ("[prices.m]\ninput = 1\noutput = 2\ncached = 3", "cached"),
        ("[prices", "no prices that can be read"),
    ],
)
def test_a_mistake_is_told_by_its_name(text: str, told: str) -> None:
    with pytest.raises(BadInputError, match=told):
        read_prices(text, "x")
