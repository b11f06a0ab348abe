from collections.abc import Sequence

from claims import claimed, files_of
from importing import document, read, sample
from sessions import assert_unharmed, at, calls, chats, lines, reasons, tools, waits

from headway.core.span import ToolUse
from headway.core.usage import Usage
from headway.trace.sources.agents.anthropic_managed import AnthropicManaged
from headway.trace.sources.digests import part
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece


def event(kind: str, second: int, **more: object) -> dict[str, object]:
    return {"type": kind, "id": f"e-{kind}-{second}", "processed_at": f"2026-03-01T10:00:{second:02}.000Z", **more}


def text(words: str) -> list[object]:
    return [{"type": "text", "text": words}]


def ended(second: int, **more: object) -> dict[str, object]:
    usage = {"input_tokens": 2, "output_tokens": 50, "cache_read_input_tokens": 700, "cache_creation_input_tokens": 30}
    return event("span.model_request_end", second, model_usage=usage, **more)


ROWS = [
    event("user.message", 0, content=text("Search")),
    event("span.model_request_start", 1),
    event("agent.message", 3, content=text("I search.")),
    event("agent.mcp_tool_use", 3, id="u-1", name="search", input={"q": 1}),
    ended(4),
    event("user.tool_confirmation", 14, tool_use_id="u-1", result="allow"),
    event("agent.mcp_tool_result", 16, mcp_tool_use_id="u-1", content=text("found"), is_error=True),
    event("span.model_request_start", 17),
    event("agent.message", 19, content=text("Done.")),
    ended(20, is_error=True),
]


def take(rows: Sequence[object]) -> tuple[list[Piece], Skips]:
    return read(AnthropicManaged(), document(lines(rows)))


def imported(name: str) -> tuple[list[Piece], Skips]:
    return read(AnthropicManaged(), document(sample(f"traces/anthropic_managed_agents/{name}").read_bytes()))


def test_bare_events_with_a_wait_for_somebody_who_allows_a_tool() -> None:
    (piece,), skips = take(ROWS)
    assert not skips
    assert (piece.timing, piece.title) == ("spans", "Search")
    assert [(at(chat, piece), chat.error) for chat in chats(piece)] == [((1, 4), None), ((17, 20), "error")]
    assert [at(wait, piece) for wait in waits(piece)] == [(3, 14)]
    (tool,) = tools(piece)
    assert isinstance(tool.work, ToolUse)
    assert (at(tool, piece), tool.error, tool.work.result) == ((14, 16), "tool_error", part("tool", "found"))
    assert calls(piece)[0].usage == Usage(input_tokens=732, output_tokens=50, cache_read=700, cache_write=30)
    assert (calls(piece)[1].prompt or ())[1:] == (
        part("assistant", 'I search.\nsearch({"q":1})'),
        part("tool", "found"),
    )


def test_a_request_without_an_end_never_ended() -> None:
    (piece,), _ = take(ROWS[:4])
    assert [at(chat, piece) for chat in chats(piece)] == [(1, None)]
    assert any("When some tools ended" in remark for remark in piece.remarks)


def test_broken_lines_are_counted() -> None:
    _, skips = read(AnthropicManaged(), document(lines(ROWS) + b'["x"]\n{"type": 1}\n'))
    assert reasons(skips) == {"a line that is not JSON, or not an event of a session": 2}


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(AnthropicManaged()) == files_of("anthropic_managed_agents")


def test_a_tool_of_the_callers_own() -> None:
    (piece,), skips = imported("anthropic_managed_custom_tools.jsonl")
    assert not skips
    assert (piece.spans[0].name, piece.spans[0].session) == (
        "invoke_agent Coding Assistant",
        "sesn_014fc5Q6rWwrXD3vWBfPRUes",
    )
    assert [at(span, piece) for span in piece.spans] == [(0, 8.65), (0, 6.024), (6.024, 6.686), (6.948, 8.65)]
    assert [call.usage for call in calls(piece)] == [
        Usage(input_tokens=7203, output_tokens=50, cache_read=7201, cache_write=0),
        Usage(input_tokens=7273, output_tokens=30, cache_read=7271, cache_write=0),
    ]
    assert [call.model for call in calls(piece)] == ["claude-sonnet-5"] * 2


def test_a_tool_that_a_person_refused() -> None:
    (piece,), skips = imported("anthropic_managed_mcp_tools_reject.jsonl")
    assert not skips
    assert [call.usage.input_tokens for call in calls(piece)] == [7782, 7952, 18069]
    assert [(tool.name, at(tool, piece), tool.error) for tool in tools(piece)] == [
        ("execute_tool web_search_exa", (3.154, 3.403), "rejected"),
        ("execute_tool web_fetch", (6.487, 6.724), None),
    ]
    assert [at(wait, piece) for wait in waits(piece)] == [(2.53, 3.154)]


def test_no_damage_raises() -> None:
    assert_unharmed(AnthropicManaged, [lines(ROWS)])


def test_no_damage_to_real_files_raises() -> None:
    folder = sample("traces/anthropic_managed_agents")
    assert_unharmed(AnthropicManaged, [path.read_bytes() for path in sorted(folder.glob("*.jsonl"))], 40)
