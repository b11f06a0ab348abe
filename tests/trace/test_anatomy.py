from collections.abc import Sequence
from math import fsum, inf

import pytest
from hypothesis import given
from msgspec import structs
from tasks import T0, TASK, call, forests, human, lost, span, step, tool

from headway.core.money import MicroUsd, Price
from headway.core.span import ErrorType, ModelCall, Retrieval, Span, ToolUse
from headway.core.task import Identity, SessionId, TaskId
from headway.core.usage import EngineTimings, Usage
from headway.trace.anatomy import Anatomy, dissect, tpot
from headway.trace.path import Phase
from headway.trace.study import study

# a: 0 sent .25, first token 1, last 2, end 2 | t: 2-5 | b: hop 5-5.5, sent 5.75, first 6, last 9, end 9.25
USAGE_A = Usage(input_tokens=1000, output_tokens=101, cache_read=0)
USAGE_B = Usage(input_tokens=1500, output_tokens=301, cache_read=1000)
LOOP = [
    call("a", 0, 2, marks=(0.25, 1, 2), asks=("1",), usage=USAGE_A),
    tool("t", 2, 5, by="a", inferred=True),
    call("b", 5.5, 9.25, marks=(5.75, 6, 9), usage=USAGE_B),
]


def free(_call: ModelCall, _at: float) -> Price:
    return Price(input=0, output=0)


def priced(_call: ModelCall, _at: float) -> Price:
    return Price(input=1_000_000, output=2_000_000, cache_read=100_000)


def unpriced(_call: ModelCall, _at: float) -> None:
    return None


def account(spans: Sequence[Span]) -> Anatomy:
    return dissect(spans, prices=free)


def amended(one: Span, **work: object) -> Span:
    return structs.replace(one, work=structs.replace(one.work, **work))


def test_the_formulas_terms_of_a_small_task() -> None:
    found = account(LOOP)
    assert (found.task, found.started_at, found.e2e, found.n, found.calls) == (TASK, T0, 9.25, 2, 2)
    a, b = found.iterations
    assert (a.hop, a.queue, a.prefill, a.decode, a.model_unsplit, a.tools) == (0.75, 0, 0.75, 1, 0, 3)
    assert (b.hop, b.queue, b.prefill, b.decode, b.model_unsplit, b.tools) == (0.5, 0, 0.25, 3, 0, 0)
    assert (a.ttft, a.tpot, b.ttft, b.tpot) == (0.75, 0.01, 0.25, 0.01)
    assert found.lead_in == 0
    assert found.phases == {Phase.HOP: 1.25, Phase.PREFILL: 1, Phase.DECODE: 4, Phase.TOOL: 3}


def test_time_before_the_first_call_is_lead_in() -> None:
    found = account([step("root", 0, 4), span("r", 0.5, 1, Retrieval(), "root"), call("a", 1, 4, "root")])
    assert (found.lead_in, found.iterations[0].model_unsplit) == (1, 3)
    assert found.phases == {Phase.HOP: 0.5, Phase.MODEL: 3, Phase.RETRIEVAL: 0.5}


def test_a_task_without_a_call_is_all_lead_in() -> None:
    found = account([tool("t", 0, 2), tool("u", 2, 3)])
    assert (found.n, found.lead_in, found.e2e, found.last_call_ttft) == (0, 3, 3, None)


def test_a_task_of_one_call() -> None:
    found = account([call("a", 0, 2, marks=(0.25, 1, 2))])
    assert (found.e2e, found.n, found.task_ttft, found.last_call_ttft) == (2, 1, 1, 0.75)
    assert [bar.span.id for bar in found.bars] == ["a"]


def test_a_call_that_goes_on_after_a_tool_inside_it_is_one_iteration() -> None:
    # a decodes 1-2 and 4-6, between them its tool
    found = account([call("a", 0, 6, marks=(0, 1, 6)), tool("t", 2, 4, "a")])
    (one,) = found.iterations
    assert (one.prefill, one.decode, one.tools) == (1, 3, 2)


def test_a_task_without_spans_has_no_length_and_no_name() -> None:
    found = dissect([])
    assert (found.task, found.e2e, found.n, found.calls, found.path, found.iterations) == ("", 0, 0, 0, (), ())
    assert (found.usage.input_tokens, found.cost, found.retries) == (0, 0, 0)


