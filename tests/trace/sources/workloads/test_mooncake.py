from collections.abc import Sequence

from claims import claimed
from importing import document, read, sample
from sessions import assert_unharmed, calls, lines, reasons, tools

from headway.core.usage import Usage
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.trace.sources.workloads.mooncake import Mooncake


def request(name: str, length: int, **more: object) -> dict[str, object]:
    return {"request_id": name, "input_length": length, "output_length": 7, "hash_ids": [1, 2], **more}


ROWS = [
    request("a", 100, session_id="s-1", timestamp=0),
    request("b", 140, session_id="s-1", wait_for=["a"], delay=2, tool_wait_ms=30),
    request("c", 60, session_id="s-2", timestamp=5),
    request("d", 90, session_id="s-3", wait_for=["b"]),
]


def take(rows: Sequence[object]) -> tuple[list[Piece], Skips]:
    return read(Mooncake(), document(lines(rows)))


def test_requests_of_one_session_or_that_wait_for_one_another_are_one_task_without_times() -> None:
    pieces, skips = take(ROWS)
    assert not skips
    assert [[call.usage.input_tokens for call in calls(piece)] for piece in pieces] == [[100, 140, 90], [60]]
    assert [piece.timing for piece in pieces] == ["none", "none"]
    assert calls(pieces[1])[0].usage == Usage(input_tokens=60, output_tokens=7)
    assert [piece.spans[0].session for piece in pieces] == ["s-1", "s-2"]
    assert [len(tools(piece)) for piece in pieces] == [1, 0]
    assert any("not how long they took" in remark for remark in pieces[0].remarks)


def test_requests_that_wait_in_a_circle_are_one_task() -> None:
    pieces, _ = take([request("a", 1, wait_for=["b"]), request("b", 2, wait_for=["a"])])
    assert [len(calls(piece)) for piece in pieces] == [2]


def test_rows_of_another_shape_are_counted() -> None:
    pieces, skips = take([*ROWS, {"input_length": -1, "output_length": 2}, 7])
    assert [call.usage for call in calls(pieces[2])] == [Usage(output_tokens=2)]
    assert reasons(skips) == {
        "a line that is not JSON, or not a request of a workload": 1,
        "a field of the wrong type, left out: input_length": 1,
    }


def test_single_requests_are_not_claimed() -> None:
    alone = {"timestamp": 0, "input_length": 1, "output_length": 2, "hash_ids": [0]}
    assert not Mooncake().claims(document(lines([alone, alone])).sample())
    real = sample("workloads/mooncake/conversation_trace.jsonl").read_bytes()[:100_000]
    assert not Mooncake().claims(document(real).sample())


def test_it_claims_no_traces() -> None:
    assert claimed(Mooncake()) == set()


def test_no_damage_raises() -> None:
    assert_unharmed(Mooncake, [lines(ROWS)])
