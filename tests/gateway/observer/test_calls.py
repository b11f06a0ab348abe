"""The log of calls: what stands in a line, and what never does."""

import json

from headway.core.span import ErrorType, ModelCall, Receipt, Span
from headway.core.task import Identity, SessionId, SpanId, TaskId
from headway.core.usage import Usage
from headway.gateway.observer.calls import call_line, is_call

AT = 1_790_000_000.0
SERVED = ModelCall(
    model="m",
    replica="a",
    stream=True,
    queued=0.0,
    sent=AT + 0.25,
    first_token=AT + 0.75,
    usage=Usage(input_tokens=100, output_tokens=7, cache_read=64),
    finish_reason="stop",
    attempts=1,
    identity=Identity(task=TaskId("t"), session=SessionId("s"), evidence="new", confidence=1.0),
    route=Receipt(policy="p", winner="a", reason="free"),
)


def span(work: ModelCall, error: str | None = None) -> Span:
    return Span(
        task=TaskId("t"),
        id=SpanId("00000000000000ab"),
        parent=None,
        name="chat m",
        start=AT,
        end=AT + 2.5,
        work=work,
        session=SessionId("s"),
        error=None if error is None else ErrorType(error),
        text=("the prompt", "the answer"),
        tenant="acme",
    )


def test_a_line_of_json_says_all_that_is_known_and_no_text() -> None:
    line = call_line(span(SERVED), SERVED, "json")
    assert json.loads(line) == {
        "time": "2026-09-21T14:13:22.500Z",
        "level": "info",
        "event": "call",
        "task": "t",
        "span": "00000000000000ab",
        "session": "s",
        "tenant": "acme",
        "model": "m",
        "replica": "a",
        "status": "ok",
        "seconds": 2.5,
        "ttft": 0.5,
        "stream": True,
        "attempts": 1,
        "input_tokens": 100,
        "cached_tokens": 64,
        "output_tokens": 7,
        "finish": "stop",
    }


def test_a_refused_call_says_why_and_nothing_that_is_unknown() -> None:
    refused = ModelCall(model="gone", attempts=0)
    assert is_call(span(refused, "unknown_model"))
    told = json.loads(call_line(span(refused, "unknown_model"), refused, "json"))
    assert (told["level"], told["status"], told["error"]) == ("warning", "error", "unknown_model")
    assert not {"ttft", "input_tokens", "replica"} & told.keys()


def test_a_line_for_a_person_is_one_line_whatever_a_caller_names() -> None:
    odd = ModelCall(model="a b\n\x1b[31m", attempts=0)
    line = call_line(span(odd), odd, "text")
    assert "model='a b\\n\\x1b[31m'" in line
    assert line.isprintable()


def test_what_agents_report_of_their_own_calls_is_not_in_this_log() -> None:
    assert is_call(span(SERVED))
    assert not is_call(span(ModelCall(model="m", attempts=1)))