def test_human_time_is_never_latency() -> None:
    found = account([human("h", -300, 0), *LOOP])
    assert (found.e2e, found.human, found.waited_before) == (9.25, 0, 300)
    before = next(bar for bar in found.bars if bar.span.name == "h")
    assert (before.waited, before.before, before.start, before.end) == (300, 300, 0, 0)
    assert "A person was waited for before this task, 300.000 s: no part of its E2E." in found.unknowns
    assert Phase.HUMAN not in found.phases
    within = account(
        [step("root", 0, 12), call("a", 0, 2, "root"), human("h", 2, 10, "root"), call("b", 10, 12, "root")]
    )
    assert (within.e2e, within.human, within.phases, within.waited_before) == (4, 8, {Phase.MODEL: 4}, None)
    assert [(bar.waited, bar.before) for bar in within.bars] == [(None, 0), (None, 0), (8, 0), (None, 0)]


def test_a_task_that_is_studied_already_is_not_studied_again() -> None:
    case = study(LOOP)
    assert study(case) is case
    assert dissect(case, prices=free) == account(LOOP)


def test_work_after_the_tasks_end_costs_but_takes_no_time() -> None:
    usage = Usage(input_tokens=1000, output_tokens=500, cache_read=0)
    late = call("late", 3, 30, "t", usage=usage)
    found = dissect([*LOOP, late], prices=priced)
    assert (found.e2e, found.n, found.calls, found.detached) == (9.25, 2, 3, ("late",))
    # a 1000 + 202, b 500 + 100 + 602, late 1000 + 1000 micro-USD
    assert found.cost == 1202 + 1202 + 2000
    assert {bar.span.name: bar.slack for bar in found.bars}["late"] == inf


# --- TTFT


def test_task_ttft_is_the_answers_first_visible_token_from_the_users_request() -> None:
    # A per-call view shows 0.25 s; the user saw nothing for 6 s.
    found = account(LOOP)
    assert (found.task_ttft, found.last_call_ttft) == (6, 0.25)


def test_what_the_model_says_before_it_calls_a_tool_is_not_the_answer() -> None:
    first = amended(LOOP[0], first_visible=T0 + 1.25)
    assert account([first, *LOOP[1:]]).task_ttft == 6


def test_a_plan_that_another_call_reads_is_not_the_answer() -> None:
    found = account([call("plan", 0, 2, marks=(0, 1, 2)), call("answer", 2, 5, marks=(2, 3, 5))])
    assert found.task_ttft == 3
    assert any(note.startswith("Task TTFT is that of the last answer: 1 earlier") for note in found.unknowns)


def test_a_response_that_ended_to_have_tools_called_is_no_answer_though_the_calls_are_not_recorded() -> None:
    # its finish reason says so of the first, a tool that names it of the second
    spans = [
        amended(call("a", 0, 1, marks=(0, 0.5, 1)), finish_reason="tool_use"),
        call("b", 1, 2, marks=(1, 1.5, 2)),
        tool("t", 2, 3, by="b"),
        call("c", 3, 5, marks=(3, 4, 5)),
    ]
    found = account(spans)
    assert found.task_ttft == 4
    assert not any("earlier without tool calls" in note for note in found.unknowns)
    open_end = account(spans[:1])
    assert open_end.task_ttft is None
    assert "Task TTFT is unknown: the loop does not end with an answer." in open_end.unknowns


def test_a_sub_agents_answer_is_not_the_users() -> None:
    spans = [call("a", 0, 1, asks=("1",)), tool("t", 1, 4, by="a"), call("sub", 1, 4, "t", marks=(1, 2, 4))]
    found = account(spans)
    assert found.task_ttft is None
    assert "Task TTFT is unknown: the loop does not end with an answer." in found.unknowns
    assert account([*spans, call("b", 4, 6, marks=(4, 5, 6))]).task_ttft == 5


def test_an_answer_that_was_not_streamed_is_seen_at_its_end() -> None:
    assert account([call("a", 0, 2)]).task_ttft == 2


def test_first_token_and_first_visible_token_are_kept_apart() -> None:
    # it reasoned from 1 to 4
    found = account([amended(call("a", 0, 5, marks=(0, 1, 5)), first_visible=T0 + 4)])
    assert (found.task_ttft, found.last_call_ttft) == (4, 1)


def test_an_untimed_stream_has_no_ttft_at_all() -> None:
    found = account([amended(call("a", 0, 5), stream=None)])
    assert (found.task_ttft, found.last_call_ttft, found.iterations[0].ttft) == (None, None, None)
    assert found.phases == {Phase.MODEL: 5}
    assert "Task TTFT is unknown: the answer's first visible text was not timed." in found.unknowns
    assert "Shown as model time, unsplit: 1 of 1 call, whose first token was not timed." in found.unknowns


