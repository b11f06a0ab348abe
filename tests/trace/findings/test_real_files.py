"""What is found in records that others published; the figures are added up by hand from the files."""

import pytest
from importing import sample, take

from headway.trace.account import TaskAccount, account_of
from headway.trace.findings import Finding


def accounts(name: str) -> list[TaskAccount]:
    tasks, _ = take(sample(name))
    return [account_of(task.spans, task.verdict, task.title) for task in tasks]


def found(account: TaskAccount) -> dict[str, Finding]:
    return {finding.name: finding for finding in account.findings}


CODEX = "traces/codex_rollout/rollout-2026-02-23T12-{}.jsonl"


def test_codex_writes_most_of_the_time_and_most_of_that_is_reasoning() -> None:
    # the second task of the session, 11:46:57 to 11:49:09; output and reasoning of its ten calls, as they were counted
    written = 428 + 225 + 297 + 299 + 364 + 1001 + 53 + 180 + 195 + 3871
    reasoning = 245 + 36 + 55 + 56 + 183 + 815 + 0 + 73 + 74 + 2638
    account = accounts(CODEX.format("40-23-019c8a4c-ed82-79a1-aa28-7738fc5ab61a"))[1]
    findings = found(account)
    assert account.findings[0].name == "writing-dominates"
    assert findings["writing-dominates"].tokens == written == 6913
    # the last call alone: 66.8 s for 3,871 tokens are 17 ms a token
    assert findings["writing-dominates"].seconds == pytest.approx(0.017 * written, rel=0.05)
    assert findings["reasoning-dominates"].tokens == reasoning == 4175
    assert account.findings[-1].name == "model-time-unsplit"
    assert account.levers[0].name == "half the output"


def test_codex_finds_nothing_in_the_cache_after_a_pause() -> None:
    # the session's first answer ends at 12:19:46; the next question is asked at 12:38:40
    finding = found(accounts(CODEX.format("54-34-019c8a59-e9dd-71f0-9ae3-4079fe9726a9"))[1])["cache-forgotten"]
    assert "(1,133 s)" in finding.title
    assert "56,066 of its 59,522 prompt tokens" in finding.title  # 3,456 were cached
    assert finding.confidence == "likely"


def test_a_call_that_had_less_to_do_took_longer() -> None:
    # 2,546 tokens in and 47 out in 6.15 s; 3,004 and 167 in 3.40 s, 2,497 and 200 in 2.92 s
    (account,) = accounts("traces/langfuse/csharp-agent-with-gemini-2026-03-09.trace.json")
    assert account.findings[0].name == "slow-calls"
    assert account.findings[0].seconds == pytest.approx(6.15 - (3.40 + 2.92) / 2, abs=0.02)


def test_most_of_one_answer_is_reasoning() -> None:
    (account,) = accounts("traces/langsmith/langsmith_py_wrap_openai_reasoning.json")
    assert [finding.name for finding in account.findings] == ["reasoning-dominates", "model-time-unsplit"]
    assert account.findings[0].tokens == 1408


def test_a_record_of_costs_alone_shows_that_they_grow() -> None:
    (account,) = accounts("workloads/exgentic/tests/benchmarks/recordings/browsecompplus/trajectory.jsonl")
    findings = found(account)
    assert {"many-turns", "context-growth"} <= findings.keys()
    assert account.findings[-1].name == "no-times"


def test_what_three_calls_found_out_cannot_be_compared_without_them() -> None:
    (account,) = accounts("workloads/otel-agent-dags/examples/otel/test_traces/advanced/fan_in_dependencies.json")
    assert "answer in one call" not in [lever.name for lever in account.levers]


def test_a_tool_that_never_ended_is_no_hop() -> None:
    # 0.05 s lie between the first call's end at 0.9 and the tool's start at 0.95; it was never seen to end
    (account,) = accounts("traces/handmade/odd_missing_root_and_unfinished.json")
    assert {lever.name: lever.seconds for lever in account.levers}["no hop"] == pytest.approx(0.05)


def test_a_session_whose_times_were_cut_out_says_nothing_of_seconds() -> None:
    first = accounts("traces/codex_rollout/agent-sessions_codex_small.jsonl")[0]
    assert not first.verdict.timed
    assert first.findings[-1].name == "no-times"


def test_a_prompt_that_is_one_text_is_told_by_what_it_goes_on_from() -> None:
    # 30 requests, of 5,561 characters at first and 32,680 at last, each the one before and more
    (account,) = accounts("workloads/lmcache-agent-trace/miniswe/063925220f0d2954505eb37612b11ab3.jsonl")
    findings = found(account)
    assert findings["context-growth"].title.startswith("The prompt grows from 5,561 to 32,680 characters in 30 calls")
    assert "30 model calls" in findings["many-turns"].title
    assert "unread-answers" not in findings  # its prompts never hold what the model had said
