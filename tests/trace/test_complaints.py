"""What users of today's tools complain of, one test each: from a file as their tool writes it to what they are told."""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from importing import take
from otlp_documents import message, span

from headway.core.money import Price
from headway.trace.account import TaskAccount, account_of
from headway.trace.facts import facts_of
from headway.trace.phases import Phase
from headway.trace.prices import with_own

Explain = Callable[[bytes], TaskAccount]
DOLLAR = 1_000_000
"""Micro-USD."""
PRICES = with_own({"m": Price(input=3 * DOLLAR, output=15 * DOLLAR, cache_read=300_000)})
"""For a million tokens; what comes from the cache costs a tenth."""
ROUND = "2026-03-01T10:00:"


@pytest.fixture
def explain(tmp_path: Path) -> Explain:
    """The only task of a file, explained."""

    def explained(data: bytes) -> TaskAccount:
        file = tmp_path / "file"
        file.write_bytes(data)
        (one,), intake = take(file)
        assert not intake.skipped
        return account_of(one.spans, one.verdict, one.title, prices=PRICES)

    return explained


def chat(own: int, start: float, end: float, parent: int | None = None, **facts: object) -> dict[str, object]:
    """A call by OpenTelemetry's conventions; dots in names are double underscores."""
    plain: dict[str, object] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    named = {f"gen_ai.{name.replace('__', '.')}": fact for name, fact in facts.items()}
    return span(own, "chat m", start, end, {**plain, **named}, parent=parent, kind=3)


def agent(own: int, start: float, end: float, parent: int | None = None, **facts: object) -> dict[str, object]:
    """An agent's span."""
    named = {f"gen_ai.{name.replace('__', '.')}": fact for name, fact in facts.items()}
    plain = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", **named}
    return span(own, "invoke_agent a", start, end, plain, parent=parent)


def look(own: int, start: float, end: float, parent: int | None = None) -> dict[str, object]:
    """A tool's span."""
    plain: dict[str, object] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    return span(own, "execute_tool look", start, end, plain, parent=parent)


def tokens(account: TaskAccount) -> tuple[int | None, int | None, int | None]:
    usage = account.anatomy.usage
    return usage.input_tokens, usage.output_tokens, usage.cache_read


def claude(*answers: Sequence[tuple[str, int]]) -> bytes:
    """A Claude Code session: a question, then one row for each block of the answers, as it writes them.

    Each row is what was said and the output counted so far.
    """
    rows: list[dict[str, object]] = [
        {"type": "user", "uuid": "u", "timestamp": f"{ROUND}00.000Z", "message": {"role": "user", "content": "Look"}}
    ]
    for number, blocks in enumerate(answers):
        for said, written in blocks:
            usage = {"input_tokens": 10, "cache_read_input_tokens": 4000, "cache_creation_input_tokens": 500}
            made = {
                "role": "assistant", "id": f"msg_{number}", "model": "m", "content": [{"type": "text", "text": said}],
                "usage": {**usage, "output_tokens": written},
            }  # fmt: skip
            when = f"{ROUND}{len(rows):02}.000Z"
            rows.append({"type": "assistant", "uuid": f"a{len(rows)}", "timestamp": when, "message": made})
    return b"\n".join(json.dumps({**row, "sessionId": "s", "version": "2"}).encode() for row in rows)


def langsmith(**fields: object) -> dict[str, object]:
    made: dict[str, object] = {"trace_id": "11111111-1111-4111-8111-111111111111", "inputs": {}, "outputs": {}}
    return {**made, "start_time": f"{ROUND}00.000000", "end_time": f"{ROUND}04.000000", **fields}


def langfuse(**fields: object) -> bytes:
    made: dict[str, object] = {"id": "00f067aa0ba902b7", "traceId": "0af7651916cd43dd8448eb211c80319c", "name": "call"}
    made |= {"type": "GENERATION", "model": "m", "level": "DEFAULT", "parentObservationId": None}
    return json.dumps([{**made, "startTime": f"{ROUND}00.000Z", "endTime": f"{ROUND}04.000Z", **fields}]).encode()


