import pytest

from headway.core.errors import BadInputError
from headway.policy.models.catalog import Alias
from headway.policy.models.doubts import Doubts
from headway.policy.models.escalate import Answered, escalate

ALIAS = Alias(name="auto", tier="basic", escalates=("basic", "standard", "premium"))
ALL = Doubts(mean_logprob=-0.5, judge=0.7)


@pytest.mark.parametrize(
    ("answered", "signals"),
    [
        (Answered(), ()),
        (Answered(logprobs=(-0.4, -0.6)), ()),
        (Answered(logprobs=(-0.4, -0.7)), ("uncertain",)),
        (Answered(logprobs=()), ()),
        (Answered(keeps_schema=True, refused=False, score=0.7), ()),
        (Answered(keeps_schema=False, refused=True, score=0.69), ("schema", "refused", "judged")),
    ],
)
def test_what_counts_against_an_answer(answered: Answered, signals: tuple[str, ...]) -> None:
    found = escalate(answered, ALL, ALIAS, "basic")
    assert found.signals == signals
    assert found.to == ("standard" if signals else None)


def test_what_is_not_looked_at_does_not_count() -> None:
    bad = Answered(logprobs=(-9.0,), keeps_schema=False, refused=True, score=0.0)
    assert escalate(bad, Doubts(schema=False, refused=False), ALIAS, "basic").signals == ()


def test_there_is_an_end_to_it_and_the_reason_says_so() -> None:
    bad = Answered(refused=True)
    best = escalate(bad, ALL, ALIAS, "premium")
    assert (best.to, best.reason) == (None, "the model declined to answer, but there is no better tier")
    assert escalate(bad, ALL, ALIAS, None).to is None
    assert escalate(bad, ALL, Alias(name="fast", models=("m",)), "basic").to is None


@pytest.mark.parametrize(
    "doubts", [{"mean_logprob": 0.1}, {"mean_logprob": float("nan")}, {"judge": 1.1}, {"judge": -0.1}]
)
def test_thresholds_out_of_range(doubts: dict[str, float]) -> None:
    with pytest.raises(BadInputError):
        Doubts(mean_logprob=doubts.get("mean_logprob"), judge=doubts.get("judge"))
