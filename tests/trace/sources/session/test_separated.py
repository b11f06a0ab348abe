from importing import document

from headway.trace.sources.session import separated
from headway.trace.sources.skips import Skips

TEXT = b"""# for people to read

===== record 0001 =====
{
  "a": 1
}

===== record 0002 | of two =====
{"b": "===== no rule ====="}
===== record 0003 =====
"""


def test_records_under_rules_come_one_by_one_with_their_numbers() -> None:
    records = list(separated.records(document(TEXT, "file"), Skips()))
    assert [record.where for record in records] == ["file, record 1", "file, record 2"]
    assert list(separated.objects(document(TEXT).sample())) == [{"a": 1}, {"b": "===== no rule ====="}]


def test_lines_of_json_pass_as_they_are() -> None:
    lines = b'{"a": 1}\n{"b": 2}\n'
    assert [record.data.strip() for record in separated.records(document(lines), Skips())] == [b'{"a": 1}', b'{"b": 2}']
    assert list(separated.objects(document(lines).sample())) == [{"a": 1}, {"b": 2}]


def test_what_is_cut_off_or_not_utf_8_is_read_as_far_as_it_goes() -> None:
    cut = TEXT.replace(b'"a": 1\n}', b'"a": ') + b'{"c": "\xff"}'
    assert list(separated.objects(document(cut).sample())) == [{"b": "===== no rule ====="}]
    last = list(separated.records(document(cut), Skips()))[-1]
    assert last.data.decode().strip() == '{"c": "\N{REPLACEMENT CHARACTER}"}'
