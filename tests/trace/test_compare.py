import random
from itertools import count

import pytest
from msgspec import structs
from tasks import call, step, tool

from headway.core.span import ModelCall
from headway.core.spent import Sum
from headway.trace.compare import compare
from headway.trace.facts import TaskFacts, facts_of
from headway.trace.sources.verdict import judge
from headway.trace.stats import Bootstrap

_names = count()


def free(_call: ModelCall, _at: float) -> None:
    """No price is known."""


def task(model: float, looking: float, source: str = "made") -> TaskFacts:
    root, end = f"r{next(_names)}", model + looking
    spans = [
        step(root, 0, end),
        call(f"c{next(_names)}", 0, model, root),
        tool(f"t{next(_names)}", model, end, root),
    ]
    return facts_of(spans, judge(spans, source, "spans"), prices=free)


def many(seed: int, looking: float) -> list[TaskFacts]:
    dice = random.Random(seed)
    return [task(dice.gammavariate(4, 0.5), looking * dice.gammavariate(4, 0.25)) for _ in range(150)]


def test_the_phase_that_moved_is_found_and_the_other_is_not() -> None:
    found = compare(many(1, 1.0), many(2, 2.0), Bootstrap(random.Random(3).betavariate))
    assert found.shown
    assert found.e2e.shown
    assert found.phases[0].name == "tool"
    assert found.phases[0].shown
    p50 = found.phases[0].at[0]
    assert p50.low < 0.92 < p50.high  # the median of gamma(4, .25) is .918
    assert not found.phases[1].shown  # the model
    assert found.tools[0].name == "look"
    assert found.warnings == ()


def test_no_difference_is_said_to_be_none() -> None:
    found = compare(many(4, 1.0), many(5, 1.0), Bootstrap(random.Random(3).betavariate))
    assert not found.e2e.shown
    assert not any(phase.shown for phase in found.phases)


def test_what_is_unknown_is_not_compared() -> None:
    found = compare(many(1, 1.0), many(2, 1.0), Bootstrap(random.Random(3).betavariate))
    cost = next(one for one in found.figures if one.name == "cost")
    assert (cost.known, cost.mean, cost.at) == ((0, 0), None, ())


def test_of_how_many_tasks_a_sum_is_known_is_said() -> None:
    told = Sum(10, 1, 1)
    row = task(1, 1)
    counted = structs.replace(row, spent=structs.replace(row.spent, cache_read=told))
    found = compare([counted, row, row], [counted], Bootstrap(random.Random(3).betavariate))
    assert "Only tasks that tell all of their cached tokens are compared: 1 of 3 and 1 of 1." in found.warnings


def test_few_tasks_and_other_sources_are_told() -> None:
    found = compare([task(1, 1)] * 3, [task(9, 9, source="other")] * 3, Bootstrap(random.Random(3).betavariate))
    assert not found.shown  # three tasks bound no quantile
    assert found.e2e.at[0].delta == pytest.approx(16)
    assert len(found.warnings) == 3
    assert "made and other" in found.warnings[0]


def test_an_empty_side_is_no_error() -> None:
    found = compare([], many(1, 1.0), Bootstrap(random.Random(3).betavariate))
    assert (found.tasks, found.shown) == ((0, 150), False)
