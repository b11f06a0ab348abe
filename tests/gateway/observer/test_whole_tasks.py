"""Figures of tasks, worked out by hand for tasks of a few calls."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from headway.core.money import MicroUsd
from headway.core.span import ErrorType, ModelCall, Span, ToolCallRef, ToolUse
from headway.core.task import SpanId, TaskId
from headway.core.usage import Usage
from headway.gateway.observer.whole_tasks import LABEL_SETS, NAMES, OPEN, QUIET, TOOL_QUIET, WholeTasks, moves

AT = 1_790_000_000.0


def call(number: int, start: float, end: float, *, task: str = "t", error: str | None = None, **told: object) -> Span:
    work = {"model": "m", "replica": "a", "attempts": 1, **told}
    tenant = work.pop("tenant", None)
    assert tenant is None or isinstance(tenant, str)
    return Span(
        task=TaskId(task),
        id=SpanId(f"{number:016x}"),
        parent=None,
        name="chat m",
        start=AT + start,
        end=AT + end,
        work=ModelCall(**work),  # type: ignore[arg-type] - fields by name
        error=None if error is None else ErrorType(error),
        tenant=tenant,
    )


def tool(number: int, start: float, end: float, issued_by: int) -> Span:
    work = ToolUse(name="search", call_id="c1", issued_by=SpanId(f"{issued_by:016x}"), inferred=True)
    return Span(
        task=TaskId("t"), id=SpanId(f"{number:016x}"), parent=None, name="t", start=AT + start, end=AT + end, work=work
    )


def counted(spans: Sequence[Span], *, wait: float = TOOL_QUIET) -> tuple[WholeTasks, dict[str, float]]:
    """What is counted of these spans, all heard of at once, after a wait."""
    held: dict[TaskId, list[Span]] = {}
    for span in spans:
        held.setdefault(span.task, []).append(span)
    tasks = WholeTasks(held.__getitem__)
    for span in spans:
        tasks.hear(span, 0.0)
    tasks.count_quiet(wait)
    return tasks, samples(tasks)


def samples(tasks: WholeTasks) -> dict[str, float]:
    """Sums and counts by name and, where there are several, labels."""
    page = "".join(f"{line}\n" for line in tasks.page())
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if not sample.name.endswith("_bucket"):
                kind = sample.labels.get("gen_ai_token_type")
                found[sample.name + (f" {kind}" if kind else "")] = sample.value
    return found


LOOP = [
    call(
        1, 0, 2, tool_calls=(ToolCallRef("c1", "search"),), cost=MicroUsd(2000),
        usage=Usage(input_tokens=1000, output_tokens=20, cache_read=0),
    ),
    tool(2, 2, 5, 1),
    call(3, 5, 6.5, replica="b", cost=MicroUsd(500), usage=Usage(input_tokens=1500, output_tokens=30, cache_read=1000)),
]  # fmt: skip


def test_a_task_of_two_calls_and_a_tool() -> None:
    _, found = counted(LOOP)
    assert found["headway_task_duration_seconds_sum"] == pytest.approx(6.5)
    assert (found["headway_task_calls_count"], found["headway_task_calls_sum"]) == (1, 2)
    assert found["headway_task_tokens_sum input"] == 2500
    assert found["headway_task_tokens_sum output"] == 50
    assert found["headway_task_cost_usd_sum"] == pytest.approx(0.0025)
    assert found["headway_task_cached_ratio_sum"] == pytest.approx(0.4)
    assert found["headway_task_replica_moves_sum"] == 1
    # The second call read 1500, of which 1000 were cached; 1020 had been read or written before: 20 of them again.
    assert found["headway_task_recomputed_tokens_sum"] == 20


def test_what_is_unknown_is_not_counted_as_nothing() -> None:
    _, found = counted([call(1, 0, 2), call(2, 2, 3, usage=Usage(input_tokens=10, output_tokens=1))])
    for unknown in ("tokens_count input", "tokens_count output", "cached_ratio_count", "cost_usd_count"):
        assert found[f"headway_task_{unknown}"] == 0
    assert found["headway_task_duration_seconds_count"] == 1


def test_a_task_is_over_sooner_after_an_answer_than_while_a_tool_works() -> None:
    held = {TaskId("t"): LOOP}
    tasks = WholeTasks(held.__getitem__)
    tasks.hear(LOOP[0], 0.0)
    assert tasks.count_quiet(QUIET) == 0
    tasks.hear(LOOP[1], 100.0)
    tasks.hear(LOOP[2], 100.0)
    assert tasks.count_quiet(100.0 + QUIET - 1) == 0
    assert tasks.count_quiet(100.0 + QUIET) == 1
    assert tasks.open == 0
    tasks.hear(LOOP[2], 200.0)
    assert (tasks.count_quiet(2000.0), tasks.late) == (0, 1)


def test_status_tells_refused_failed_and_good_tasks_apart() -> None:
    spans = [
        call(1, 0, 1, task="good"),
        call(2, 0, 1, task="failed", error="upstream_closed"),
        call(3, 0, 1, task="refused", error="unknown_model", attempts=0, replica=None, model="made up"),
    ]
    tasks, _ = counted(spans)
    page = "\n".join(tasks.page())
    for model, status in (("m", "ok"), ("m", "error"), ("other", "refused")):
        assert f'headway_task_calls_count{{gen_ai_request_model="{model}",tenant="",status="{status}"}} 1' in page
    assert "made up" not in page


def test_labels_are_bounded_whatever_clients_invent() -> None:
    spans = [
        call(number, 0, 1, task=f"t{number}", model=f"m{number % (NAMES + 9)}", tenant=f"x{number % (NAMES + 7)}")
        for number in range(1, 3 * LABEL_SETS)
    ]
    tasks, _ = counted(spans)
    labels = [
        tuple(sample.labels[name] for name in ("gen_ai_request_model", "tenant", "status"))
        for family in text_string_to_metric_families("".join(f"{line}\n" for line in tasks.page()))
        for sample in family.samples
        if sample.name == "headway_task_calls_count"
    ]
    assert len(labels) <= LABEL_SETS + 1
    assert len({model for model, _, _ in labels}) <= NAMES + 1
    assert len({tenant for _, tenant, _ in labels}) <= NAMES + 1


def test_open_tasks_are_bounded() -> None:
    tasks = WholeTasks(lambda _: [])
    for number in range(OPEN + 5):
        tasks.hear(call(1, 0, 1, task=f"t{number}"), 0.0)
    assert tasks.count_quiet(0.0) == 5
    assert tasks.open == OPEN


def test_a_task_that_cannot_be_taken_apart_ends_nothing() -> None:
    broken = [call(1, 0, 1), call(2, float("nan"), 1)]
    tasks = WholeTasks(lambda task: broken if task == "t" else [call(3, 0, 1, task="u")])
    for span in (broken[0], call(3, 0, 1, task="u")):
        tasks.hear(span, 0.0)
    tasks.count_quiet(QUIET)
    assert samples(tasks)["headway_task_calls_count"] + tasks.uncounted == 2


@given(st.lists(st.sampled_from(["a", "b", None]), max_size=8))
def test_moves_are_changes_between_calls_whose_replica_is_known(replicas: list[str | None]) -> None:
    spans = [call(number, number, number + 1, replica=replica) for number, replica in enumerate(replicas)]
    known = "".join(replica for replica in replicas if replica)
    assert moves(spans[::-1]) == known.count("ab") + known.count("ba")
