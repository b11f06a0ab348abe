import pytest

from headway.app.config.reading import read_config
from headway.app.config.resending import breakers_of, fanout_of, hedging_of, retries_of
from headway.core.errors import BadInputError
from headway.gateway.breakers import BreakerRules
from headway.gateway.hedging import HedgeRules
from headway.gateway.leading import LeadRules
from headway.policy.resend.retry import RetryRules


def test_without_tables_nothing_is_sent_again() -> None:
    file = read_config("", "headway.toml")
    assert fanout_of(file.fanout) is None
    assert (retries_of(file.retries), breakers_of(file.breakers), hedging_of(file.hedging)) == (None, None, None)


def test_empty_tables_are_the_defaults() -> None:
    file = read_config("[retries]\n[breakers]\n[hedging]\n", "headway.toml")
    assert (retries_of(file.retries), breakers_of(file.breakers)) == (RetryRules(), BreakerRules())
    assert hedging_of(file.hedging) == HedgeRules()


def test_the_tables_as_they_are_used() -> None:
    text = """
[fanout]
tokens = 100
longest = "5 s"
[retries]
attempts = 5
base = "50 ms"
cap = "2 s"
patience = "1 min"
ratio = 0.2
[breakers]
failures = 0.8
calls = 10
rest = "10 s"
[hedging]
paths = ["/v1/responses"]
models = ["m"]
ratio = 0.05
"""
    file = read_config(text, "headway.toml")
    assert fanout_of(file.fanout) == LeadRules(tokens=100, longest=5.0)
    assert retries_of(file.retries) == RetryRules(attempts=5, base=0.05, cap=2.0, patience=60.0, ratio=0.2)
    assert breakers_of(file.breakers) == BreakerRules(failures=0.8, calls=10, rest=10.0)
    assert hedging_of(file.hedging) == HedgeRules(paths=frozenset({b"/responses"}), models=frozenset({"m"}), ratio=0.05)


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("retries", "attempts = 1"),
        ("retries", 'base = "fast"'),
        ("retries", "ratio = 0"),
        ("retries", "tries = 3"),
        ("breakers", "failures = 1.5"),
        ("breakers", "calls = 0"),
        ("breakers", "rest = 0"),
        ("hedging", 'paths = ["/v1/models"]'),
        ("hedging", "paths = []"),
        ("fanout", "tokens = 0"),
        ("hedging", "ratio = 2"),
    ],
)
def test_a_mistake_is_told_by_its_place(table: str, line: str) -> None:
    with pytest.raises(BadInputError, match=f"headway.toml:2: {table}.{line.partition(' ')[0]}"):
        read_config(f"[{table}]\n{line}\n", "headway.toml")
