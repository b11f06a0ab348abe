import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.money import Price, cost, cost_at_least, listed
from headway.core.usage import Usage

tokens = st.integers(0, 2_000_000)
prices = st.integers(0, 100_000_000)


def test_plain_call() -> None:
    # 1,000 in at 0.15 USD/M = 150 micro-USD; 100 out at 0.60 USD/M = 60 micro-USD.
    assert cost(Usage(input_tokens=1_000, output_tokens=100), Price(input=150_000, output=600_000)) == 210


def test_cached_tokens_are_charged_once_at_their_own_price() -> None:
    # 10,000 in of which 8,000 cached: 2,000 x 3 + 8,000 x 0.3 = 6,000 + 2,400; 500 out x 15 = 7,500.
    price = Price(input=3_000_000, output=15_000_000, cache_read=300_000)
    assert cost(Usage(input_tokens=10_000, output_tokens=500, cache_read=8_000), price) == 15_900


def test_a_fraction_of_a_micro_dollar_is_rounded_up() -> None:
    assert cost(Usage(input_tokens=1, output_tokens=0), Price(input=1, output=0)) == 1


@pytest.mark.parametrize(
    "usage",
    [
        Usage(output_tokens=1),
        Usage(input_tokens=1),
        Usage(input_tokens=5, output_tokens=1),
        Usage(input_tokens=5, output_tokens=1, cache_read=6),
    ],
    ids=["input unknown", "output unknown", "cache reads unknown where they are priced", "more cached than read"],
)
def test_unknown_tokens_leave_the_cost_unknown(usage: Usage) -> None:
    assert cost(usage, Price(input=10, output=10, cache_read=1)) is None


def test_unknown_cache_reads_do_not_matter_where_they_cost_the_same() -> None:
    assert cost(Usage(input_tokens=1_000_000, output_tokens=0), Price(input=7, output=9)) == 7


@given(read=tokens, write=tokens, plain=tokens, out=tokens, price=st.tuples(prices, prices, prices, prices))
def test_cost_is_the_exact_sum_rounded_up(
    read: int, write: int, plain: int, out: int, price: tuple[int, int, int, int]
) -> None:
    usage = Usage(input_tokens=read + write + plain, output_tokens=out, cache_read=read, cache_write=write)
    got = cost(usage, Price(input=price[0], output=price[1], cache_read=price[2], cache_write=price[3]))
    exact = plain * price[0] + out * price[1] + read * price[2] + write * price[3]
    assert got is not None
    assert 0 <= got * 1_000_000 - exact < 1_000_000
    nearest = listed(usage, Price(input=price[0], output=price[1], cache_read=price[2], cache_write=price[3]))
    assert nearest is not None
    assert -500_000 < nearest * 1_000_000 - exact <= 500_000


def test_what_a_call_cost_at_least_where_the_cache_s_part_is_unknown() -> None:
    # 3, 15, 0.3 and 3.75 USD per million. Of 10,000 in 8,000 are cached: 6,000 + 2,400, and 500 out are 7,500; writes
    # cost more than input does, so at least there were none.
    price = Price(input=3_000_000, output=15_000_000, cache_read=300_000, cache_write=3_750_000)
    usage = Usage(input_tokens=10_000, output_tokens=500, cache_read=8_000)
    assert cost(usage, price) is None
    assert cost_at_least(usage, price) == 15_900
    # All of it may have been cached: 3,000 + 7,500.
    assert cost_at_least(Usage(input_tokens=10_000, output_tokens=500), price) == 10_500
    assert cost_at_least(Usage(input_tokens=10_000, cache_read=0, cache_write=0), price) == 30_000
    assert cost_at_least(Usage(), price) == 0
    assert cost_at_least(Usage(input_tokens=10, output_tokens=500, cache_read=11), price) == 0  # cannot be


@given(tokens, tokens, tokens, prices, prices, prices, prices, st.sets(st.sampled_from(["read", "write", "out"])))
def test_no_call_costs_less_than_it_costs_at_least(
    fresh: int, read: int, out: int, plain: int, written: int, cached: int, writes: int, unknown: set[str]
) -> None:
    price = Price(input=plain, output=written, cache_read=cached, cache_write=writes)
    whole = Usage(input_tokens=fresh + read, output_tokens=out, cache_read=read, cache_write=0)
    told = Usage(
        input_tokens=fresh + read,
        output_tokens=None if "out" in unknown else out,
        cache_read=None if "read" in unknown else read,
        cache_write=None if "write" in unknown else 0,
    )
    true = cost(whole, price)
    assert true is not None
    assert cost_at_least(told, price) <= true
