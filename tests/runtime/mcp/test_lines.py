from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import UpstreamError
from headway.runtime.mcp.lines import Lines, Overlong


def read(data: bytes, *cuts: int, most: int = 1000, flood: int = 10_000_000) -> list[bytes | Overlong]:
    """What comes of ``data`` when it arrives in pieces that are cut there."""
    lines, edges = Lines(most, flood), [0, *sorted(cuts), len(data)]
    return [line for start, end in pairwise(edges) for line in lines.feed(data[start:end])]


@given(st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line)), st.lists(st.integers(0, 200)))
def test_lines_are_the_same_however_they_arrive(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    cuts = [min(cut, len(data)) for cut in cuts]
    assert read(data, *cuts) == [line for line in lines if line.strip()]


@given(st.integers(1001, 50_000), st.lists(st.integers(0, 60_000), max_size=5), st.booleans())
def test_whose_answer_was_too_long_is_found_at_either_end(size: int, cuts: list[int], first: bool) -> None:
    text = b'{"id": 99, "result": 1}' * (size // 20)  # has ids of its own, which are not the answer's
    result = b'"result": {"content": "%s", "id": 98}' % text.replace(b'"', b'\\"')
    message = b'{"jsonrpc":"2.0","id":7,%s}' if first else b'{%s,"jsonrpc":"2.0","id":7}'
    data = message % result + b'\n{"id":8}\n'
    cuts = [min(cut, len(data)) for cut in cuts]
    found = read(data, *cuts)
    assert found == [Overlong(len(data) - 10, 7, is_answer=True), b'{"id":8}']


def test_an_id_may_be_text() -> None:
    assert read(b'{"id":"a\\"b","result":"%s"}\n' % (b"x" * 1000)) == [Overlong(1025, 'a"b', is_answer=True)]


def test_a_request_or_a_notification_that_was_too_long_is_no_answer() -> None:
    for start in (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":', b'{"method":"notifications/message","params":'):
        (found,) = read(start + b'"%s"}\n' % (b"x" * 1000))
        assert isinstance(found, Overlong)
        assert not found.is_answer


def test_what_says_nowhere_whose_answer_it_is() -> None:
    assert read(b"x" * 1001 + b"\n") == [Overlong(1001, None, is_answer=True)]


def test_a_line_of_just_the_limit_passes() -> None:
    assert read(b"x" * 1000 + b"\n") == [b"x" * 1000]


def test_what_never_ends_is_refused_and_not_kept() -> None:
    lines = Lines(1000, 100_000)
    for _ in range(100):
        assert list(lines.feed(b"x" * 1000)) == []
    with pytest.raises(UpstreamError, match="more than 100,000 bytes without an end"):
        list(lines.feed(b"x"))
