"""The MCP server itself: which tools there are, and how their answers and errors are told."""

import logging
import threading
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Final, Generic, TypeVar

import anyio.to_thread
import msgspec
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from msgspec import Struct

from headway.app.mcp.answers import Answer, Changed, Decided, Listed, Named, Sources, explain, tasks, what_if, why
from headway.core.errors import HeadwayError

Q = TypeVar("Q")
_log = logging.getLogger(__name__)
_INSTRUCTIONS: Final = (
    "Headway records what AI agents do. A task is all that was done for what a user asked once. Start with `tasks`,"
    " then `explain` one: where its seconds, tokens and money went, what is wrong, and which change would help most."
    " `what_if` replays it with such a change; `why` tells how a call was routed. Seconds and micro-USD; null is"
    " unknown, not 0."
)
_HARMLESS: Final = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


class Offer(Struct, Generic[Q], frozen=True, kw_only=True):
    """A tool."""

    name: str
    title: str
    description: str
    question: type[Q]
    """Its arguments."""
    answer: Callable[[Sources, Q], Answer]
    schemas: tuple[str, ...]
    """Of its documents, as ``schema`` in them says."""

    @property
    def tool(self) -> Tool:
        """As a list of tools has it."""
        _, found = msgspec.json.schema_components([self.question])
        told = {"type": "string", "enum": list(self.schemas)}
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=found[self.question.__name__],
            output_schema={"type": "object", "properties": {"schema": told}, "required": ["schema"]},
            annotations=_HARMLESS,
        )

    def answered(self, sources: Sources, arguments: dict[str, Any]) -> Answer:
        """The answer to these arguments; raises as the library calls do, and for arguments that do not fit."""
        return self.answer(sources, msgspec.convert(arguments, self.question))


_ACCOUNTS: Final = ("headway.explain/1", "headway.set/1")
OFFERS: Final = {
    offer.name: offer
    for offer in (
        Offer(
            name="tasks",
            title="Recorded tasks",
            description="List the tasks that were recorded, the one active last first: ids, calls, tokens, errors.",
            question=Listed,
            answer=tasks,
            schemas=("headway.tasks/1",),
        ),
        Offer(
            name="explain",
            title="Where a task's time went",
            description="Explain a task, or many as a set: where time, tokens and money went, what is wrong with it,"
            " and which change would save how much.",
            question=Named,
            answer=explain,
            schemas=_ACCOUNTS,
        ),
        Offer(
            name="what_if",
            title="A task with a change",
            description="Replay a task, or many, with changes, and compare: how long it would have taken.",
            question=Changed,
            answer=what_if,
            schemas=_ACCOUNTS,
        ),
        Offer(
            name="why",
            title="Why a call went where it went",
            description="Tell why a model call was sent where it was: candidates, scores, waits, failed attempts.",
            question=Decided,
            answer=why,
            schemas=("headway.why/1",),
        ),
    )
}


def made(sources: Sources) -> Server[dict[str, Any]]:
    """The server of these sources."""
    one_at_a_time = threading.Lock()  # an analysis takes a processor, and all the memory that a large set needs

    def answered(offer: Offer[Any], arguments: dict[str, Any]) -> Answer:
        with one_at_a_time:
            return offer.answered(sources, arguments)

    async def listed(_: ServerRequestContext[dict[str, Any]], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[offer.tool for offer in OFFERS.values()])

    async def called(_: ServerRequestContext[dict[str, Any]], asked: CallToolRequestParams) -> CallToolResult:
        offer = OFFERS.get(asked.name)
        if offer is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {asked.name!r}; there are {', '.join(OFFERS)}.")
        try:
            # Whoever gives the call up need not wait for its end.
            answer = await anyio.to_thread.run_sync(answered, offer, asked.arguments or {}, abandon_on_cancel=True)
        except msgspec.ValidationError as error:
            return _failed(f"The arguments of {offer.name} do not fit: {error}.")
        except HeadwayError as error:
            return _failed(str(error))
        except Exception as error:  # noqa: BLE001 - a fault of one call, which is logged, ends no server
            _log.exception("%s failed", offer.name)
            return _failed(f"{offer.name} failed for a reason that is Headway's own: {type(error).__name__}: {error}")
        return CallToolResult(content=[TextContent(text=answer.text)], structured_content=answer.document)

    return Server(
        "headway",
        version=version("headway"),
        title="Headway",
        instructions=_INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
    )


def _failed(what: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=what)], is_error=True)
