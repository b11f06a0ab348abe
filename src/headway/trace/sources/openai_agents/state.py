"""The saved state of a run of the OpenAI Agents SDK: what its calls used, in order, but not when."""

from typing import Final

import msgspec
from msgspec import Struct, field

from headway.core.prompt import Part
from headway.core.span import ModelCall, ToolUse
from headway.core.task import SessionId, SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest, span_id
from headway.trace.sources.fields.completions import Counts, Details, answer, tool_calls
from headway.trace.sources.fields.messages import Message, Parts, messages, plain
from headway.trace.sources.session.draft import Draft, first_words
from headway.trace.sources.source import Piece


class StateUsage(Struct):
    """Token counts, whose details come in lists."""

    requests: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: list[Details] | Details | None = None
    output_tokens_details: list[Details] | Details | None = None
    request_usage_entries: tuple["StateUsage", ...] = ()

    def usage(self) -> Usage:
        """The same in canonical words."""
        return Counts(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            input_tokens_details=_only(self.input_tokens_details),
            output_tokens_details=_only(self.output_tokens_details),
        ).usage()


class StateResponse(Struct):
    """An answer of the model."""

    usage: StateUsage = field(default_factory=StateUsage)
    output: object = None


class RawItem(Struct):
    """A tool call or its result."""

    type: str | None = None
    name: str | None = None
    call_id: str | None = None
    arguments: object = None
    output: object = None


class Item(Struct):
    """Something that the run brought forth."""

    type: str | None = None
    raw_item: RawItem | None = None
    output: object = None


class Context(Struct):
    """What the run has used."""

    usage: StateUsage = field(default_factory=StateUsage)


class Agent(Struct):
    """Whose turn it is."""

    name: str | None = None


class TraceState(Struct):
    """The trace that the run is recorded under."""

    group_id: str | None = None


class RunState(Struct):
    """A whole file."""

    version: str = field(name="$schemaVersion")
    context: Context = field(default_factory=Context)
    current_agent: Agent | None = None
    original_input: object = None
    model_responses: tuple[StateResponse, ...] = ()
    generated_items: tuple[Item, ...] = ()
    conversation_id: str | None = None
    trace: TraceState | None = None


def run_of(state: RunState, task: TaskId, key: str) -> Piece | None:
    """The run as a task without times; ``None`` where no call was made, or nothing tells how many shared what was used.

    Args:
        state: the file.
        task: its id.
        key: what ids are made of.
    """
    draft = Draft(span_id(key, "run"), (state.current_agent and state.current_agent.name) or "agent", 0.0)
    asked = [one.text for one in messages(state.original_input, "user") if one.role == "user" and one.text]
    draft.title = first_words(asked[-1]) if asked else None
    parts = Parts()
    issuers: dict[str, tuple[SpanId, str]] = {}
    for number, response in enumerate(state.model_responses or _summed(state.context.usage)):
        span = span_id(key, "call", str(number))
        said = messages({"output": response.output}, "assistant")
        calls = tool_calls(said)
        issuers |= {call.id: (span, call.name) for call in calls}
        told = answer(said, parts)
        draft.call(
            span, 0.0, 0.0, ModelCall(model="unknown", usage=response.usage.usage(), tool_calls=calls, answer=told)
        )
    if not draft.entries:
        return None
    arguments = {item.raw_item.call_id: item.raw_item.arguments for item in state.generated_items if item.raw_item}
    for item in state.generated_items:
        if item.type == "tool_call_output_item" and item.raw_item is not None and item.raw_item.call_id:
            _use(draft, item.raw_item.call_id, item, arguments.get(item.raw_item.call_id), issuers, parts)
    session = state.conversation_id or (state.trace.group_id if state.trace is not None else None)
    return draft.piece(task, SessionId(session) if session else None, "none")


def _summed(usage: StateUsage) -> list[StateResponse]:
    """Calls of which nothing is kept but what they used."""
    if usage.request_usage_entries:
        return [StateResponse(usage=entry) for entry in usage.request_usage_entries]
    return [StateResponse(usage=usage)] if usage.requests == 1 else []


def _use(
    draft: Draft, call: str, item: Item, arguments: object, issuers: dict[str, tuple[SpanId, str]], parts: Parts
) -> None:
    issuer, name = issuers.get(call, (None, "unknown"))
    raw = item.raw_item or RawItem()
    result: Part = parts.of(Message("tool", plain(raw.output if raw.output is not None else item.output)))
    work = ToolUse(
        name=raw.name or name,
        call_id=call,
        issued_by=issuer,
        inferred=True,
        arguments=None if arguments is None else arguments_digest(arguments),
        result=result,
    )
    draft.tool(span_id(draft.root, "tool", call), 0.0, 0.0, work)


def _only(details: list[Details] | Details | None) -> Details | None:
    if isinstance(details, list):
        return details[0] if details else None
    return details


DECODER: Final = msgspec.json.Decoder(RunState)