def test_a_failed_answer_has_a_ttft_only_if_some_of_it_was_seen() -> None:
    failed = structs.replace(LOOP[2], error=ErrorType("upstream_closed"))
    assert account([*LOOP[:2], failed]).task_ttft == 6
    assert account([*LOOP[:2], amended(failed, first_visible=None)]).task_ttft is None


@pytest.mark.parametrize("count", [None, 0, 1])
def test_tpot_needs_two_tokens(count: int | None) -> None:
    one = call("a", 0, 2, marks=(0, 1, 2), usage=Usage(output_tokens=count)).work
    assert isinstance(one, ModelCall)
    assert tpot(one) is None


def test_a_stream_whose_last_token_was_not_timed_has_a_tpot_up_to_its_end() -> None:
    # the first token at 1 s, the end at 3: 2 s for 100 gaps at most
    spans = [amended(call("a", 0, 3, marks=(0, 1, 3), usage=Usage(input_tokens=9, output_tokens=101)), last_token=None)]
    found = account(spans)
    assert (found.iterations[0].tpot, found.iterations[0].tpot_to_end) == (0.02, True)
    assert any("the time per token is the most that it can have been" in note for note in found.unknowns)
    timed = account([call("a", 0, 3, marks=(0, 1, 2.5), usage=Usage(input_tokens=9, output_tokens=101))])
    assert (timed.iterations[0].tpot, timed.iterations[0].tpot_to_end) == (0.015, False)
    uncounted = account([amended(call("a", 0, 3, marks=(0, 1, 3)), last_token=None)])
    assert (uncounted.iterations[0].tpot, uncounted.iterations[0].tpot_to_end) == (None, False)


def test_a_derived_split_is_said_to_be_derived_and_gives_no_ttft() -> None:
    engine = EngineTimings(prefill_tokens=10, prefill_seconds=1, decode_tokens=20, decode_seconds=2)
    found = account([call("a", 0, 4, engine=engine)])
    assert found.phases == {Phase.QUEUE: 1, Phase.PREFILL: 1, Phase.DECODE: 2}
    assert found.iterations[0].ttft is None
    assert (found.iterations[0].tpot, found.iterations[0].tpot_by_engine) == (2 / 19, True)
    assert any(
        note.startswith("Queue, prefill and decode are derived from the engine's own timings for 1 of 1 call")
        for note in found.unknowns
    )


# --- tokens and money


def test_tokens_are_sums_over_calls_and_cached_ones_are_a_part_of_the_input() -> None:
    found = account(LOOP)
    assert (found.usage.input_tokens, found.usage.output_tokens, found.usage.cache_read) == (2500, 402, 1000)
    assert found.cached_share == 0.4


def test_usage_on_every_level_of_one_call_is_counted_once() -> None:
    usage = Usage(input_tokens=1000, output_tokens=80, cache_read=0)
    found = account(
        [
            step("root", 0, 3),
            call("outer", 0.01, 2.9, "root", usage=usage),
            call("inner", 0.02, 2.89, "outer", usage=usage),
        ]
    )
    assert (found.usage.input_tokens, found.usage.output_tokens, found.calls) == (1000, 80, 1)


def test_a_sum_with_an_unknown_part_is_unknown_and_never_0() -> None:
    found = account([LOOP[0], LOOP[1], amended(LOOP[2], usage=Usage(output_tokens=301))])
    assert (found.usage.input_tokens, found.usage.output_tokens, found.usage.cache_read) == (None, 402, None)
    assert found.cached_share is None
    assert found.cost is None
    assert "Input tokens are unknown for 1 of 2 calls: their sum is a lower bound." in found.unknowns
    assert "Cached tokens are unknown for 1 of 2 calls, and so is their sum." in found.unknowns  # one told 0: no bound


def test_a_stream_without_counts_is_told_with_what_would_have_given_them() -> None:
    silent = [amended(LOOP[0], usage=Usage()), *LOOP[1:]]
    notes = [note for note in account(silent).unknowns if "include_usage" in note]
    assert [note.partition(". ")[0] for note in notes] == ["Streamed without token counts: 1 of 2 calls"]
    # nobody counts what broke off, and an answer that comes whole is counted unasked
    failed = structs.replace(silent[0], error=ErrorType("upstream_closed"))
    whole = amended(silent[0], stream=False)
    for other in (failed, whole):
        assert not any("include_usage" in note for note in account([other, *LOOP[1:]]).unknowns)


def test_calls_joined_by_inference_are_told() -> None:
    identity = Identity(task=TaskId("t"), session=SessionId("s"), evidence="hand_over", confidence=0.7)
    assert any("x-headway-task" in note for note in account([LOOP[0], amended(LOOP[2], identity=identity)]).unknowns)


