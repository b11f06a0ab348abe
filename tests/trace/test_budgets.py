from math import sqrt

import pytest
from msgspec import structs
from tasks import T0

from headway.core.budget import Budget, StageBudget
from headway.core.errors import BadInputError
from headway.core.money import MicroUsd, Price
from headway.core.span import ModelCall
from headway.core.spent import Spent, Sum
from headway.core.task import TaskId
from headway.trace.budget_review import added, addition
from headway.trace.budgets import check, stage_seconds, suggest, unknown_stages
from headway.trace.facts import CallPoint, ModelFacts, TaskFacts, ToolFacts
from headway.trace.phases import Phase

NO_LIMITS = StageBudget()


def row(i: int, e2e: float | None, *, cost: int | None = None, points: tuple[CallPoint, ...] = ()) -> TaskFacts:
    """A task of two calls: half a second of tool, the rest decode."""
    timed = e2e is not None
    return TaskFacts(
        task=TaskId(f"t{i}"),
        session=None,
        title=None,
        source="made",
        started_at=T0,
        e2e=e2e,
        n=2,
        calls=2,
        failed=False,
        failures=0,
        task_ttft=None,
        human=0.0,
        phases={Phase.DECODE: e2e - 0.5, Phase.TOOL: 0.5} if timed else {},
        stages={"helper": e2e} if timed else {},
        tools={"search": ToolFacts(uses=1, seconds=0.5, on_path=0.5 if timed else 0.0)},
        models={"m": ModelFacts(calls=2, on_path=1.0)},
        spent=Spent(
            input_tokens=Sum(2000, 2, 2),
            output_tokens=Sum(100, 2, 2),
            tokens=Sum(2100, 2, 2),
            cache_read=Sum(1000, 2, 2),
            cost=Sum(0, 0, 2) if cost is None else Sum(cost, 2, 2),
        ),
        step_costs=(),
        recomputed=None,
        retries_cost=None,
        points=points,
    )


def budget(task: StageBudget = NO_LIMITS, *, cost: int | None = None, **stages: StageBudget) -> Budget:
    named = {name.replace("__", ":"): limits for name, limits in stages.items()}
    return Budget(task=task, calls=None, tokens=None, cost=None if cost is None else MicroUsd(cost), stages=named)


HUNDRED = [row(i, float(i)) for i in range(1, 101)]


def test_a_broken_percentile_says_by_whom() -> None:
    (p50, p95) = check(budget(StageBudget(p50=50.0, p95=90.0)), HUNDRED)
    assert (p50.state, p50.value, p50.over, p50.worst) == ("kept", 50.0, 50, ())
    assert (p95.state, p95.value, p95.over) == ("broken", 95.0, 10)
    assert p95.worst == (("t100", 100.0), ("t99", 99.0), ("t98", 98.0))


def test_who_broke_it_did_break_it() -> None:
    (line,) = check(budget(StageBudget(p95=5.0)), [row(1, 6.0), row(2, 1.0)])
    assert (line.state, line.worst) == ("broken", ((TaskId("t1"), 6.0),))


def test_parts_of_calls_that_were_not_split_are_unknown_and_not_0() -> None:
    unsplit = structs.replace(row(1, 6.0), phases={Phase.MODEL: 5.5, Phase.TOOL: 0.5})
    limits = budget(prefill=StageBudget(p50=1.0), queue=StageBudget(p50=1.0), tool=StageBudget(p50=1.0))
    assert [line.state for line in check(limits, [unsplit])] == ["unknown", "unknown", "kept"]
    assert unknown_stages(limits, [unsplit]) == (), "nothing is misspelt"
    assert unknown_stages(limits, [row(1, 6.0)]) == ("prefill", "queue")


def test_doubt_is_told_on_both_sides() -> None:
    (kept,) = check(budget(StageBudget(p95=96.0)), HUNDRED)
    assert kept.state == "kept"
    assert "may lie above" in kept.note
    (broken,) = check(budget(StageBudget(p95=94.0)), HUNDRED)
    assert "may lie below" in broken.note
    (sure,) = check(budget(StageBudget(p50=80.0)), HUNDRED)
    assert sure.note == ""


def test_one_task_is_one() -> None:
    (alone,) = check(budget(StageBudget(p95=96.0)), [row(1, 1.0)])
    assert alone.note == "1 task does not prove it: the true value may lie above the limit"
    assert check(budget(cost=1), [row(1, 1.0)])[0].note == "unknown for 1 of 1 task"


