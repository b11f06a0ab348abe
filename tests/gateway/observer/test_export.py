"""Spans reach an endpoint over real sockets, each at least once, whatever the endpoint does in between."""

import asyncio
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest
from collecting import TASK, Collector, Refusal, ids, span
from serving import serving

from headway.core.span import ModelCall, Span
from headway.core.task import SessionId, SpanId
from headway.core.usage import Usage
from headway.gateway.observer.endpoint import Endpoint, HttpPost
from headway.gateway.observer.export import BATCH, FIRST_PAUSE, LONGEST_PAUSE, PERIOD, Exporter
from headway.trace.store import Store


@contextmanager
def exporting(store: Store, url: str, **headers: str) -> Generator[Exporter]:
    endpoint = Endpoint(url=f"{url}/v1/traces", headers=headers)
    with closing(Exporter(store.path, f"otlp {url}", HttpPost(endpoint, timeout=5), Random(1))) as exporter:
        yield exporter


def until_idle(exporter: Exporter) -> None:
    """Steps without waiting until nothing waits; of refusals it makes no pause."""
    while exporter.step() != PERIOD:
        pass


def test_spans_arrive_packed_with_the_headers_in_the_order_of_their_writing(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Collector() as collector:
        store.write([span(2), span(1)])
        with exporting(store, collector.url, authorization="Bearer secret") as exporter:
            until_idle(exporter)
            assert (exporter.spans["sent"], exporter.waiting, exporter.up) == (2, 0, True)
        assert collector.ids() == ids(2, 1)
        (head,) = collector.heads
        assert collector.paths == ["/v1/traces"]
        assert (head["content-type"], head["content-encoding"]) == ("application/x-protobuf", "gzip")
        assert head["authorization"] == "Bearer secret"


def test_many_spans_go_in_messages_of_bounded_size(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Collector() as collector:
        store.write([span(number) for number in range(1, BATCH + 4)])
        with exporting(store, collector.url) as exporter:
            until_idle(exporter)
        assert [len(message.resource_spans[0].scope_spans[0].spans) for message in collector.messages] == [BATCH, 3]


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503, 307])
def test_what_is_refused_for_now_is_sent_again(tmp_path: Path, status: int) -> None:
    with Store(tmp_path / "s.db") as store, Collector(Refusal(status), Refusal(status)) as collector:
        store.write([span(1)])
        with exporting(store, collector.url) as exporter:
            pauses = [exporter.step(), exporter.step()]
            assert exporter.up is False
            until_idle(exporter)
            assert exporter.failures == {f"http_{status}": 2}
            assert (exporter.up, exporter.spans["sent"], exporter.spans["rejected"]) == (True, 1, 0)
        assert collector.ids() == ids(1)
        assert FIRST_PAUSE / 2 <= pauses[0] <= FIRST_PAUSE <= pauses[1] <= 2 * FIRST_PAUSE


def test_a_wish_to_be_left_alone_is_granted_within_reason(tmp_path: Path) -> None:
    wishes = [Refusal(503, {"retry-after": after}) for after in ("120", "999999", "soon")]
    with Store(tmp_path / "s.db") as store, Collector(*wishes) as collector:
        store.write([span(1)])
        with exporting(store, collector.url) as exporter:
            assert (exporter.step(), exporter.step()) == (120, 600)
            assert exporter.step() <= LONGEST_PAUSE


def test_an_endpoint_that_is_not_there_and_comes_gets_everything_once(tmp_path: Path) -> None:
    with Collector() as gone:
        pass
    with Store(tmp_path / "s.db") as store, exporting(store, gone.url) as exporter:
        store.write([span(1)])
        for _ in range(12):
            assert exporter.step() <= LONGEST_PAUSE
        store.write([span(2)])
        assert exporter.failures == {"connect": 12}
        with Collector(port=gone.port) as back:
            until_idle(exporter)
            assert back.ids() == ids(1, 2)
            assert (exporter.up, exporter.waiting) == (True, 0)


