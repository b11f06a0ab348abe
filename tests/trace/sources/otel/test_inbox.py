from otlp_documents import TRACE, message, span

from headway.core.span import ModelCall, Span
from headway.trace.sources.otel.inbox import IMPOSSIBLE, Inbox
from headway.wire.otlp import from_json

CHAT: dict[str, object] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
OTHER = "f" * 32


def taken(inbox: Inbox, *spans: dict[str, object]) -> list[Span]:
    return inbox.take(from_json(message(*spans)).spans).spans


def numbers(spans: list[Span]) -> list[int]:
    return [int(one.id, 16) for one in spans]


def test_only_what_is_new_or_told_more_of_is_given_out() -> None:
    inbox = Inbox()
    assert numbers(taken(inbox, span(1, "POST", 0, 1, parent=2, kind=3))) == [1]
    first = taken(inbox, span(2, "chat m", 0, 1, CHAT, parent=3))
    assert numbers(first) == [2]  # its attempt is known from the start, and the POST is as it was
    assert isinstance(first[0].work, ModelCall)
    assert first[0].work.attempts == 1
    assert numbers(taken(inbox, span(3, "a", 0, 2, {"session.id": "c1"}))) == [1, 2, 3]  # all learn their session
    assert numbers(taken(inbox)) == []


def test_the_same_span_sent_again_is_nothing_new() -> None:
    inbox = Inbox()
    assert numbers(taken(inbox, span(1, "work", 0, 1))) == [1]
    assert numbers(taken(inbox, span(1, "work", 0, 1))) == []


def test_traces_in_one_message_are_kept_apart() -> None:
    inbox = Inbox()
    spans = taken(inbox, span(1, "a", 0, 1, {"session.id": "c1"}), span(2, "b", 0, 1) | {"traceId": OTHER})
    assert [(one.task, one.session) for one in spans] == [(TRACE, "c1"), (OTHER, None)]


def test_spans_without_valid_ids_are_counted() -> None:
    bad = [span(1, "work", 0, 1) | {"traceId": "x"}, span(2, "work", 0, 1) | {"spanId": "0" * 16}]
    found = Inbox().take(from_json(message(*bad, span(3, "work", 0, 1))).spans)
    assert (numbers(found.spans), found.rejected) == ([3], 2)


def test_a_trace_that_grows_too_large_is_read_message_by_message() -> None:
    inbox = Inbox(largest_trace=3)
    assert numbers(taken(inbox, span(1, "a", 0, 1, {"session.id": "c1"}), span(2, "b", 0, 1))) == [1, 2]
    late = taken(inbox, span(3, "c", 0, 1), span(4, "d", 0, 1))
    assert [(int(one.id, 16), one.session) for one in late] == [(3, None), (4, None)]


def test_the_traces_longest_unheard_of_are_forgotten_first() -> None:
    inbox = Inbox(most_spans=2)
    taken(inbox, span(1, "a", 0, 1, {"session.id": "c1"}))
    taken(inbox, span(2, "b", 0, 1) | {"traceId": OTHER}, span(3, "b", 0, 1) | {"traceId": OTHER})
    (late,) = taken(inbox, span(4, "c", 0, 1))
    assert late.session is None  # span 1, which would have told it, is forgotten


def remarks(inbox: Inbox, *spans: dict[str, object]) -> list[tuple[int, tuple[str, ...]]]:
    return [(int(one.id, 16), one.remarks) for one in taken(inbox, *spans) if one.remarks]


def in_milliseconds(made: dict[str, object]) -> dict[str, object]:
    """As an exporter writes it that takes the field for one in ms."""
    times = ("startTimeUnixNano", "endTimeUnixNano")
    return made | {name: str(int(str(made[name])) // 1_000_000) for name in times}


def test_times_in_another_unit_are_told_by_the_earliest_span() -> None:
    ((carrier, told),) = remarks(Inbox(), in_milliseconds(span(1, "chat m", 1, 2, CHAT)), span(2, "a", 0, 3))
    assert carrier == 2
    assert [one for one in told if one.startswith("Times of 1 span were written in another unit")]


def test_counts_that_cannot_be_are_told_and_with_the_trace_that_has_them() -> None:
    bad = span(1, "chat m", 0, 1, CHAT | {"gen_ai.usage.input_tokens": -5})
    assert remarks(Inbox(), bad, span(2, "b", 0, 1) | {"traceId": OTHER}) == [(1, (IMPOSSIBLE,))]


def test_the_remark_goes_on_to_a_span_that_turns_out_to_be_earlier() -> None:
    inbox = Inbox()
    bad = span(1, "chat m", 1, 2, CHAT | {"gen_ai.usage.input_tokens": -5})
    assert remarks(inbox, bad) == [(1, (IMPOSSIBLE,))]
    later = taken(inbox, span(2, "a", 0, 3))
    assert [(int(one.id, 16), one.remarks) for one in later] == [(1, ()), (2, (IMPOSSIBLE,))]
