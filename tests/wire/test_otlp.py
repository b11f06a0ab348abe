import json

import pytest
from otlp_documents import AT, SECOND, TRACE, attributes, event, message, span

from headway.core.errors import BadInputError
from headway.wire.otel import RawEvent
from headway.wire.otlp import Batch, from_json, identifier, seconds


def _one(**fields: object) -> Batch:
    made = span(1, "work", 0, 1) | fields
    return from_json(message({key: one for key, one in made.items() if one is not None}))


def test_a_span_is_read_with_all_that_it_says() -> None:
    first = event("exception", 0.5, exception__type="ValueError")
    made = span(2, "chat m", 1.5, 4, {"a": 1}, parent=1, kind=3, status=2, events=[first])
    (raw,) = from_json(message(made, scope="my.lib", resource={"host.name": "h1"})).spans
    assert (raw.trace, raw.id, raw.parent, raw.name) == (TRACE, f"{2:016x}", f"{1:016x}", "chat m")
    assert (raw.start, raw.end) == (1790000001.5, 1790000004.0)
    assert (raw.kind, raw.scope, raw.failed) == ("client", "my.lib", True)
    assert (raw.attributes, raw.resource) == ({"a": 1}, {"host.name": "h1"})
    assert raw.events == [RawEvent("exception", 1790000000.5, {"exception.type": "ValueError"})]


@pytest.mark.parametrize(
    "plain",
    ["text", "", 7, -(2**63), True, False, 1.5, ["a", "b"], [1, [2, [3]]], {"a": {"b": [True]}}, [], {}],
)
def test_every_kind_of_value_is_read_plain(plain: object) -> None:
    (raw,) = _one(attributes=attributes({"key": plain})).spans
    assert raw.attributes == {"key": plain}


def test_values_may_be_missing() -> None:
    empty: list[object] = [{"key": "a"}, {"key": "b", "value": {}}]
    (raw,) = _one(attributes=empty).spans
    assert raw.attributes == {"b": None}


@pytest.mark.parametrize(
    ("kind", "read"),
    [(0, None), (1, "internal"), (5, "consumer"), (9, None), ("SPAN_KIND_SERVER", "server"), ("?", None)],
)
def test_kinds_are_numbers_or_names(kind: object, read: str | None) -> None:
    (raw,) = _one(kind=kind).spans
    assert raw.kind == read


@pytest.mark.parametrize(
    ("code", "failed"), [(0, None), (1, False), (2, True), ("STATUS_CODE_OK", False), ("STATUS_CODE_ERROR", True)]
)
def test_a_status_that_is_unset_says_nothing(code: object, failed: bool | None) -> None:
    (raw,) = _one(status={"code": code}).spans
    assert raw.failed is failed


@pytest.mark.parametrize("end", [None, 0, "0"])
def test_a_span_without_an_end_never_ended(end: object) -> None:
    (raw,) = _one(endTimeUnixNano=end).spans
    assert raw.end is None


@pytest.mark.parametrize("start", [0, "0", "soon", -1, 2**70])
def test_a_span_without_a_start_is_rejected_alone(start: object) -> None:
    batch = from_json(message(span(1, "work", 0, 1), {**span(2, "work", 0, 1), "startTimeUnixNano": start}))
    assert [raw.id for raw in batch.spans] == [f"{1:016x}"]
    assert [(one.reason, one.count) for one in batch.rejected] == [("a span without a time of start", 1)]


def test_a_field_of_the_wrong_type_is_left_out_alone_and_what_is_no_span_is_rejected_alone() -> None:
    wrong = {**span(2, "work", 0, 1), "name": 7, "attributes": [{"key": "a", "value": {"boolValue": "x"}}]}
    document = json.loads(message(span(1, "work", 0, 1), wrong, {"attributes": 1}))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"].append(7)
    batch = from_json(json.dumps(document).encode())
    assert [(raw.id, raw.name) for raw in batch.spans] == [(f"{1:016x}", "work"), (f"{2:016x}", "")]
    assert [(one.reason, one.count) for one in batch.rejected] == [
        ("a span without a time of start", 1),
        ("a span that is none", 1),
    ]
    assert [(one.reason, one.count) for one in batch.left_out] == [
        ("name", 1),
        ("attributes[].value.boolValue", 1),
        ("attributes", 1),
    ]


def test_a_group_with_a_field_of_the_wrong_type_is_rejected_alone() -> None:
    document = json.loads(message(span(1, "work", 0, 1)))
    document["resourceSpans"].insert(0, {"scopeSpans": 7})
    batch = from_json(json.dumps(document).encode())
    assert len(batch.spans) == 1
    assert [one.reason for one in batch.rejected] == ["a group of spans with a field of the wrong type"]


def test_a_resource_or_scope_with_a_field_of_the_wrong_type_costs_no_span() -> None:
    document = json.loads(message(span(1, "work", 0, 1)))
    (group,) = document["resourceSpans"]
    group["resource"] = {"attributes": [{"key": "host.name", "value": {"stringValue": 7}}]}
    group["scopeSpans"][0]["scope"] = {"name": 7}
    batch = from_json(json.dumps(document).encode())
    assert len(batch.spans) == 1
    assert not batch.rejected
    assert [one.reason for one in batch.left_out] == [
        "resource.attributes[].value.stringValue",
        "scopeSpans[].scope.name",
    ]


def test_older_names_for_groups_and_scopes_are_read() -> None:
    document = json.loads(message(span(1, "work", 0, 1), scope="lib"))
    (group,) = document["resourceSpans"]
    (scoped,) = group.pop("scopeSpans")
    scoped["instrumentationLibrary"] = scoped.pop("scope")
    group["instrumentationLibrarySpans"] = [scoped]
    (raw,) = from_json(json.dumps({"batches": [group]}).encode()).spans
    assert raw.scope == "lib"


@pytest.mark.parametrize("data", [b"", b"{", b"[1", b"\xff", b"[]", b"7", b'{"resourceSpans": 7}', b"[" * 9999])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(BadInputError):
        from_json(data)


def test_an_empty_message_is_one() -> None:
    assert from_json(b'{"resourceSpans": []}') == Batch([])


@pytest.mark.parametrize(
    ("text", "digits", "read"),
    [
        ("EEE19B7EC3C1B174", 16, "eee19b7ec3c1b174"),
        ("7uGbfsPBsXQ=", 16, "eee19b7ec3c1b174"),  # base64 of the same eight bytes
        ("AAAAAAAAAABSlpqJVVcaPw==", 32, "000000000000000052969a8955571a3f"),
        ("0" * 16, 16, ""),
        ("AAAAAAAAAAA=", 16, ""),
        ("", 16, ""),
        ("question-1", 16, "question-1"),
        ("abc", 16, "abc"),
    ],
)
def test_ids_are_hex_or_base64_or_left_alone(text: str, digits: int, read: str) -> None:
    assert identifier(text, digits) == read


def test_times_are_rounded_once() -> None:
    assert seconds(AT + 4_830_000_000) == 1790000004.83
    assert seconds(str(AT + SECOND // 3)) == (AT + SECOND // 3) / SECOND


@pytest.mark.parametrize("written", [b"{}", b" {}\n"])
def test_a_message_without_groups_is_an_empty_one(written: bytes) -> None:
    assert from_json(written).spans == []
    with pytest.raises(BadInputError, match="no resourceSpans"):
        from_json(b'{"spans": []}')
