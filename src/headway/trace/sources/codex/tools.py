"""The tools of a Codex rollout: asked for by a response, answered by an item, timed by themselves in some versions."""

from typing import Final

from msgspec import Struct

from headway.core.prompt import Part
from headway.core.span import ToolUse
from headway.core.task import SpanId
from headway.trace.sources.codex.call import Call
from headway.trace.sources.codex.rows import Payload, output, text_of
from headway.trace.sources.digests import arguments_digest, part, span_id
from headway.trace.sources.session.draft import Draft, Entry

USES: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "tool_call"})
RESULTS: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "tool_search_output", "tool_result", "function_result"}
)
INSIDE: Final = {"web_search_call": "web_search", "image_generation_call": "image_generation"}
"""Tools that the provider runs while it answers."""
MEASURED: Final = {
    "exec_command_end": "exec_command",
    "mcp_tool_call_end": "mcp",
    "patch_apply_end": "apply_patch",
    "dynamic_tool_call_response": "dynamic_tool",
}
"""Events by which a tool's own end is told, and what it is called where nothing else says it."""
_ASKING: Final = "request_user_input"
"""The tool that does nothing but wait for a person."""


class _Tool(Struct, eq=False):
    key: str
    draft: Draft
    entry: Entry
    name: str
    call_id: str | None
    issuer: SpanId | None
    arguments: str | None
    result: Part | None = None
    failed: bool | None = None
    measured: bool = False


class Tools:
    """Every tool of one rollout; `settle` when there are no more lines."""

    def __init__(self) -> None:
        self._all: dict[str, _Tool] = {}
        self._open: dict[str, _Tool] = {}
        self.took: dict[SpanId, float] = {}
        """Seconds that tools were measured to take, by their spans."""

    def use(self, draft: Draft, call: Call, payload: Payload, at: float) -> None:
        """A response asks for a tool, at this time."""
        name = payload.name or (payload.function and payload.function.name) or _named(payload)
        raw = next((raw for raw in (payload.arguments, payload.input, payload.action) if bytes(raw)), payload.arguments)
        arguments = text_of(raw)
        call.ask(name, payload.call_id, arguments)
        tool = self._add(draft, name, payload.call_id, at)
        tool.issuer = call.entry.id
        tool.arguments = arguments_digest(arguments) if arguments else None

    def inside(self, draft: Draft, call: Call, payload: Payload, since: float, at: float) -> None:
        """The provider used a tool of its own while it answered: at most since the line before."""
        tool = self._add(draft, INSIDE[payload.type or ""], None, since)
        self._close(tool)
        tool.issuer = tool.entry.parent = call.entry.id
        tool.entry.end = at

    def answer(self, payload: Payload, at: float | None) -> tuple[Part, str | None]:
        """A tool's result for the model; says why where it belongs to no tool."""
        text, failed = output(payload)
        result = part("tool", text)
        call_id = payload.call_id
        if call_id is None:  # it answers the oldest that was not named either
            call_id = next((key for key, tool in self._open.items() if tool.call_id is None), "")
        tool = self._all.get(call_id)
        if tool is None:
            return result, "a tool's result whose call is not in the record"
        tool.result = result
        tool.failed = failed if tool.failed is None else tool.failed
        if self._open.pop(call_id, None) is not None and not tool.measured:
            tool.entry.end = at
        return result, None

    def clock(self, draft: Draft, payload: Payload, at: float) -> None:
        """A tool's own end is told, and of some when they began or how long they took."""
        if payload.type == "item_completed":
            self._item(payload)
            return
        tool = self._all.get(payload.call_id or "")
        seconds = None if payload.duration is None else payload.duration.seconds
        if tool is None:
            named = payload.invocation
            name = MEASURED[payload.type or ""] if named is None or named.tool is None else named.tool
            tool = self._add(draft, name, payload.call_id, at - (seconds or 0.0))
            tool.entry.end = at
            self._close(tool)
        if seconds is not None:
            tool.entry.start, tool.entry.end = max(tool.entry.start, at - seconds), at
            tool.measured = True
            self.took[tool.entry.id] = seconds
            self._close(tool)
        if payload.exit_code is not None:
            tool.failed = payload.exit_code != 0
        elif payload.success is not None:
            tool.failed = not payload.success

    def interrupt(self, at: float | None) -> None:
        """The user stopped all that is at work."""
        for tool in self._open.values():
            tool.entry.end, tool.entry.error = at, "interrupted"
        self._open.clear()

    def settle(self) -> None:
        """Put what is known into the spans."""
        for tool in self._all.values():
            if tool.failed and tool.entry.error is None:
                tool.entry.error = "tool_error"
            tool.entry.work = ToolUse(
                name=tool.name,
                call_id=tool.call_id,
                issued_by=tool.issuer,
                inferred=not tool.measured,
                failed=tool.failed,
                arguments=tool.arguments,
                result=tool.result,
            )
            if tool.name == _ASKING and tool.entry.end is not None:
                tool.draft.asked_a_person(span_id(tool.entry.id, "human"), tool.entry)

    def _item(self, payload: Payload) -> None:
        start, end = payload.started_at_ms, payload.completed_at_ms
        tool = self._all.get(payload.item.id or "") if payload.item is not None else None
        if tool is not None and start and end and end >= start:
            tool.entry.start, tool.entry.end, tool.measured = start / 1000, end / 1000, True
            self.took[tool.entry.id] = (end - start) / 1000

    def _close(self, tool: _Tool) -> None:
        self._open.pop(tool.key, None)

    def _add(self, draft: Draft, name: str, call_id: str | None, start: float) -> _Tool:
        key = call_id if call_id is not None and call_id not in self._all else f"{call_id}#{len(self._all)}"
        entry = draft.tool(span_id(draft.root, "tool", key), start, None, ToolUse(name=name))
        tool = self._all[key] = self._open[key] = _Tool(key, draft, entry, name, call_id, None, None)
        return tool


def _named(payload: Payload) -> str:
    kind = payload.type or "tool"
    return kind.removesuffix("_call") if payload.name is None else payload.name