def test_cache_tokens_are_double_counted(explain: Explain) -> None:
    # One tool adds the cache to an input that holds it, the next leaves it out of the sum; 1,000 were read in all.
    otel = chat(1, 0, 1, usage__input_tokens=1000, usage__output_tokens=50, usage__cache_read__input_tokens=800)
    assert tokens(explain(message(otel))) == (1000, 50, 800)
    apart = {"input_tokens": 10, "output_tokens": 50, "cache_read_tokens": 800, "cache_creation_tokens": 190}
    own = span(1, "claude_code.llm_request", 0, 1, {"span.type": "llm_request", "model": "m", **apart})
    assert tokens(explain(message(own, scope="com.anthropic.claude_code.tracing"))) == (1000, 50, 800)
    whole = {"input": 1000, "output": 50, "input_cached_tokens": 800, "total": 1050}
    assert tokens(explain(langfuse(usageDetails=whole))) == (1000, 50, 800)


def test_the_cost_is_too_high_because_the_cache_is_not_priced(explain: Explain) -> None:
    usage = {"usage__input_tokens": 100_000, "usage__cache_read__input_tokens": 90_000, "usage__output_tokens": 1000}
    account = explain(message(chat(1, 0, 1, **usage)))
    # 10,000 at 3, 90,000 at .30 and 1,000 at 15 dollars a million; without the cache's price it were 315,000
    assert account.anatomy.cost == 30_000 + 27_000 + 15_000


def test_cached_tokens_are_priced_as_output(explain: Explain) -> None:
    plain: dict[str, object] = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        "llm.token_count.prompt": 10_000,
    }
    plain |= {"llm.token_count.completion": 100, "llm.token_count.prompt_details.cache_read": 9000}
    account = explain(message(span(1, "ChatCompletion", 0, 1, plain), scope="openinference.instrumentation.openai"))
    assert tokens(account) == (10_000, 100, 9000)
    assert account.anatomy.cost == 3000 + 2700 + 1500  # the cached 9,000 at .30, not at 15 dollars a million


def test_ttft_shows_the_full_generation_time(explain: Explain) -> None:
    # The tool writes down the end as the first token where it saw none: that is unknown, not four seconds.
    whole = explain(langfuse(completionStartTime=f"{ROUND}04.000Z"))
    assert whole.anatomy.iterations[0].ttft is None
    assert whole.verdict.about("ttft").quality == "unknown"
    assert "prefill" not in {segment.phase.value for segment in whole.anatomy.path}
    streamed = explain(langfuse(completionStartTime=f"{ROUND}00.500Z"))
    assert streamed.anatomy.iterations[0].ttft == pytest.approx(0.5)


def test_ttft_is_null_for_agents(explain: Explain) -> None:
    events = [{"name": "new_token", "time": f"{ROUND}{at:02}", "kwargs": {"token": text}} for at, text in ((2, "Hi"),)]
    root = "11111111-1111-4111-8111-111111111111"
    runs = [
        langsmith(id=root, run_type="chain", name="agent", parent_run_id=None, first_token_time=None),
        langsmith(id="22222222-2222-4222-8222-222222222222", run_type="llm", name="llm", parent_run_id=root)
        | {"start_time": f"{ROUND}01.000000", "events": events},
    ]
    account = explain(json.dumps(runs).encode())
    assert account.anatomy.iterations[0].ttft == pytest.approx(1)
    assert account.anatomy.task_ttft == pytest.approx(2)  # what the user waited for, which no call's TTFT says


