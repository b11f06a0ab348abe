"""One span of OpenTelemetry's family out of its attributes, and what it means."""

from typing import Any

from headway.core.span import ModelCall, Span, ToolUse
from headway.trace.sources.fields.messages import Parts
from headway.trace.sources.otel.genai import canonical
from headway.wire.otel import RawSpan

AT = 1_790_000_000.0
Attributes = dict[str, object]
CHAT: Attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def meant(attributes: Attributes, name: str = "span", **fields: Any) -> Span:  # noqa: ANN401 - a span's own fields
    """A span of ten seconds."""
    raw = RawSpan(trace="t", id="s", name=name, start=AT, end=AT + 10, attributes=attributes, **fields)
    return canonical(raw, Parts())


def call(attributes: Attributes, name: str = "span", **fields: Any) -> ModelCall:  # noqa: ANN401 - as above
    """What such a span says of a model call."""
    work = meant(attributes, name, **fields).work
    assert isinstance(work, ModelCall)
    return work


def tool(attributes: Attributes, name: str = "span", **fields: Any) -> ToolUse:  # noqa: ANN401 - as above
    """What such a span says of a tool."""
    work = meant(attributes, name, **fields).work
    assert isinstance(work, ToolUse)
    return work
