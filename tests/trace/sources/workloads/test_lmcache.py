from claims import claimed
from importing import document, read, sample
from sessions import assert_unharmed, calls, lines, reasons

from headway.core.span import ModelCall
from headway.trace.sources.digests import part
from headway.trace.sources.workloads.lmcache import LMCache

ROWS = [
    {"timestamp": 2_000_000, "input": "Do it\n\nAgain.", "output": "Bye", "session_id": "s-1"},
    {"timestamp": 1_000_000, "input": "Do it", "output": "Done.", "session_id": "s-1"},
    {"timestamp": 1_500_000, "input": "Hello", "output": "", "session_id": "s-2"},
]


def test_a_session_is_a_task_whose_calls_are_in_the_order_in_which_they_were_sent() -> None:
    pieces, skips = read(LMCache(), document(lines(ROWS)))
    assert not skips
    assert [(piece.spans[0].session, piece.title, piece.timing) for piece in pieces] == [
        ("s-1", "Do it", "none"),
        ("s-2", "Hello", "none"),
    ]
    assert calls(pieces[0]) == [
        ModelCall(model="unknown", prompt=(part("user", "Do it"),)),
        ModelCall(model="unknown", prompt=(part("user", "Do it"), part("user", "\n\nAgain."))),
    ]
    assert any("nothing is said about seconds" in remark for remark in pieces[0].remarks)


def test_a_prompt_that_goes_on_from_an_earlier_one_has_its_parts() -> None:
    texts = ["Plan", "Plan. Act", "Act", "Plan. Act. Look"]
    rows = [{"timestamp": at, "input": text, "output": "Ok", "session_id": "s"} for at, text in enumerate(texts)]
    (piece,), _ = read(LMCache(), document(lines(rows)))
    assert [call.prompt for call in calls(piece)] == [
        (part("user", "Plan"),),
        (part("user", "Plan"), part("user", ". Act")),
        (part("user", "Act"),),
        (part("user", "Plan"), part("user", ". Act"), part("user", ". Look")),
    ]


def test_broken_lines_are_counted() -> None:
    pieces, skips = read(LMCache(), document(lines(ROWS) + b'{"timestamp": "soon"}\n'))
    assert len(pieces) == 2
    assert reasons(skips) == {"a line that is not JSON, or not a request of a trace": 1}


def test_it_claims_no_traces() -> None:
    assert claimed(LMCache()) == set()


def test_a_real_session() -> None:
    name = "253f1bdf4cfa489d2b5801d3b46fc498"
    path = sample(f"workloads/lmcache-agent-trace/taubench/{name}.jsonl")
    (piece,), skips = read(LMCache(), document(path.read_bytes()))
    assert not skips
    assert piece.spans[0].session == name
    assert len(calls(piece)) == path.read_bytes().count(b"\n")


def test_no_damage_raises() -> None:
    assert_unharmed(LMCache, [lines(ROWS)])