def test_orphan_spans_are_dropped(explain: Explain) -> None:
    usage = {"usage__input_tokens": 10, "usage__output_tokens": 2}
    account = explain(message(agent(1, 0, 4), chat(2, 1, 2, 1, **usage), chat(3, 2, 4, 99, **usage)))
    assert (account.anatomy.calls, account.anatomy.usage.input_tokens) == (2, 20)
    assert any("1 span named a parent that is not in the record" in note for note in account.anatomy.unknowns)


def test_usage_of_parent_and_child_gives_twice_the_tokens(explain: Explain) -> None:
    usage = {"usage__input_tokens": 700, "usage__output_tokens": 30, "usage__cache_read__input_tokens": 0}
    framework = agent(1, 0, 4, **usage)
    assert tokens(explain(message(framework, chat(2, 1, 3, 1, **usage)))) == (700, 30, 0)
    # Wrapper and provider both say that they are the call.
    account = explain(message(agent(1, 0, 4, **usage), chat(2, 1, 3, 1, **usage), chat(3, 1.1, 2.9, 2, **usage)))
    assert (tokens(account), account.anatomy.calls) == ((700, 30, 0), 1)


def test_cycle_spans_are_cumulative(explain: Explain) -> None:
    # Each cycle's span carries all tokens so far: 500, then 500 + 900; and the agent's carries them once more.
    def cycle(own: int, start: float, end: float, sums: int) -> dict[str, object]:
        name = "execute_event_loop_cycle"
        return span(
            own, name, start, end, {"gen_ai.usage.input_tokens": sums, "gen_ai.usage.output_tokens": 9}, parent=1
        )

    account = explain(
        message(
            agent(1, 0, 9, usage__input_tokens=1400, usage__output_tokens=18),
            cycle(2, 0, 4, 500),
            chat(3, 0, 3, 2, usage__input_tokens=500, usage__output_tokens=9),
            cycle(4, 4, 9, 1400),
            chat(5, 4, 9, 4, usage__input_tokens=900, usage__output_tokens=9),
            scope="strands.telemetry.tracer",
        )
    )
    assert (account.anatomy.usage.input_tokens, account.anatomy.usage.output_tokens) == (1400, 18)
    assert (account.anatomy.n, account.anatomy.calls) == (2, 2)


def test_streaming_tokens_are_too_low(explain: Explain) -> None:
    # Exported once while it streamed, with what had been counted by then, and once when it was whole.
    begun = chat(1, 0, 1, usage__input_tokens=100, usage__output_tokens=1)
    whole = chat(1, 0, 8, usage__input_tokens=100, usage__output_tokens=400)
    for order in ((begun, whole), (whole, begun)):
        assert explain(message(*order)).anatomy.usage.output_tokens == 400
    # A stream whose tokens nobody counted has an unknown number of them, and says what would have counted them.
    uncounted = explain(message(chat(1, 0, 8, usage__output_tokens=0, usage__input_tokens=0, request__stream=True)))
    assert tokens(uncounted) == (None, None, None)
    assert any("include_usage" in note for note in uncounted.anatomy.unknowns)


def test_the_first_row_of_an_answer_wins_and_the_output_is_too_low(explain: Explain) -> None:
    account = explain(claude([("I look.", 8), ("I still look.", 8), ("It is there.", 331)]))
    assert account.anatomy.usage.output_tokens == 331


def test_every_row_of_an_answer_is_counted_and_the_sum_is_too_high(explain: Explain) -> None:
    account = explain(claude([("I look.", 20), ("There.", 20)], [("Done.", 30)]))
    # Two answers, each of 10 + 4,000 + 500 tokens read; by rows it were three.
    assert tokens(account) == (9020, 50, 8000)
    assert account.anatomy.calls == 2


def test_partial_counts_of_the_output_are_taken_for_whole(explain: Explain) -> None:
    # One token cannot be 4,000 characters: the count is of when the stream began, and the rest was never written.
    account = explain(claude([("word " * 800, 1)]))
    assert account.anatomy.usage.output_tokens is None
    assert account.anatomy.cost is None
    assert account.anatomy.usage.input_tokens == 4510


