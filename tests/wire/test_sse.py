"""Events come out the same wherever the bytes were cut, and nothing of the bytes is lost or changed."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import UpstreamError
from headway.wire.sse import EventScanner, events, split

END = st.sampled_from([b"\n", b"\r\n", b"\r"])
VALUE = st.binary(max_size=12).filter(lambda data: b"\n" not in data and b"\r" not in data)
FIELD = st.sampled_from([b"data: ", b"data:", b": ", b"event: ", b"retry:"])
FIXED = st.sampled_from([b"data", b"id", b""])


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    line = draw(FIELD) + draw(VALUE) if draw(st.booleans()) else draw(FIXED)
    return line + draw(END)


@st.composite
def cut_stream(draw: st.DrawFn) -> list[bytes]:
    stream = b"".join(draw(st.lists(lines(), max_size=12))) + draw(
        st.sampled_from([b"", b"\n\n", b"data: un", b"\r\n\r\n"])
    )
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    edges = [0, *cuts, len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(edges)]


def by_the_grammar(stream: bytes) -> list[bytes]:
    """Events as the WHATWG's text has it, line by line and without any shortcut."""
    found: list[bytes] = []
    data: list[bytes] = []
    text = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for line in text.split(b"\n")[:-1]:
        name, _, value = line.partition(b":")
        if not line:
            if data:
                found.append(b"\n".join(data))
            data = []
        elif name == b"data":
            data.append(value.removeprefix(b" "))
    return found


@given(cut_stream())
def test_any_cut_gives_the_events_of_the_grammar(chunks: list[bytes]) -> None:
    scanner = EventScanner()
    found = [event for chunk in chunks for event in scanner.feed(chunk)]
    assert found == by_the_grammar(b"".join(chunks))


@given(cut_stream())
def test_what_is_cut_off_and_what_is_held_are_what_was_put_in(chunks: list[bytes]) -> None:
    scanner = EventScanner()
    assert b"".join(scanner.cut(chunk) for chunk in chunks) + scanner.tail == b"".join(chunks)


@given(cut_stream())
def test_events_one_by_one_are_the_events_together(chunks: list[bytes]) -> None:
    scanner = EventScanner()
    whole = b"".join(scanner.cut(chunk) for chunk in chunks)
    pieces = split(whole)
    assert b"".join(pieces) == whole
    assert [event for piece in pieces for event in events(piece)] == events(whole)
    assert all(len(events(piece)) <= 1 for piece in pieces)


def test_lines_of_one_event_are_joined_and_other_fields_skipped() -> None:
    assert events(b"event: x\nid: 7\ndata: a\n: note\ndata: b\n\ndata:c\n\n") == [b"a\nb", b"c"]


def test_one_space_after_the_colon_is_not_data() -> None:
    assert events(b"data:  a\n\n") == [b" a"]


def test_data_without_a_colon_is_an_empty_line_of_data() -> None:
    assert events(b"data\ndata: a\n\n") == [b"\na"]


def test_an_endless_event_is_an_error_that_names_size_and_limit() -> None:
    scanner = EventScanner(max_bytes=10)
    assert scanner.feed(b"data: 1234") == []
    with pytest.raises(UpstreamError, match=r"sent 11 bytes .* limit is 10"):
        scanner.feed(b"5")


def test_a_complete_event_may_be_longer_than_what_is_held() -> None:
    assert EventScanner(max_bytes=10).feed(b"data: 0123456789\n\n") == [b"0123456789"]


def test_a_web_page_is_no_event_stream() -> None:
    with pytest.raises(UpstreamError, match="no field"):
        EventScanner().feed(b"<html>sorry</html>\n\n")
