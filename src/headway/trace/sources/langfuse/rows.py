"""What Langfuse exports: traces and observations, out of its UI, its REST API in all versions, and blob storage."""

from collections.abc import Iterator
from typing import Annotated, Final, cast

import msgspec
from msgspec import Meta, Raw, Struct

from headway.trace.sources.document import Record

Number = int | float | None

KINDS: Final = {
    "SPAN": "",
    "EVENT": "",
    "CHAIN": "",
    "EVALUATOR": "",
    "GUARDRAIL": "",
    "GENERATION": "chat",
    "EMBEDDING": "embeddings",
    "AGENT": "agent",
    "TOOL": "tool",
    "RETRIEVER": "retriever",
}
"""Types of observations, and the operation that each stands for where it stands for one."""
_OBSERVATION: Final = ({"id", "traceId", "startTime"}, {"id", "trace_id", "start_time"})
_TRACE: Final = ({"id", "timestamp", "userId", "sessionId"}, {"id", "timestamp", "user_id", "session_id", "tags"})


class LegacyUsage(Struct):
    """Token counts until version 3 of the server."""

    input: Number = None
    output: Number = None
    unit: str | None = None


class Observation(Struct, rename="camel", kw_only=True):
    """One observation. Fields of groups that were not exported are absent."""

    id: Annotated[str, Meta(min_length=1)]
    trace_id: str | None = None
    type: str
    start_time: str
    end_time: str | None = None
    completion_start_time: str | None = None
    parent_observation_id: str | None = None
    name: str | None = None
    session_id: str | None = None
    trace_name: str | None = None
    model: str | None = None
    provided_model_name: str | None = None
    usage_details: dict[str, Number] | None = None
    usage: LegacyUsage | None = None
    cost_details: dict[str, Number] | None = None
    provided_cost_details: dict[str, Number] | None = None
    calculated_total_cost: Number = None
    level: str | None = None
    status_message: str | None = None
    input: object = None
    output: object = None
    metadata: object = None
    latency: Number = None
    time_to_first_token: Number = None


class Trace(Struct, rename="camel", kw_only=True):
    """What is said of a trace apart from its observations."""

    id: Annotated[str, Meta(min_length=1)]
    timestamp: str
    name: str | None = None
    session_id: str | None = None
    input: object = None


class _Envelope(Struct):
    trace: Raw = Raw()
    observations: list[Raw] | None = None
    data: list[Raw] | None = None


def rows(record: Record) -> Iterator[Raw]:
    """The traces and observations in a record, each by itself, undecoded; ids in place of observations among them.

    Raises:
        msgspec.DecodeError: the record is no JSON, or what should hold rows does not.
    """
    yield from _split(Raw(record.data), pages=2)


def row(raw: Raw) -> Observation | Trace | str:
    """One of them, decoded; the id of an observation where nothing more is said of it.

    Raises:
        msgspec.DecodeError: it is in no known shape.
    """
    value = cast("object", msgspec.json.decode(raw))
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        found = cast("dict[str, object]", value)
        if any("_" in key for key in found):  # blob storage writes snake_case
            value = found = {_CAMEL.get(key, key): held for key, held in found.items()}
        if "startTime" not in found and "timestamp" in found:
            return msgspec.convert(found, Trace)
    return msgspec.convert(value, Observation)


def is_row(value: object) -> bool:
    """Whether it is an observation or a trace of Langfuse's, or something that it wraps around them."""
    if isinstance(value, list):
        values = cast("list[object]", value)
        return bool(values) and is_row(values[0])
    if not isinstance(value, dict):
        return False
    found = cast("dict[str, object]", value)
    if isinstance(kind := found.get("type"), str):
        return kind in KINDS and any(names <= found.keys() for names in _OBSERVATION)
    return (
        any(names <= found.keys() for names in _TRACE)
        or ("trace" in found and isinstance(found.get("observations"), list) and is_row(found["trace"]))
        or (isinstance(found.get("data"), list) and is_row(found["data"]))
    )


def _split(raw: Raw, pages: int) -> Iterator[Raw]:
    if bytes(raw).lstrip()[:1] == b"[":
        if pages:
            for found in msgspec.json.decode(raw, type=list[Raw]):
                yield from _split(found, pages - 1)
        return
    if bytes(raw).lstrip()[:1] != b"{":
        yield raw
        return
    held = msgspec.json.decode(raw, type=_Envelope)
    if held.observations is not None:
        yield held.trace if bytes(held.trace)[:1] == b"{" else raw
        yield from held.observations
    elif held.data is not None and pages:
        for found in held.data:
            yield from _split(found, pages - 1)
    else:
        yield raw


_CAMEL: Final = {
    snake: camel
    for kind in (Observation, Trace)
    for snake, camel in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
}
"""Names of fields as blob storage writes them, and as all else does."""
