"""Whose tool a sub-agent worked for."""

from itertools import pairwise

import msgspec
from claude_rows import SESSION, agent, parent, result, row, says, spawned, step, take, text
from importing import document, read
from sessions import agents, at, lines, tools

from headway.trace.sources.claude.session import ClaudeCode
from headway.trace.sources.source import Piece


def assert_joined(piece: Piece) -> None:
    (task,) = [span for span in tools(piece) if span.name == "execute_tool Task"]
    inner = step(piece)
    assert (inner.name, inner.parent, at(inner, piece)) == ("invoke_agent Explore", task.id, (3, 8))
    assert [at(span, piece) for span in piece.spans if span.parent == inner.id] == [(3, 5), (5, 6), (6, 8)]
    assert {span.task for span in piece.spans} == {piece.task}


def test_a_sub_agent_is_joined_by_the_id_that_its_tools_result_names() -> None:
    (piece,), skips = take(
        agent(prompt="Something else"), parent(toolUseResult={"status": "completed", "agentId": "a1b2"})
    )
    assert_joined(piece)
    assert not skips


def test_a_sub_agent_is_joined_by_a_progress_row_and_by_the_file_beside_it() -> None:
    progress = row("progress", 4, data={"type": "agent_progress", "agentId": "a1b2"}, parentToolUseID="s1")
    (piece,), _ = take([*parent(), progress], agent(prompt="Something else"))
    assert_joined(piece)
    beside = b'{"agentType": "Explore", "description": "look", "toolUseId": "s1"}'
    (piece,), skips = read(
        ClaudeCode(),
        document(beside, f"{SESSION}/subagents/agent-a1b2.meta.json"),
        document(lines(agent(prompt="Something else")), "agent-a1b2.jsonl"),
        document(lines(parent()), "main.jsonl"),
    )
    assert_joined(piece)
    assert not skips


def test_a_sub_agent_is_joined_by_what_it_was_asked_in_the_same_file_too() -> None:
    (piece,), _ = take(parent(), agent())
    assert_joined(piece)
    nameless = [
        {key: value for key, value in msgspec.convert(one, dict[str, object]).items() if key != "agentId"}
        for one in agent()
    ]
    for before, one in pairwise(nameless):
        one["parentUuid"] = before["uuid"]
    (piece,), _ = take([*parent()[:2], *nameless, *parent()[2:]])
    assert_joined(piece)


def test_a_sub_agent_that_names_nobody_goes_to_the_one_tool_that_ran_then_and_this_is_said() -> None:
    (piece,), _ = take(parent(), agent(session="agent-a1b2", prompt="Something else"))
    assert_joined(piece)
    assert any("names no caller" in remark for remark in piece.remarks)


def test_where_two_tools_ran_a_sub_agent_that_names_nobody_stands_alone() -> None:
    two = [row("user", 0, "Search"), spawned(1, "x", "s1"), spawned(2, "y", "s2")]
    pieces, _ = take(two, agent(session="agent-a1b2", prompt="Something else"))
    assert [piece.title for piece in pieces] == ["Search", "Something else"]
    assert any("not among the files" in remark for remark in pieces[0].remarks)
    assert any("the session that it worked for" in remark for remark in pieces[1].remarks)


def test_an_agent_in_the_background_hangs_from_the_task_not_from_the_tool_that_ended_at_once() -> None:
    started = result(
        2.1, "s1", "Started.", toolUseResult={"isAsync": True, "status": "async_launched", "agentId": "a1b2"}
    )
    (piece,), _ = take([row("user", 0, "Search"), spawned(2), started, says(12, "m2", text("Found."))], agent())
    assert (step(piece).parent, at(step(piece), piece)) == (piece.spans[0].id, (3, 8))


def test_agents_of_agents_are_whole_and_ids_that_go_round_do_no_harm() -> None:
    inner = agent(name="c3", start=4, prompt="deeper")
    outer = agent(prompt="Look for TODO")
    outer[1:1] = [{**spawned(3.5, "deeper", "s2"), "isSidechain": True, "agentId": "a1b2"}]
    (piece,), _ = take(inner, outer, parent())
    assert len(agents(piece)) == 2
    outer[1] = {**spawned(3.5, "Look for TODO", "s2"), "isSidechain": True, "agentId": "a1b2"}
    pieces, _ = take(outer)
    assert [piece.title for piece in pieces] == ["Look for TODO"]
