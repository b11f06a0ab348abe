"""What Langfuse exports: traces and observations, out of its UI, its REST API in all versions, and blob storage."""

from collections.abc import Iterator
from typing import Annotated, Final, cast

import msgspec
from msgspec import Meta, Raw, Struct

from headway.trace.sources.document import Record
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.skips import Skips

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

    input: object = None
    output: object = None
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
    usage_details: dict[str, object] | None = None
    usage: LegacyUsage | None = None
    cost_details: dict[str, object] | None = None
    provided_cost_details: dict[str, object] | None = None
    calculated_total_cost: object = None
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


def rows(record: Record, skips: Skips) -> Iterator[Record]:
    """The traces and observations in a record, each by itself, undecoded; ids in place of observations among them."""
    yield from _split(record, skips, pages=2)


def row(record: Record, skips: Skips) -> Observation | Trace | str | None:
    """One of them, decoded; the id of an observation where nothing more is said of it."""
    if record.data.lstrip()[:1] == b'"':
        return decode(_TEXT, record, skips, _SHAPELESS)
    found = decode(_FIELDS, record, skips, _SHAPELESS)
    if found is None:
        return None
    if any("_" in key for key in found):  # blob storage writes snake_case
        found = {_CAMEL.get(key, key): held for key, held in found.items()}
        record = Record(msgspec.json.encode(found), record.where)
    if "startTime" not in found and "timestamp" in found:
        return decode(_OF_TRACE, record, skips, _SHAPELESS)
    return decode(_OF_OBSERVATION, record, skips, _SHAPELESS)


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


def _split(record: Record, skips: Skips, pages: int) -> Iterator[Record]:
    first = record.data.lstrip()[:1]
    if first == b"[":
        if pages:
            for found in decode(_LISTED, record, skips, _NO_ROWS) or ():
                yield from _split(Record(bytes(found), record.where), skips, pages - 1)
        return
    if first != b"{":
        yield record
        return
    held = decode(_ENVELOPE, record, skips, _NO_ROWS)
    if held is None:
        return
    if held.observations is not None:
        yield Record(bytes(held.trace), record.where) if bytes(held.trace)[:1] == b"{" else record
        for found in held.observations:
            yield Record(bytes(found), record.where)
    elif held.data is not None and pages:
        for found in held.data:
            yield from _split(Record(bytes(found), record.where), skips, pages - 1)
    else:
        yield record


_FIELDS: Final = msgspec.json.Decoder(dict[str, Raw])
_TEXT: Final = msgspec.json.Decoder(str)
_LISTED: Final = msgspec.json.Decoder(list[Raw])
_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
_OF_TRACE: Final = msgspec.json.Decoder(Trace)
_OF_OBSERVATION: Final = msgspec.json.Decoder(Observation)
_NO_ROWS: Final = "a record that is broken or holds no rows of Langfuse's"
_SHAPELESS: Final = "a trace or observation that is broken or in no known shape"


_CAMEL: Final = {
    snake: camel
    for kind in (Observation, Trace)
    for snake, camel in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
}
"""Names of fields as blob storage writes them, and as all else does."""