def test_stages_are_phases_tools_models_and_agents() -> None:
    one = row(1, 3.0)
    assert [stage_seconds(one, name) for name in ("decode", "tool:search", "model:m", "agent:helper")] == [
        2.5,
        0.5,
        1,
        3,
    ]
    assert [stage_seconds(one, name) for name in ("prefill", "tool:rerank", "nonsense", "a:b")] == [0, 0, 0, 0]
    assert stage_seconds(row(1, None), "decode") is None
    limits = budget(tool__search=StageBudget(p95=0.4), prefil=StageBudget(p95=1))
    assert [line.state for line in check(limits, [one])] == ["broken", "kept"]
    assert unknown_stages(limits, [one]) == ("prefil",)


def test_each_task_has_its_own_limits_on_money() -> None:
    rows = [row(1, 1.0, cost=10), row(2, 1.0, cost=30), row(3, 1.0)]
    (line,) = check(budget(cost=20), rows)
    assert (line.state, line.over, line.of, line.worst) == ("broken", 1, 2, (("t2", 30.0),))
    assert "1 of 3" in line.note
    assert check(budget(cost=50), rows)[0].state == "unknown"  # the third's cost is not known
    assert check(budget(cost=50), rows[:2])[0].state == "kept"


def test_what_some_tasks_do_not_tell_may_be_more_than_all_that_is_told() -> None:
    (unsure,) = check(budget(cost=100), [row(1, 1.0, cost=90), row(2, 1.0)])
    assert (unsure.state, unsure.value, unsure.at_least) == ("unknown", 90, True)
    (sure,) = check(budget(cost=100), [row(1, 1.0, cost=90), row(2, 1.0, cost=80)])
    assert (sure.state, sure.value, sure.at_least) == ("kept", 90, False)


def test_variance_is_relative_to_the_mean() -> None:
    (line,) = check(budget(StageBudget(variance=0.3)), [row(1, 1.0), row(2, 3.0)])
    assert line.value == pytest.approx(sqrt(2) / 2)
    assert line.state == "broken"
    assert check(budget(StageBudget(variance=0.3)), [row(1, 1.0)])[0].state == "unknown"


def test_nothing_is_kept_where_nothing_is_timed() -> None:
    (line,) = check(budget(StageBudget(p95=1.0)), [row(1, None)])
    assert (line.state, line.value) == ("unknown", None)


def test_a_suggested_budget_is_kept_and_says_no_more_than_the_set() -> None:
    made = suggest(HUNDRED)
    assert all(line.state == "kept" for line in check(made, HUNDRED))
    assert made.task.p99 is None  # 368 tasks would be needed
    # ranks 40 to 61 hold the median of 100 (binomial); 61 x 1.1 = 67.1, to two digits 68
    assert made.task.p50 == 68.0
    assert set(made.stages) == {"decode"}  # half a second of tool in fifty is hardly anything
    assert made.cost is None
    assert suggest([]).task == NO_LIMITS


def test_a_tool_more_moves_every_task() -> None:
    made, assumed = added([row(1, 2.0)], [addition("tool:rerank 400 ms x2")])
    assert made[0].e2e == pytest.approx(2.8)
    assert made[0].tools["rerank"].on_path == pytest.approx(0.8)
    assert made[0].phases[Phase.TOOL] == pytest.approx(1.3)
    assert "2 times" in assumed[0]


def test_a_longer_context_is_read_at_the_rate_that_was_measured() -> None:
    points = tuple(CallPoint(tokens, 0, 0.1 + tokens / 1000) for tokens in range(100, 1100, 100))
    rows = [row(1, 10.0, cost=100, points=points)]

    def prices(_call: ModelCall, _at: float) -> Price:
        return Price(input=1_000_000, output=0, cache_read=100_000)

    made, _ = added(rows, [addition("context +2,000 tokens")], prices)
    # 2 calls, half of the input cached: 2000 computed by the first, 1000 by the second, at 1 ms each
    assert made[0].e2e == pytest.approx(13.0)
    spent = made[0].spent
    assert (spent.input_tokens.exact, spent.tokens.exact, spent.cache_read.exact) == (6000, 6100, 2000)
    assert spent.cost.exact == 100 + 3000 + 100  # a micro-USD a token, a tenth of it for the 1000 cached
    with pytest.raises(BadInputError, match="how long reading a token takes"):
        added([row(1, 10.0)], [addition("context +5")])


@pytest.mark.parametrize("text", ["tool:x", "rerank 0.4s", "context 20", "tool:x 3 parsecs", ""])
def test_what_is_no_addition_is_told(text: str) -> None:
    with pytest.raises(BadInputError, match="no addition"):
        addition(text)