def test_the_critical_path_of_asynchronous_work_is_wrong(explain: Explain) -> None:
    # The agent answered at 4 and left writing its memory to a span that ran on: the last to end was not waited for.
    account = explain(message(agent(1, 0, 4), chat(2, 0, 4, 1), look(3, 3, 30, 1)))
    assert account.anatomy.e2e == pytest.approx(4)
    assert {segment.phase.value for segment in account.anatomy.path} == {"model"}
    assert any("Not waited for" in note for note in account.anatomy.unknowns)
    # A child of a child that outlives both is no different.
    deeper = explain(message(agent(1, 0, 4), chat(2, 0, 4, 1), agent(3, 1, 2, 1), look(4, 1, 30, 3)))
    assert deeper.anatomy.e2e == pytest.approx(4)


def test_spans_back_to_back_are_skipped(explain: Explain) -> None:
    account = explain(message(agent(1, 0, 6), chat(2, 0, 2, 1), look(3, 2, 4, 1), chat(4, 4, 6, 1)))
    assert [(one.phase.value, round(one.start, 6), round(one.end, 6)) for one in account.anatomy.path] == [
        ("model", 0, 2),
        ("tool", 2, 4),
        ("model", 4, 6),
    ]


def test_time_of_its_own_is_negative(explain: Explain) -> None:
    # Three tools at once and a call take 9.5 s within an agent of 4: its own time is half a second, not 4 - 9.5.
    account = explain(message(agent(1, 0, 4), *(look(own, 1, 4, 1) for own in (2, 3, 4)), chat(5, 0.5, 1, 1)))
    path = account.anatomy.path
    assert all(one.end > one.start for one in path)
    assert all(one.end == after.start for one, after in pairwise(path))
    assert sum(account.anatomy.phases.values()) == pytest.approx(account.anatomy.e2e) == pytest.approx(4)
    assert account.anatomy.phases[Phase.HOP] == pytest.approx(0.5)


def test_a_time_in_the_prompt_makes_cache_reads_always_0(explain: Explain) -> None:
    def asked(own: int, minute: int) -> dict[str, object]:
        system = f"It is 10:{minute:02}:00 now. " + "Be brief and helpful. " * 400
        said = [{"role": "system", "content": system}, {"role": "user", "content": "Turn on the light"}]
        usage = {"usage__input_tokens": 2000, "usage__output_tokens": 9, "usage__cache_read__input_tokens": 0}
        return chat(own, own, own + 1, 1, input__messages=json.dumps(said), **usage)

    account = explain(message(agent(1, 1, 5), asked(2, 1), asked(3, 2), asked(4, 3)))
    found = next(one for one in account.findings if one.name == "cache-prefix-broken")
    assert found.title.startswith("Message 1 (system) breaks the cached prefix of 2 prompts: only times or ids in it")
    assert found.confidence == "certain"


def test_nobody_tells_the_cost_of_each_step_and_where_the_time_goes(explain: Explain, tmp_path: Path) -> None:
    first = {"usage__input_tokens": 1000, "usage__output_tokens": 100, "usage__cache_read__input_tokens": 0}
    second = {"usage__input_tokens": 2000, "usage__output_tokens": 200, "usage__cache_read__input_tokens": 1000}
    data = message(agent(1, 0, 20), chat(2, 0, 2, 1, **first), look(3, 2, 17, 1), chat(4, 17, 20, 1, **second))
    account = explain(data)
    (one,), _ = take(tmp_path / "file")
    facts = facts_of(one.spans, one.verdict, prices=PRICES)
    assert facts.step_costs == (3000 + 1500, 3000 + 300 + 3000)
    assert max(facts.phases, key=facts.phases.__getitem__) is Phase.TOOL
    assert facts.tools["look"].on_path == pytest.approx(15)
    assert any(lever.key == "faster-tools" and round(lever.seconds, 3) == 7.5 for lever in account.levers)
