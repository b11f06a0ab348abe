import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.budget import Budget, StageBudget, money, read_budget, seconds, write_budget
from headway.core.errors import BadInputError
from headway.core.money import MicroUsd

WRITTEN = """
[budget.task]
p50 = "6 s"
p95 = 12
variance = 0.5
calls = 8
tokens = 40_000
cost = "0.02 USD"

[budget.stage."tool:search"]
p95 = "1500 ms"

[other]
thing = 1
"""


def test_a_budget_is_read_as_it_is_written() -> None:
    assert read_budget(WRITTEN, "headway.toml") == Budget(
        task=StageBudget(p50=6.0, p95=12.0, variance=0.5),
        calls=8,
        tokens=40_000,
        cost=MicroUsd(20_000),
        stages={"tool:search": StageBudget(p95=1.5)},
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[budget.task]\np95 = '12 parsecs'", "budget.task.p95 is '12 parsecs'"),
        ("[budget.task]\np96 = 1", "unknown field `p96`"),
        ("[budget.task]\np50 = 9\np95 = 3", "fall from p50"),
        ("[budget.task]\ncost = '3 EUR'", "no money"),
        ("[budget.task]\ncalls = -1", "negative"),
        ("[budget.stage.prefill]\np95 = -0.1", 'budget.stage."prefill".p95 is -0.1'),
        ("[budget.task]\nvariance = -1", "no ratio"),
        ("[budget.task]\np50 = nan", "no time"),
        ("[budget.task]\ncost = inf", "no money"),
        ("[nothing]", r"no table \[budget\]"),
        ("= 3", "no budget"),
    ],
)
def test_a_mistake_is_told_by_its_name(text: str, told: str) -> None:
    with pytest.raises(BadInputError, match=told):
        read_budget(text, "headway.toml")


@pytest.mark.parametrize(
    ("text", "value"), [("400 ms", 0.4), ("1.5s", 1.5), ("2 min", 120.0), (3, 3.0), ("1h", 3600.0)]
)
def test_times(text: str | float, value: float) -> None:
    assert seconds(text, "x") == pytest.approx(value)


@pytest.mark.parametrize(("text", "value"), [("$0.02", 20_000), ("0.02 USD", 20_000), (1.5, 1_500_000)])
def test_money(text: str | float, value: int) -> None:
    assert money(text, "x") == value


def limits(ordered: list[float], variance: float | None) -> StageBudget:
    return StageBudget(p50=ordered[0], p95=ordered[1], p99=ordered[2], variance=variance)


_stages = st.builds(
    limits,
    st.lists(st.floats(0, 1e4), min_size=3, max_size=3).map(sorted),
    st.none() | st.floats(0, 10),
)


@given(
    st.builds(
        Budget,
        task=_stages,
        calls=st.none() | st.integers(0, 10_000),
        tokens=st.none() | st.integers(0, 10**9),
        cost=st.none() | st.integers(0, 10**9).map(MicroUsd),
        stages=st.dictionaries(st.text(st.characters(exclude_categories=["Cs", "Cc"])), _stages, max_size=3),
    )
)
def test_what_is_written_is_read(budget: Budget) -> None:
    assert read_budget(write_budget(budget), "made") == budget
