"""Runs as LangSmith writes them: its API's and SDK's records, nested or not, and the SDK's own posts and patches."""

import re
from collections.abc import Iterator
from typing import Annotated, Final, cast

import msgspec
from msgspec import Meta, Raw, Struct

from headway.trace.sources.fields.decoding import convert
from headway.trace.sources.fields.instants import instant
from headway.trace.sources.skips import Skips

Fields = dict[str, object]

_PLACE: Final = re.compile(r"(\d{8}T\d{6})(\d{6})Z([0-9a-f-]{36})")
"""A step of a dotted order: when the run began, to the µs, and its id."""
_DEEPEST: Final = 200


class Event(Struct):
    """Something that happened while a run went on."""

    name: str | None = None
    time: str | None = None
    kwargs: object = None


class Run(Struct, kw_only=True):
    """One run, after all that was written of it."""

    id: Annotated[str, Meta(min_length=1)]
    trace_id: str
    start: float
    """Epoch seconds."""
    parent_run_id: str | None = None
    name: str | None = None
    run_type: str | None = None
    end_time: object = None
    first_token_time: object = None
    inputs: object = None
    outputs: object = None
    events: list[Event] | None = None
    error: str | None = None
    status: str | None = None
    extra: object = None
    total_cost: float | str | None = None
    prompt_tokens: object = None
    completion_tokens: object = None


class _Envelope(Struct):
    post: list[Raw] | None = None
    patch: list[Raw] | None = None
    runs: list[Raw] | None = None


class _Parent(Struct):
    child_runs: list[Raw] | None = None


def is_run(value: object) -> bool:
    """Whether it is a run of LangSmith's, or something that holds some."""
    if isinstance(value, list):
        values = cast("list[object]", value)
        return bool(values) and is_run(values[0])
    if not isinstance(value, dict):
        return False
    found = cast("Fields", value)
    if "run_type" in found:
        return "inputs" in found and bool(found.keys() & {"dotted_order", "trace_id", "parent_run_id", "child_runs"})
    held = found.get("post") or found.get("runs")
    return isinstance(held, list) and is_run(cast("list[object]", held))


def records(raw: bytes) -> Iterator[Fields]:
    """Everything written of any run in a record, each as it was written.

    Raises:
        msgspec.DecodeError: the record is no JSON, or what should hold runs does not.
    """
    if raw.lstrip()[:1] == b"[":
        for one in msgspec.json.decode(raw, type=list[Raw]):
            yield from _nested(one, None)
        return
    envelope = msgspec.json.decode(raw, type=_Envelope)
    if envelope.post is None and envelope.patch is None and envelope.runs is None:
        yield from _nested(Raw(raw), None)
    for held in (envelope.runs, envelope.post, envelope.patch):
        for one in held or ():
            yield from _nested(one, None)


def key_of(record: Fields) -> str | None:
    """The id of the run that a record is about; a patch may tell it by its dotted order alone."""
    written = record.get("id")
    if isinstance(written, str) and written:
        return written
    places = _places(record)
    return places[-1][1] if places else None


def merged(records: list[Fields], where: str, skips: Skips) -> Run | None:
    """What a run came to: later records complete earlier ones; nothing where it is not told when it began."""
    whole: Fields = {}
    for record in records:
        whole |= {key: value for key, value in record.items() if value not in (None, {}, [])}
    places = _places(whole)
    began = instant(whole.get("start_time"))
    whole["start"] = places[-1][0] if began is None and places else began
    whole["id"] = key_of(whole)
    trace = whole.get("trace_id")
    whole["trace_id"] = (trace if isinstance(trace, str) else None) or (places[0][1] if places else whole["id"])
    whole["parent_run_id"] = whole.get("parent_run_id") or (places[-2][1] if len(places) > 1 else None)
    return convert(Run, whole, where, skips, "a run that says no time of its start, or in no known shape")


def _nested(raw: Raw, above: Fields | None, depth: int = _DEEPEST) -> Iterator[Fields]:
    """A run and those inside it, which may leave out whose they are."""
    record = msgspec.json.decode(raw, type=dict[str, object])
    if above is not None:
        record.setdefault("parent_run_id", above.get("id"))
        record.setdefault("trace_id", above.get("trace_id") or above.get("id"))
    children = msgspec.json.decode(raw, type=_Parent).child_runs
    record.pop("child_runs", None)
    yield record
    for child in children or () if depth else ():
        yield from _nested(child, record, depth - 1)


def _places(record: Fields) -> list[tuple[float, str]]:
    """When each run from the root down to this one began, and its id."""
    order = record.get("dotted_order")
    found = _PLACE.findall(order) if isinstance(order, str) else []
    return [(when + int(micros) / 1e6, run) for day, micros, run in found if (when := instant(day)) is not None]
