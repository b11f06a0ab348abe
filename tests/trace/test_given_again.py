"""A call that was answered from the cache took nothing, and says so wherever it is read."""

import msgspec
from importing import document, read
from tasks import T0, TASK, call, span

from headway.core.money import MicroUsd, Price
from headway.core.span import GivenAgain, ModelCall, Receipt, Span
from headway.core.usage import Usage
from headway.gateway.observer.calls import call_line
from headway.trace.account import TaskAccount, recorded
from headway.trace.export.otlp import to_otlp
from headway.trace.prices import with_own
from headway.trace.sources.otel.otlp import Otlp
from headway.trace.task_row import summed_up

NONE = Usage(input_tokens=0, output_tokens=0, cache_read=0)
KEPT = GivenAgain(
    source="memory", made=T0 - 60, usage=Usage(input_tokens=900, output_tokens=100), seconds=3.0, cost=MicroUsd(1500)
)
GIVEN = span(
    "given",
    2.0,
    2.5,
    ModelCall(
        model="m",
        queued=0.4,
        attempts=0,
        usage=NONE,
        cost=MicroUsd(0),
        given_again=KEPT,
        route=Receipt(policy="cache", winner="faq", reason="answered from the cache: asked 60 s ago"),
    ),
)
MADE = call("made", 0.0, 2.0, marks=(0.0, 1.0, 2.0), usage=Usage(input_tokens=10, output_tokens=5, cache_read=0))


def account_of(*spans: Span) -> TaskAccount:
    return recorded(spans, prices=with_own({"m": Price(input=1_000_000, output=2_000_000, cache_read=0)}))


def test_it_counts_no_tokens_and_no_money() -> None:
    anatomy = account_of(MADE, GIVEN).anatomy
    assert anatomy.calls == 2
    assert anatomy.cost == 10 + 2 * 5
    assert (anatomy.usage.input_tokens, anatomy.usage.output_tokens) == (10, 5)
    assert anatomy.retries == 0


def test_what_it_waited_for_another_s_call_is_queueing_and_nothing_is_the_model_s() -> None:
    (_, given) = account_of(MADE, GIVEN).anatomy.iterations
    assert round(given.queue, 6) == 0.4
    assert round(given.hop, 6) == 0.1
    assert (given.prefill, given.decode, given.model_unsplit) == (0, 0, 0)


def test_a_reader_is_told_and_told_what_it_would_have_taken() -> None:
    account = account_of(MADE, GIVEN)
    (note,) = [note for note in account.anatomy.unknowns if "from the cache of answers" in note]
    assert note.startswith("Answered from the cache of answers: 1 of 2 calls. ")
    assert note.endswith("without the cache they would have taken 3.0 s, 1,000 tokens, $0.001500.")
    assert [it.given_again for it in account.anatomy.iterations] == [False, True]


def test_what_is_not_known_of_it_is_not_said() -> None:
    unknown = msgspec.structs.replace(KEPT, usage=Usage(), cost=None)
    work = msgspec.structs.replace(GIVEN.work, given_again=unknown)
    (note,) = [n for n in account_of(msgspec.structs.replace(GIVEN, work=work)).anatomy.unknowns if "cache of" in n]
    assert note.endswith("would have taken 3.0 s.")


def test_a_task_of_such_calls_was_not_refused() -> None:
    assert not summed_up(TASK, [msgspec.msgpack.encode(GIVEN)]).refused
    refused = call("refused", 0.0, 0.1, attempts=0)
    assert summed_up(TASK, [msgspec.msgpack.encode(refused)]).refused


def test_it_is_exported_and_comes_back() -> None:
    (piece,), _ = read(Otlp(), document(to_otlp([MADE, GIVEN])))
    works = [one.work for one in piece.spans]
    assert [work.given_again for work in works if isinstance(work, ModelCall)] == [None, KEPT]


def test_the_log_of_calls_says_where_its_answer_was() -> None:
    assert isinstance(GIVEN.work, ModelCall)
    line = call_line(GIVEN, GIVEN.work, "text")
    assert "cache=memory" in line
    assert isinstance(MADE.work, ModelCall)
    assert "cache=" not in call_line(MADE, MADE.work, "text")
