import codecs
import io
import json
import os
import tracemalloc
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from importing import document

from headway.trace.sources import document as module
from headway.trace.sources.document import Document
from headway.trace.sources.skips import Skips


def records(data: bytes) -> tuple[list[bytes], Skips]:
    skips = Skips()
    return [record.data.strip() for record in document(data).records(skips)], skips


def test_lines_are_records_and_blank_ones_are_not() -> None:
    found, skips = records(b'{"a":1}\n\n  \r\n{"a":2}\n')
    assert found == [b'{"a":1}', b'{"a":2}']
    assert not skips


def test_one_value_over_many_lines_is_one_record() -> None:
    pretty = json.dumps({"a": [1, {"b": 2}]}, indent=2).encode()
    made = document(pretty)
    assert made.shape == "json"
    assert records(pretty)[0] == [pretty]
    assert list(made.sample().objects()) == [{"a": [1, {"b": 2}]}]


def test_an_array_of_one_object_a_line_is_one_value() -> None:
    data = b'[{"a":1},\n{"a":2}]'
    assert document(data).shape == "json"
    assert list(document(data).sample().objects()) == [{"a": 1}, {"a": 2}]


def test_a_broken_first_line_does_not_hide_the_others() -> None:
    data = b'{"a":1,"b"\n{"a":2}\n{"a":3}\n'
    made = document(data)
    assert made.shape == "lines"
    assert list(made.sample().objects()) == [{"a": 2}, {"a": 3}]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "utf-16-be"])
def test_marks_of_encodings_are_understood(encoding: str) -> None:
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    data = mark + '{"a":"é"}\n{"a":"ß"}\n'.encode(encoding)
    found, _ = records(data)
    assert [json.loads(line)["a"] for line in found] == ["é", "ß"]


def test_a_wrong_byte_costs_a_letter_and_not_the_line() -> None:
    found, _ = records(b'{"a":"caf\xe9"}\n{"b":1}\n')
    assert json.loads(found[0]) == {"a": "caf\N{REPLACEMENT CHARACTER}"}


@pytest.mark.parametrize("wrong", [b"\xff", rb"\ud83d", b"\xc3", rb"\uDE00"])
@pytest.mark.parametrize("form", [b'{"a": "x%b", "b": 1}\n', b'{\n  "a": "x%b",\n  "b": 1\n}\n'])
def test_half_a_character_or_a_wrong_byte_costs_itself_alone(wrong: bytes, form: bytes) -> None:
    made = document(form % wrong)
    assert [Document.decode(record) for record in made.records(Skips())] == [{"a": "x\ufffd", "b": 1}]
    assert made.sample().first() == {"a": "x\ufffd", "b": 1}


def test_a_line_without_end_is_skipped_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RECORD", 1024)
    skips = Skips()
    made = document(b'{"a":1}\n' + b'{"x":"' + b"y" * 5000 + b'"}\n{"a":2}\n', "big.jsonl")
    assert [json.loads(record.data) for record in made.records(skips)] == [{"a": 1}, {"a": 2}]
    (skip,) = skips.all()
    assert (skip.count, skip.first) == (1, "big.jsonl:2")
    assert "longer" in skip.reason


def test_a_value_too_large_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RECORD", 64)
    skips = Skips()
    made = document(json.dumps({"a": list(range(50))}, indent=1).encode())
    assert list(made.records(skips)) == []
    assert "JSON lines" in skips.all()[0].reason


def test_what_is_no_json_is_binary_and_whole() -> None:
    assert records(b"a,b\n1,2\n")[0] == [b"a,b\n1,2"]
    assert document(b"\x0a\x05hello").shape == "binary"
    assert document(b"a,b\n").sample().first() == {}


def test_progress_hears_every_byte() -> None:
    data = b'{"a":1}\n{"a":2}\n'
    heard: list[int] = []
    made = Document("d", len(data), lambda: io.BytesIO(data), heard.append)
    assert len(list(made.records(Skips()))) == 2
    assert sum(heard) == len(data)


@given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    made = document(data)
    made.sample()
    list(made.records(Skips()))


@given(st.lists(st.dictionaries(st.text(max_size=5), st.integers()), min_size=1, max_size=30))
def test_every_line_comes_back(values: list[dict[str, int]]) -> None:
    found, skips = records(b"\n".join(json.dumps(value).encode() for value in values))
    assert [json.loads(line) for line in found] == values
    assert not skips


@given(
    st.lists(st.sampled_from([b'{"a":1}', b'{"b":"xxxxxxxxxxxxxxxx"}', b"", b"  ", b"broken", b'"\xff"'])).map(
        b"\n".join
    ),
    st.sampled_from([b"", b"\n", codecs.BOM_UTF8]),
    st.integers(1, 80),
)
def test_its_parts_hold_the_same_records_under_the_same_numbers(lines: bytes, edge: bytes, size: int) -> None:
    data = edge + b'{"first":0}\n' + lines + edge.removeprefix(codecs.BOM_UTF8)
    whole = Document("f", len(data), partial(io.BytesIO, data))
    parts = list(whole.parts(size))
    assert [one for part in parts for one in part.document().records(Skips())] == list(whole.records(Skips()))
    assert sum(part.size for part in parts) == len(data)


def test_parts_are_no_smaller_than_was_asked_for_and_a_json_value_has_but_one() -> None:
    lines = b'{"a":1}\n' * 100
    assert [part.size for part in document(lines).parts(30)] == [32] * 25
    assert [part.size for part in document(b'[\n{"a":1},\n{"a":2}\n]\n').parts(1)] == [21]


def test_a_part_skips_a_line_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RECORD", 1 << 20)
    data = b'{"a":1}\n' * 3 + b"x" * (3 << 20) + b'\n{"a":2}\n'
    skips = Skips()
    found = [part.document() for part in document(data).parts(20)]
    assert [record.where[-1] for one in found for record in one.records(skips)] == ["1", "2", "3", "5"]
    assert [(skip.count, skip.first) for skip in skips.all()] == [(1, "made.json:4")]


def test_a_line_of_two_gigabytes_takes_no_more_memory_than_the_longest_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:  # zeros that take no room on the disk
        file.write(b'{"a":"')
        file.truncate(2 * 1024**3)
        file.seek(0, os.SEEK_END)
        file.write(b'"}\n{"b":1}\n')
    skips = Skips()
    tracemalloc.start()
    try:
        document = Document("long.jsonl", path.stat().st_size, lambda: path.open("rb"))
        records = [record.data for record in document.records(skips)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert records == [b'{"b":1}\n']
    assert [(skip.reason, skip.first) for skip in skips.all()] == [("line longer than 128 MiB", "long.jsonl:1")]
    assert peak < 2.5 * module.MAX_RECORD
