"""The traps that other load generators fall into, with times that are written here, so that every figure is exact."""

import json

import pytest

from headway.bench.connection import Received
from headway.bench.heard import Heard, heard

TOKENS, PER_EVENT, TTFT, ITL = 64, 4, 0.100, 0.010


def event(content: str, finish: str | None = None) -> bytes:
    delta = {"role": "assistant", "content": ""} if not content and finish is None else {"content": content}
    body = {"choices": [{"index": 0, "delta": delta if finish is None else {}, "finish_reason": finish}]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 64, "total_tokens": 71}}\n\n'


def answer(*, cut: int | None = None) -> Received:
    """64 tokens, four to an event, 10 ms a token; the empty chunk with the role comes at once."""
    reads = [(0.003, event(""))]
    reads += [(TTFT + number * ITL, event("word " * PER_EVENT)) for number in range(0, TOKENS, PER_EVENT)]
    if cut is None:
        last = reads[-1][0]
        reads += [(last, event("", "stop")), (last, USAGE), (last, b"data: [DONE]\n\n")]
    else:
        reads = reads[:cut]
    return Received(asked=0.0, sent=0.0, ended=reads[-1][0], status=200, reads=reads)


def read(received: Received) -> Heard:
    return heard(received, "m", stream=True)


def test_the_empty_chunk_that_opens_a_stream_is_no_token() -> None:
    assert read(answer()).call.first_token == TTFT


def test_four_tokens_to_an_event_are_four_tokens() -> None:
    found = read(answer())
    assert found.token_time == pytest.approx(ITL)
    assert found.gaps == pytest.approx([PER_EVENT * ITL] * (TOKENS // PER_EVENT - 1))
    assert found.call.usage.output_tokens == TOKENS


def test_a_stream_that_is_cut_has_failed_though_its_status_was_200() -> None:
    found = read(answer(cut=9))
    assert found.error == "incomplete"
    assert found.text == "word " * PER_EVENT * 8, "what had come is kept"


def test_all_failures_are_counted_and_none_of_their_times() -> None:
    """120 calls: a tenth answered 500, a tenth cut: 24 failures, and the other 96 tell 100 ms and 10.0 ms."""
    calls = [answer() for _ in range(96)]
    calls += [Received(asked=0.0, sent=0.0, ended=0.001, status=500, reads=[(0.001, b"no")]) for _ in range(12)]
    calls += [answer(cut=number + 2) for number in range(12)]
    found = [read(one) for one in calls]
    assert sum(one.error is not None for one in found) == 24
    good = [one for one in found if one.error is None]
    assert {one.call.first_token for one in good} == {TTFT}
    assert [one.token_time for one in good] == pytest.approx([ITL] * 96)


def test_an_answer_that_came_in_one_read_has_no_time_a_token() -> None:
    whole = b"".join(piece for _, piece in answer().reads)
    found = read(Received(asked=0.0, sent=0.0, ended=0.2, status=200, reads=[(0.2, whole)]))
    assert found.error is None
    assert found.token_time is None
    assert found.gaps == ()


@pytest.mark.parametrize(
    ("received", "error"),
    [
        (Received(asked=0.0, error="refused"), "refused"),
        (Received(asked=0.0, sent=0.0, error="closed"), "closed"),
        (Received(asked=0.0, sent=0.0, status=429, reads=[(0.1, b"{}")]), "http_429"),
        (Received(asked=0.0, sent=0.0, status=200, reads=[(0.1, b"<html>\n\n")]), "malformed"),
        (
            Received(asked=0.0, sent=0.0, status=200, reads=[(0.1, b'data: {"error": {"message": "x"}}\n\n')]),
            "error_event",
        ),
        (Received(asked=0.0, sent=0.0, status=200, reads=[]), "incomplete"),
        (Received(asked=0.0, sent=0.0, status=200, reads=[(0.1, b"data: {")], error="timeout"), "timeout"),
    ],
)
def test_what_went_wrong_has_a_word(received: Received, error: str) -> None:
    assert read(received).error == error


def test_an_answer_in_one_piece_is_read_whole() -> None:
    body = b'{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, '
    body += b'"completion_tokens": 2, "total_tokens": 5}}'
    found = heard(Received(asked=0.0, sent=0.0, status=200, reads=[(1.0, body)]), "m", stream=False)
    assert (found.text, found.error, found.call.usage.output_tokens) == ("hi", None, 2)
    assert found.call.first_token is None, "nothing was streamed, so nobody saw the first token"
    broken = heard(Received(asked=0.0, sent=0.0, status=200, reads=[(1.0, body[:40])]), "m", stream=False)
    assert broken.error == "malformed"
