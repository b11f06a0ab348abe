from typing import Any

from claims import claimed
from importing import document, read, sample
from sessions import agents, assert_unharmed, at, calls, chats, lines, reasons, tools

from headway.core.span import ModelCall
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.sources.workloads.agentcgroup import AgentCgroup


def call(start: float, end: float, *, side: bool = False, output: int = 50, chars: int = 100) -> dict[str, object]:
    made: dict[str, object] = {"model": "m", "side": side, "start": start, "end": end, "text_chars": chars}
    return {**made, "input": 3, "output": output, "cache_write": 20, "cache_read": 70}


def tool(name: str, issuer: int, start: float, end: float, *, err: bool = False) -> dict[str, object]:
    return {"name": name, "call": issuer, "start": start, "end": end, "err": err}


RUN: dict[str, Any] = {
    "group": "g",
    "task": "repo-1",
    "attempt": "attempt_1",
    "calls": [call(0, 2), call(3, 5, side=True), call(6, 8, side=True), call(9, 12, output=2, chars=900)],
    "tools": [tool("Task", 0, 2, 9), tool("Bash", 1, 5, 6, err=True)],
}


def test_a_run_is_a_task_and_calls_on_the_side_are_of_the_sub_agent_that_runs_then() -> None:
    (piece,), skips = read(AgentCgroup(), document(lines([RUN])))
    assert not skips
    assert (piece.title, piece.timing, piece.spans[0].session) == ("repo-1", "messages", None)
    (agent,) = agents(piece)
    task, shell = tools(piece)
    assert (agent.parent, at(agent, piece)) == (task.id, (2, 9))
    assert (shell.parent, shell.error) == (agent.id, "tool_error")
    assert [chat.parent == agent.id for chat in chats(piece)] == [False, True, True, False]
    assert dissect(piece.spans).n == 4


def test_the_input_includes_the_cache_and_counts_of_streams_that_had_just_begun_are_unknown() -> None:
    (piece,), _ = read(AgentCgroup(), document(lines([RUN])))
    assert calls(piece)[0].usage == Usage(input_tokens=93, output_tokens=50, cache_read=70, cache_write=20)
    assert calls(piece)[3].usage.output_tokens is None
    assert any("before they had ended" in remark for remark in piece.remarks)


def test_what_the_program_wrote_itself_is_no_call_but_took_its_time() -> None:
    own = {**call(13, 20), "model": "<synthetic>", "input": 0, "output": 0, "cache_write": 0, "cache_read": 0}
    (piece,), _ = read(AgentCgroup(), document(lines([{**RUN, "calls": [*RUN["calls"], own]}])))
    assert [made.model for made in calls(piece)] == ["m"] * 4
    assert dissect(piece.spans).e2e == 20
    assert any("no call of a model" in remark for remark in piece.remarks)


def test_broken_runs_are_counted() -> None:
    pieces, skips = read(AgentCgroup(), document(lines([RUN, {**RUN, "attempt": 7}])))
    assert len(pieces) == 1
    assert reasons(skips) == {"a line that is not JSON, or not a run": 1}


def test_a_call_whose_times_are_damaged_stays_where_it_is() -> None:
    first, *rest = RUN["calls"]
    (whole,), _ = read(AgentCgroup(), document(lines([RUN])))
    (piece,), skips = read(AgentCgroup(), document(lines([{**RUN, "calls": [{**first, "end": "soon"}, *rest]}])))
    assert reasons(skips) == {"a field of the wrong type, left out: calls[].end": 1}
    assert [span.name for span in piece.spans] == [span.name for span in whole.spans]
    ended = [span.end for span in piece.spans if isinstance(span.work, ModelCall)]
    assert (ended[0], None in ended[1:]) == (None, False)
    assert [tool.work for tool in tools(piece)] == [tool.work for tool in tools(whole)]


def test_it_claims_no_traces() -> None:
    assert claimed(AgentCgroup()) == set()


def test_real_runs() -> None:
    pieces, skips = read(
        AgentCgroup(), document(sample("workloads/agentcgroup/claude_code_swe_rebench.jsonl").read_bytes())
    )
    assert not skips
    # 8,004 calls, of which three are Claude Code's own messages, none of their output known
    assert (len(pieces), sum(len(calls(piece)) for piece in pieces)) == (189, 8001)
    assert sum(len(tools(piece)) for piece in pieces) == 8911
    assert sum(call.usage.output_tokens is None for piece in pieces for call in calls(piece)) == 1829
    first = pieces[0]
    assert (first.title, at(first.spans[0], first)) == ("NVIDIA__nv-ingest-71", (0, 346.446))
    assert calls(first)[0].usage == Usage(input_tokens=14763, cache_read=0, cache_write=14760)
    assert [at(agent, first) for agent in agents(first)] == [(15.635, 123.892)]
    assert sum(chat.parent == agents(first)[0].id for chat in chats(first)) == 11
    local = next(piece for piece in pieces if piece.title == "12rambau__sepal_ui-411")
    assert (len(calls(local)), len(tools(local)), at(local.spans[0], local)[1]) == (67, 67, 486.69)
    assert calls(local)[0].usage == Usage(input_tokens=13361, output_tokens=334)


def test_no_damage_raises() -> None:
    assert_unharmed(AgentCgroup, [lines([RUN])])


def test_zeros_of_a_model_that_never_tells_what_was_cached_are_no_counts() -> None:
    silent = {**call(2, 4), "model": "local", "input": 900, "cache_write": 0, "cache_read": 0}
    cold = {**call(6, 8), "cache_write": 20, "cache_read": 0}
    (piece,), _ = read(AgentCgroup(), document(lines([{**RUN, "calls": [call(0, 2), silent, cold], "tools": []}])))
    told, untold, first = calls(piece)
    assert (told.usage.cache_read, told.usage.cache_write) == (70, 20)
    assert untold.usage == Usage(input_tokens=900, output_tokens=50)
    assert (first.usage.cache_read, first.usage.cache_write) == (0, 20)
    assert any("what was cached is unknown" in remark for remark in piece.remarks)
    assert dissect(piece.spans).usage.cache_read is None
