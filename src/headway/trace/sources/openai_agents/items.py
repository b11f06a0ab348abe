"""What the tracing of the OpenAI Agents SDK exports: traces, and spans whose data has one shape for each type."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from headway.trace.sources.fields.completions import Counts, Response


class AgentData(Struct, tag="agent"):
    """An agent at work, until it hands over or is done."""

    name: str | None = None


class FunctionData(Struct, tag="function"):
    """A tool at work."""

    name: str = "unknown"
    input: object = None
    output: object = None


class GenerationData(Struct, tag="generation"):
    """A call by chat completions, or of another provider's."""

    input: object = None
    output: object = None
    model: str | None = None
    usage: Counts | None = None


class ResponseData(Struct, tag="response"):
    """A call of the Responses API; the SDK's own exporter leaves all but its id and usage out."""

    response_id: str | None = None
    usage: Counts | None = None
    response: Response | None = None
    input: object = None


class HandoffData(Struct, tag="handoff"):
    """One agent hands over to another."""

    from_agent: str | None = None
    to_agent: str | None = None


class GuardrailData(Struct, tag="guardrail"):
    """A check of what goes in or out."""

    name: str | None = None
    triggered: bool | None = None


class CustomData(Struct, tag="custom"):
    """Anything; the SDK's runs and turns too."""

    name: str | None = None


class TranscriptionData(Struct, tag="transcription"):
    """A model hears."""

    model: str | None = None


class SpeechData(Struct, tag="speech"):
    """A model speaks."""

    model: str | None = None
    first_content_at: str | None = None


class SpeechGroupData(Struct, tag="speech_group"):
    """Pieces of speech that belong together."""


class McpToolsData(Struct, tag="mcp_tools"):
    """A server is asked what tools it has."""

    server: str | None = None


Data = (
    AgentData
    | FunctionData
    | GenerationData
    | ResponseData
    | HandoffData
    | GuardrailData
    | CustomData
    | TranscriptionData
    | SpeechData
    | SpeechGroupData
    | McpToolsData
)


class SpanError(Struct):
    """What went wrong."""

    message: str | None = None


class SpanItem(Struct, tag_field="object", tag="trace.span"):
    """One span."""

    id: Annotated[str, Meta(min_length=1)]
    trace_id: Annotated[str, Meta(min_length=1)]
    span_data: Data
    started_at: str | None = None
    ended_at: str | None = None
    parent_id: str | None = None
    error: SpanError | None = None


class TraceItem(Struct, tag_field="object", tag="trace"):
    """One trace, without its spans."""

    id: Annotated[str, Meta(min_length=1)]
    workflow_name: str | None = None
    group_id: str | None = None
    """The conversation that it belongs to."""


DECODER: Final = msgspec.json.Decoder(SpanItem | TraceItem)