def test_cost_is_unknown_for_a_model_without_a_price_which_is_named() -> None:
    found = dissect(LOOP, prices=unpriced)
    assert found.cost is None
    assert "Cost is unknown: no price is known for m." in found.unknowns


def test_recorded_costs_are_added_up_even_without_a_price() -> None:
    found = dissect([amended(one, cost=MicroUsd(21)) for one in (LOOP[0], LOOP[2])], prices=unpriced)
    assert found.cost == 42


def test_cached_tokens_are_priced_as_cached() -> None:
    # a: 1000 x 1 + 101 x 2 = 1202; b: 500 x 1 + 1000 x 0.1 + 301 x 2 = 1202
    assert dissect(LOOP, prices=priced).cost == 2404


# --- failures, retries, gaps


def test_failures_and_retries() -> None:
    failed = structs.replace(amended(LOOP[0], attempts=3), error=ErrorType("rate_limited"))
    broken = amended(LOOP[1], failed=True)
    found = account([failed, broken, LOOP[2]])
    assert (found.failures, found.retries) == (2, 2)


def test_a_call_whose_attempts_are_not_recorded_may_hide_retries() -> None:
    found = account([amended(LOOP[0], attempts=None), *LOOP[1:]])
    assert found.retries is None
    assert "May contain hidden retries: 1 of 2 calls, whose number of attempts was not recorded." in found.unknowns


def test_an_inferred_tool_is_said_to_hold_the_agents_own_code() -> None:
    assert any(
        note.startswith("Tools not timed where they ran: 1.") and "agent's own code" in note
        for note in account(LOOP).unknowns
    )
    timed = structs.replace(LOOP[1], work=ToolUse(name="look"))
    assert not any("agent's own code" in note for note in account([LOOP[0], timed, LOOP[2]]).unknowns)


def test_the_session_is_the_first_that_is_known() -> None:
    assert account([LOOP[0], structs.replace(LOOP[1], session=SessionId("s")), LOOP[2]]).session == "s"


# --- the waterfall


def test_bars_carry_their_phases_their_share_of_the_path_and_their_slack() -> None:
    beside = tool("beside", 2, 3)
    bars = {bar.span.name: bar for bar in account([*LOOP, beside]).bars}
    assert [bar.depth for bar in bars.values()] == [0, 1, 1, 1, 1]
    a, t = bars["a"], bars["t"]
    assert [(one.phase, one.start, one.end) for one in a.pieces] == [
        (Phase.HOP, 0, 0.25),
        (Phase.PREFILL, 0.25, 1),
        (Phase.DECODE, 1, 2),
    ]
    assert (a.on_path, a.slack, t.on_path, t.slack) == (2, 0, 3, 0)
    assert (bars["beside"].on_path, bars["beside"].slack) == (0, 2)


def test_a_step_that_was_spliced_out_has_the_least_slack_of_what_it_holds() -> None:
    spans = [step("root", 0, 9), step("one", 0, 9, "root"), tool("t", 0, 4, "one"), step("two", 0, 9, "root")]
    spans += [tool("u", 0, 9, "two")]
    slack = {bar.span.name: bar.slack for bar in account(spans).bars}
    assert (slack["one"], slack["t"], slack["two"]) == (5, 5, 0)


@given(forests)
def test_the_terms_sum_to_e2e_for_any_forest(spans: list[Span]) -> None:
    found = account(spans)
    tolerance = 1e-9 * (len(found.path) + 1)
    terms = [found.lead_in]
    for one in found.iterations:
        terms += [one.hop, one.retry, one.queue, one.prefill, one.decode, one.model_unsplit, one.tools]
    assert all(term >= 0 for term in terms)
    assert abs(fsum(terms) - found.e2e) <= tolerance
    assert abs(fsum(found.phases.values()) - found.e2e) <= tolerance
    assert abs(fsum(bar.on_path for bar in found.bars) - found.e2e) <= tolerance
    assert Phase.HUMAN not in found.phases
    assert all(bar.slack == 0 for bar in found.bars if bar.on_path)
    assert not lost(spans, [bar.span for bar in found.bars])


def test_of_a_first_output_that_is_unknown_it_is_not_said_whose_it_is() -> None:
    calls = [amended(one, stream=None) for one in (call("a", 0, 2, "root"), call("b", 2, 4, "root"))]
    notes = dissect([step("root", 0, 4), *calls]).unknowns
    told = [note for note in notes if note.startswith("Task TTFT")]
    assert told == ["Task TTFT is unknown: the answer's first visible text was not timed."]