def test_a_restart_neither_loses_nor_doubles(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Collector() as collector:
        store.write([span(1)])
        with exporting(store, collector.url) as exporter:
            until_idle(exporter)
        store.write([span(2)])
        with exporting(store, collector.url) as exporter:
            until_idle(exporter)
        assert collector.ids() == ids(1, 2)


def test_where_the_answer_was_lost_a_message_is_sent_twice_rather_than_never(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Collector(None) as collector:
        store.write([span(1)])
        with exporting(store, collector.url) as exporter:
            until_idle(exporter)
            assert exporter.failures == {"connection": 1}
        assert collector.ids() == ids(1, 1)


def test_what_is_not_wanted_is_counted_and_the_rest_goes_on(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Collector(Refusal(400)) as collector:
        with exporting(store, collector.url) as exporter:
            store.write([span(1), span(2)])
            until_idle(exporter)
            store.write([span(3), span(4)])
            collector.rejects = 1
            until_idle(exporter)
            assert exporter.spans == {"sent": 1, "rejected": 3, "unsendable": 0, "missed": 0}
        assert collector.ids() == ids(3, 4)


def test_a_message_that_is_too_large_is_halved_until_it_is_not(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Collector(Refusal(413), Refusal(413), Refusal(413)) as collector:
        store.write([span(number) for number in range(1, 5)])
        with exporting(store, collector.url) as exporter:
            until_idle(exporter)
            assert exporter.spans["rejected"] == 1  # alone it was too large, too
        assert collector.ids() == ids(2, 3, 4)


def test_a_span_that_cannot_be_told_keeps_no_other_back(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Collector() as collector:
        store.write([span(1), span(2, start=2e10, end=2e10), span(3, start=0.0), span(4)])
        with exporting(store, collector.url) as exporter:
            until_idle(exporter)
            assert exporter.spans == {"sent": 2, "rejected": 0, "unsendable": 2, "missed": 0}
        assert collector.ids() == ids(1, 4)


def test_spans_that_the_store_gave_up_first_are_counted(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db", max_bytes=1) as store, Collector() as collector:
        with exporting(store, collector.url) as exporter:
            until_idle(exporter)
            for number in range(1, 4):
                store.write([span(number)])
            until_idle(exporter)
            assert exporter.spans == {"sent": 1, "rejected": 0, "unsendable": 0, "missed": 2}
        assert collector.ids() == ids(3)


def test_a_store_that_was_replaced_is_exported_from_its_beginning(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Collector() as collector:
        store.write([span(1)])
        with exporting(store, collector.url) as exporter:
            until_idle(exporter)
            store.path.unlink()
            assert FIRST_PAUSE / 2 <= exporter.step() <= FIRST_PAUSE  # there is none
            store.write([span(2)])
            until_idle(exporter)
        assert collector.ids() == ids(1, 2)


def test_another_endpoint_begins_where_it_is_told(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store, Collector() as collector:
        store.write([span(1), span(2)])
        post = HttpPost(Endpoint(url=collector.url))
        with closing(Exporter(store.path, "new", post, Random(1), begin=1)) as exporter:
            until_idle(exporter)
        assert collector.ids() == ids(2)


async def test_our_own_receiver_takes_what_is_exported_as_it_was(tmp_path: Path) -> None:
    call = Span(
        task=TASK,
        id=SpanId("00000000000000c1"),
        parent=None,
        name="chat m",
        start=1_790_000_000.0,
        end=1_790_000_002.5,
        work=ModelCall(model="m", provider="openai", usage=Usage(input_tokens=100, output_tokens=7, cache_read=64)),
        session=SessionId("s"),
    )
    with Store(tmp_path / "s.db") as store:
        store.write([call])
        async with serving() as served:
            with exporting(store, f"http://127.0.0.1:{served.port}") as exporter:
                await asyncio.to_thread(until_idle, exporter)
                assert exporter.spans["sent"] == 1
            (taken,) = await served.stored(1)
            assert served.gateway.telemetry.rejected == 0
    assert isinstance(taken.work, ModelCall)
    assert (taken.task, taken.id, taken.start, taken.end, taken.session) == (
        call.task, call.id, call.start, call.end, call.session,
    )  # fmt: skip
    assert (taken.work.model, taken.work.usage) == ("m", Usage(input_tokens=100, output_tokens=7, cache_read=64))
